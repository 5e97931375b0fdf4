// SPDX-License-Identifier: Apache-2.0

package keygentest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// brokenVar names the faulty implementation that a child process of this binary runs a
// suite on.
const brokenVar = "SHARDID_TEST_BROKEN"

// counting is a generator and a source with a fault.
type counting struct {
	last atomic.Int64
	next func(n int64) (int64, error)
}

func (c *counting) Next(context.Context) (int64, error) { return c.next(c.last.Add(1)) }
func (c *counting) Close() error                        { return nil }

func (c *counting) Reserve(_ context.Context, n int64) (keygen.Span, error) {
	return keygen.Span{First: c.last.Add(n) - n + 1, Count: n, Step: 1}, nil
}

func generates(next func(n int64) (int64, error)) func(t *testing.T) {
	return func(t *testing.T) {
		keygentest.Generator(t, func(*testing.T) keygen.Generator[int64] { return &counting{next: next} })
	}
}

func ledgerWithout(w keygentest.Weakness) func(t *testing.T) {
	return func(t *testing.T) {
		l := keygentest.NewMemoryLedger(time.Now)
		l.Weaken(w)
		keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return l })
	}
}

// broken are implementations with the test that has to fail, and the suite.
var broken = map[string]struct {
	fails string
	suite func(t *testing.T)
}{
	"ids that fall":                     {"ids_are_positive_and_rise", generates(func(n int64) (int64, error) { return 1<<40 - n, nil })},
	"two generators with one numbering": {"two_generators_never_share", generates(func(n int64) (int64, error) { return n, nil })},
	"an id that comes twice":            {"goroutines_never_share", generates(func(n int64) (int64, error) { return n - n/5000%2, nil })},
	"ids after Close":                   {"Close_is_idempotent", generates(func(n int64) (int64, error) { return n, nil })},
	"a source that counts for each handle": {"spans_of_several_handles", func(t *testing.T) {
		keygentest.Source(t, func(*testing.T) keygen.Source { return &counting{} })
	}},
	"a source that ignores the context": {"a_context_that_has_ended", func(t *testing.T) {
		one := &counting{}
		keygentest.Source(t, func(*testing.T) keygen.Source { return one })
	}},
	"a registry that forgets ceilings": {"a_Take_repeated", ledgerWithout(keygentest.Weakness{NoCeiling: true})},
	"a registry without a fence":       {"who_lost_the_worker_id", ledgerWithout(keygentest.Weakness{NoFence: true})},
}

// TestBroken is what the children run.
func TestBroken(t *testing.T) {
	if b, ok := broken[os.Getenv(brokenVar)]; ok {
		b.suite(t)
	}
}

func TestTheSuitesFindWhatIsBroken(t *testing.T) {
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // which a suite that goes on for ever would need
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBroken$/"+b.fails, "-test.v")
			child.Env = append(os.Environ(), brokenVar+"="+name)
			said, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(said), "--- FAIL: TestBroken/"+b.fails) {
				t.Errorf("the suite found nothing in %s", b.fails)
			}
		})
	}
}
