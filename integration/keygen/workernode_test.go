// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
)

func TestEachStartGetsAWorkerIDOfItsOwn(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		_, store := open.Store(t)
		layout := keygen.Baidu()
		layout.Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: store.WorkerNode("host", "1")})
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = g.Close() }()
				mu.Lock()
				defer mu.Unlock()
				seen[g.Stats().Worker] = true
			})
		}
		wg.Wait()
		if len(seen) != 10 {
			t.Errorf("10 starts got %d worker ids", len(seen))
		}
	})
}
