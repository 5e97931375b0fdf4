// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	command "os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

// switchUntil migrates there and back, and stays at a step until it is killed.
func switchUntil(t *testing.T, dir, step string) {
	t.Helper()
	j := openShop(t, dir).job(t, "id", func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == step {
				_, _ = fmt.Fprintln(os.Stdout, "step "+step)
				select {}
			}
		}
	})
	for { // the job may stand after the step
		if err := thereAndBack(context.Background(), j); err != nil {
			t.Fatal(err)
		}
	}
}

// killSwitch kills a runner that is in the midst of a switch.
func killSwitch(t *testing.T, dir, step string) {
	t.Helper()
	cmd := command.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), runnerVar+"="+step+" "+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "step "+step {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the runner ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
}

// A rollback that is killed on the way closes the shards before the source is open. A
// cutover of SQLite is one transaction, so that a killed one leaves nothing.
func TestASwitchWhoseRunnerWasKilledIsEndedByAnotherRunner(t *testing.T) {
	if step, dir, ok := strings.Cut(os.Getenv(runnerVar), " "); ok {
		switchUntil(t, dir, step)
	}
	t.Parallel()
	s := newShop(t, 100)
	for _, at := range []struct {
		step string
		half bool
	}{{migrate.StepDrained, false}, {migrate.StepRenamed, false}, {migrate.StepFlipped, false}, {migrate.StepSealing, true}, {migrate.StepSealed, true}} {
		step, half := at.step, at.half
		killSwitch(t, s.dir, step)
		began := time.Now()
		mended, err := s.job(t, "id").Mend(t.Context())
		if err != nil || mended != half {
			t.Errorf("killed after %s: mended %t, %v", step, mended, err)
		}
		t.Logf("killed after %s: looked and ended after %s", step, time.Since(began).Round(time.Millisecond))
	}
	s.settle(t, "id")
}

// A rollback that is at work is not taken away from its runner at once.
func TestASwitchThatEndsByItselfIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t, 100)
	mustRun(t, s.job(t, "id"))
	if _, err := s.job(t, "id").Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	var looks sync.WaitGroup
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == migrate.StepSealing {
				looks.Go(func() {
					if mended, err := s.job(t, "id").Mend(t.Context()); mended || err != nil {
						t.Errorf("it was mended: %t, %v", mended, err)
					}
				})
			}
		}
	})
	_, err := j.Rollback(t.Context(), longPause)
	looks.Wait()
	if err != nil {
		t.Fatal(err)
	}
}
