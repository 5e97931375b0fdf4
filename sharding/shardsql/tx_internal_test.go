// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestACommitIsGivenUpTenSecondsAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Int64
		part := func() *txPart {
			return &txPart{detach: func() bool { return true }, ends: func() { ended.Add(1) }}
		}
		attach, err := detach(ctx, []*txPart{part(), part()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a COMMIT takes as long as it takes
		cancel()
		time.Sleep(endTimeout - time.Millisecond)
		synctest.Wait()
		if n := ended.Load(); n > 0 {
			t.Errorf("%d parts were ended early", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := ended.Load(); n != 2 {
			t.Errorf("%d of 2 parts were ended", n)
		}
		if attach() {
			t.Error("the context has ended, and the parts are attached to it")
		}
	})
}
