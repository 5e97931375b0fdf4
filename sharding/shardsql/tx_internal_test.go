// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestACommitIsGivenUpTenSecondsAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ended []time.Duration
		start := time.Now()
		part := func() *begun {
			return &begun{detach: func() bool { return true }, ends: func() { ended = append(ended, time.Since(start)) }}
		}
		attach, err := detach(ctx, []*begun{part(), part()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a COMMIT takes as long as it takes
		cancel()
		time.Sleep(endTimeout - time.Millisecond)
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("a part was ended after %v", ended)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if want := time.Minute + endTimeout; len(ended) != 2 || ended[0] != want || ended[1] != want {
			t.Errorf("the parts were ended after %v, want %v", ended, want)
		}
		if attach() {
			t.Error("the context has ended, and the parts are attached to it")
		}
	})
}
