// SPDX-License-Identifier: Apache-2.0

package testwait

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
)

const (
	// Limit ends a wait whose condition never holds. It is far longer than a busy machine needs for
	// anything that an idle one does in a second.
	Limit = 20 * time.Minute

	// margin is the time left for a test to report a failed wait before the deadline of the test
	// binary.
	margin = 15 * time.Second

	// Between two checks of a condition a wait sleeps, first for a moment and later for longer,
	// because the code that fulfils the condition may need the processor.
	firstRest, lastRest = time.Millisecond, 50 * time.Millisecond
)

// Context returns the context of the test, which also ends when a wait has failed: after [Limit],
// or shortly before the deadline of the test binary.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithDeadlineCause(tb.Context(), end(tb), fmt.Errorf("%s waited in vain: %w", tb.Name(), context.DeadlineExceeded))
	tb.Cleanup(cancel)
	return ctx
}

// Until waits until a condition holds. It must be called by the test's goroutine.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	at, rest := end(tb), firstRest
	for !holds() {
		inTime(tb, at, what)
		time.Sleep(rest)
		rest = min(rest+rest/4, lastRest)
	}
}

// For waits until the channel has a value, or is closed. It must be called by the test's goroutine.
func For[T any](tb testing.TB, event <-chan T, what string) (got T) {
	tb.Helper()
	at := end(tb)
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case got = <-event:
	case <-timer.C:
		inTime(tb, at, what)
	case <-tb.Context().Done():
		tb.Fatalf("the test ended before this came: %s", what)
	}
	return got
}

func inTime(tb testing.TB, end time.Time, what string) {
	tb.Helper()
	if !time.Now().Before(end) {
		tb.Fatalf("waited in vain: %s; the goroutines are\n%s", what, goroutines())
	}
}

// end returns the time at which a wait that begins now has failed. A benchmark has no deadline.
func end(tb testing.TB) time.Time {
	at := time.Now().Add(Limit)
	if t, limited := tb.(interface{ Deadline() (time.Time, bool) }); limited {
		if last, ok := t.Deadline(); ok && last.Add(-margin).Before(at) {
			at = last.Add(-margin)
		}
	}
	return at
}

func goroutines() []byte {
	text := make([]byte, 1<<20)
	return text[:runtime.Stack(text, true)]
}
