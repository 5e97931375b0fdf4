// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
)

// drawAfterRestore takes all keys of a source that was set back to its start, as
// by a backup, when the first two spans were in memory.
func drawAfterRestore(t *testing.T, guarded bool) (ids []int64, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		next := int64(1)
		b := New(Config{
			Name: "test", Spans: 2, Padding: 45, MaxWait: time.Second, CallTimeout: time.Second,
			Reserve: func(context.Context, Pace) (keygen.Span, error) {
				s := keygen.Span{First: next, Count: 10, Step: 1}
				next += 10
				return s, nil
			},
		})
		defer func() { _ = b.Close() }()
		if err = b.Ready(t.Context()); err != nil {
			return
		}
		synctest.Wait() // both spans are there
		next = 1
		if !guarded {
			b.mu.Lock()
			b.ring.highest = 0
			b.mu.Unlock()
		}
		for range 40 {
			var id int64
			if id, err = b.Next(t.Context()); err != nil {
				return
			}
			ids = append(ids, id)
		}
	})
	return ids, err
}

func twice(ids []int64) bool {
	seen := map[int64]bool{}
	for _, id := range ids {
		if seen[id] {
			return true
		}
		seen[id] = true
	}
	return false
}

func TestARestoredSourceRepeatsIDsWithoutTheRegressGuardAndNoneWithIt(t *testing.T) {
	if ids, err := drawAfterRestore(t, true); !errors.Is(err, keygen.ErrRegressed) || twice(ids) {
		t.Errorf("guarded: %v, %v", ids, err)
	}
	if ids, _ := drawAfterRestore(t, false); !twice(ids) {
		t.Errorf("unguarded, nothing was noticed: %v", ids)
	}
}
