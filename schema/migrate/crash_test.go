// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	command "os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// steps are all points at which a runner can be stopped.
var steps = []string{
	migrate.StepLeading, migrate.StepBound, migrate.StepPruned, migrate.StepSnapshot, migrate.StepStored, migrate.StepApplied, migrate.StepAcked,
	migrate.StepLocked, migrate.StepDrained, migrate.StepRenamed, migrate.StepFlipped, migrate.StepSealing, migrate.StepSealed, migrate.StepReinstated,
}

// thereAndBack migrates and rolls back. Each call continues what an interrupted one has
// left.
func thereAndBack(ctx context.Context, j *migrate.Job) error {
	unfinished := func(err error) bool {
		return err == nil || errors.Is(err, migrate.ErrNotReady) || errors.Is(err, migrate.ErrPhase)
	}
	if err := j.Run(ctx); !unfinished(err) {
		return err
	}
	if _, err := j.Cutover(ctx, longPause); !unfinished(err) {
		return err
	}
	if _, err := j.Rollback(ctx, longPause); !unfinished(err) {
		return err
	}
	return nil
}

// settle ends on the source, with nobody writing, and compares every row.
func (s *shop) settle(t *testing.T, key string) {
	t.Helper()
	j := s.job(t, key)
	for range 2 {
		if err := thereAndBack(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, j)
	s.compareSealed(t, orders(t, key), "orders", "_sealed")
}

func TestARunThatIsCutOffAtAnyStepIsResumed(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"id", "user_id"} {
		s := newShop(t, 400)
		stop := s.writers(t, 1)
		for _, step := range steps {
			for skip := range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				var mu sync.Mutex
				left := skip
				j := s.job(t, key, func(c *migrate.Config) {
					c.Observe = func(at migrate.Step) {
						mu.Lock()
						defer mu.Unlock()
						if at.Name == step {
							if left--; left < 0 {
								cancel()
							}
						}
					}
				})
				err := thereAndBack(ctx, j)
				if err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", step, err)
				}
				cancel()
			}
		}
		stop()
		s.settle(t, key)
	}
}

// runnerVar makes the test process a runner; its value is the directory of the shop.
const runnerVar = "SHARDID_TEST_RUNNER"

func TestAKilledRunnerIsResumed(t *testing.T) {
	if dir := os.Getenv(runnerVar); dir != "" {
		j := openShop(t, dir).job(t, "id", func(c *migrate.Config) {
			c.Observe = func(step migrate.Step) { _, _ = fmt.Fprintln(os.Stdout, "step "+step.Name) }
		})
		for {
			if err := thereAndBack(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Parallel()
	s := newShop(t, 600)
	stop := s.writers(t, 1)
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	met := map[string]int{}
	for range runnerKills() {
		met[killRunner(t, s.dir, random.IntN(60)+1)]++
	}
	t.Logf("%d changes, killed after %v", stop(), met)
	s.settle(t, "id")
}

func runnerKills() int {
	if effort.Soak() {
		return 200
	}
	return 10
}

// killRunner kills a runner at about its n-th step.
func killRunner(t *testing.T, dir string, n int) (last string) {
	t.Helper()
	cmd := command.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAKilledRunnerIsResumed$")
	cmd.Env = append(os.Environ(), runnerVar+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		step, ok := strings.CutPrefix(lines.Text(), "step ")
		if !ok {
			said = append(said, lines.Text())
			continue
		}
		last = step
		if n--; n <= 0 {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the runner ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return last
}

// blockAt makes a runner wait at a step, once, until the returned function is called.
func blockAt(step string, skip int) (observe func(migrate.Step), reached <-chan struct{}, goOn func()) {
	there, on := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	return func(at migrate.Step) {
		mu.Lock()
		stop := false
		if at.Name == step {
			stop = skip == 0
			skip--
		}
		mu.Unlock()
		if stop {
			close(there)
			<-on
		}
	}, there, sync.OnceFunc(func() { close(on) })
}

func TestAFencedRunnerWritesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{migrate.StepLeading, migrate.StepBound, migrate.StepSnapshot, migrate.StepStored, migrate.StepApplied} {
		s := newShop(t, 300)
		observe, reached, goOn := blockAt(step, 0)
		zombie := s.job(t, "id", func(c *migrate.Config) {
			c.Observe = func(at migrate.Step) {
				if at.Name == migrate.StepLeading {
					quietly(s, "INSERT INTO orders (user_id) VALUES (1)")
				}
				if at.Name == migrate.StepStored { // so that the applier has something to apply
					quietly(s, "UPDATE orders SET note = 'seen by the log' WHERE id <= 50")
				}
				observe(at)
			}
		})
		ended := make(chan error, 1)
		go func() { ended <- zombie.Run(t.Context()) }()
		<-reached
		mustRun(t, s.job(t, "id"))
		exec(t, s.source, "UPDATE orders SET note = 'after the zombie has read it', code = 'z' || id")
		exec(t, s.source, "DELETE FROM orders WHERE id < 20")
		goOn()
		if err := <-ended; !errors.Is(err, migrate.ErrFenced) {
			t.Errorf("%s: the zombie ended with %v", step, err)
		}
		mustRun(t, s.job(t, "id"))
		s.compare(t, orders(t, "id"), "orders")
	}
}

// quietly is for goroutines that cannot end a test.
func quietly(s *shop, text string) { _, _ = s.source.ExecContext(context.Background(), text) }

// A chunk was read when row 60 had a value that row 1 has by the time the chunk is written.
// Row 1 is the newer one.
func TestAChunkThatMeetsANewerRowLeavesIt(t *testing.T) {
	s := newShop(t, 80) // two chunks of 50
	applied := make(chan struct{})
	var once sync.Once
	snapshots := 0
	j := s.job(t, "user_id", func(c *migrate.Config) {
		c.Tables[0].Rule = oneSlot{} // both rows on one shard
		c.Observe = func(at migrate.Step) {
			if at.Name == migrate.StepApplied {
				once.Do(func() { close(applied) })
			}
			if at.Name == migrate.StepSnapshot {
				if snapshots++; snapshots == 2 {
					quietly(s, "UPDATE orders SET code = 'moved on' WHERE id = 60")
					quietly(s, "UPDATE orders SET code = 'c60' WHERE id = 1")
					<-applied
				}
			}
		}
	})
	mustRun(t, j)
	all := list(t, s.shards["a"], "orders_00")
	want := list(t, s.source, "orders")
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("the shard has %d rows, the source %d", len(all), len(want))
	}
}

// oneSlot puts everything into the first of four slots.
type oneSlot struct{}

func (oneSlot) Slots() int                      { return 4 }
func (oneSlot) Slot(any) (sharding.Slot, error) { return 0, nil }
