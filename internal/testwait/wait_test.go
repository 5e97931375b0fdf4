// SPDX-License-Identifier: Apache-2.0

package testwait_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testwait"
)

// test records its failure, and has the deadline of a test binary.
type test struct {
	testing.TB

	deadline time.Time
	failure  string
}

func (t *test) Deadline() (time.Time, bool) { return t.deadline, !t.deadline.IsZero() }

func (t *test) Fatalf(format string, args ...any) {
	t.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure runs a wait in a test with a deadline after this time, or without one, and returns its
// failure and its duration.
func failure(t *testing.T, deadline time.Duration, wait func(tb testing.TB)) (string, time.Duration) {
	t.Helper()
	inner := &test{TB: t}
	begin := time.Now()
	if deadline > 0 {
		inner.deadline = begin.Add(deadline)
	}
	var wg sync.WaitGroup
	wg.Go(func() { wait(inner) })
	wg.Wait()
	return inner.failure, time.Since(begin)
}

func TestAFailedWaitEndsBeforeTheTestBinaryDoesAndPrintsTheGoroutines(t *testing.T) {
	for name, wait := range map[string]func(tb testing.TB){
		"condition": func(tb testing.TB) { testwait.Until(tb, "the moon", func() bool { return false }) },
		"channel":   func(tb testing.TB) { testwait.For(tb, make(chan int), "the moon") },
	} {
		synctest.Test(t, func(t *testing.T) {
			for deadline, want := range map[time.Duration]time.Duration{
				0: testwait.Limit, time.Hour: testwait.Limit, time.Minute: 45 * time.Second, time.Second: 0,
			} {
				said, took := failure(t, deadline, wait)
				if !strings.Contains(said, "the moon") || !strings.Contains(said, "goroutine ") || took < want || took > want+time.Second {
					t.Errorf("%s, with a deadline after %v: after %v %.100q", name, deadline, took, said)
				}
			}
		})
	}
}

func TestAWaitEndsWhenItsConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(10 * time.Minute)
		event := make(chan string)
		time.AfterFunc(11*time.Minute, func() { event <- "came" })
		said, took := failure(t, 0, func(tb testing.TB) {
			testwait.Until(tb, "ten minutes", func() bool { return !time.Now().Before(soon) })
			if got := testwait.For(tb, event, "a minute more"); got != "came" {
				t.Errorf("got %q", got)
			}
		})
		if said != "" || took != 11*time.Minute {
			t.Errorf("after %v %q", took, said)
		}
	})
}

func TestAContextEndsWithTheTestAndAfterAFailedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := testwait.Context(&test{TB: t})
		time.Sleep(testwait.Limit - 1)
		if err := ctx.Err(); err != nil {
			t.Errorf("it ended early: %v", err)
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) || !strings.Contains(cause.Error(), t.Name()) {
			t.Errorf("the cause is %v", cause)
		}
	})
	var ended context.Context
	t.Run("a test", func(t *testing.T) { ended = testwait.Context(t) }) //nolint:fatcontext // it is looked at after its test
	if err := ended.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("after its test: %v", err)
	}
}
