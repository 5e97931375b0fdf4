// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
)

const allowedPause = 500 * time.Millisecond

// pauses are the times that writers waited for cutovers and rollbacks.
type pauses struct {
	made    []time.Duration
	undone  []time.Duration // after the first rename
	givenUp []time.Duration // before it
	refused int             // before anybody had to wait
	late    []string        // why those were given up that were too late, by more than the machine delayed everything
}

// add counts a switch, during which a statement took as long as slowest at most.
func (p *pauses) add(done migrate.Switch, err error, slowest time.Duration) {
	switch {
	case err == nil:
		p.made = append(p.made, done.Pause)
	case done.Pause > 0 && strings.Contains(err.Error(), "which was undone"):
		p.undone = append(p.undone, done.Pause)
	case done.Pause > 0:
		p.givenUp = append(p.givenUp, done.Pause)
		if done.Pause > allowedPause+slowest {
			p.late = append(p.late, fmt.Sprintf("%s, beside a statement of %s: %v", done.Pause, slowest, err))
		}
	default:
		p.refused++
	}
}

// slowest sends statements that need nothing to all databases until stop is called, and
// returns how long the slowest took: a machine on which that takes long is too busy to
// give up in time.
func (s *migrationShop) slowest(t *testing.T) (stop func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	took := make([]time.Duration, 1+len(s.shards))
	for i, db := range append(slices.Collect(maps.Values(s.shards)), s.source) {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, _ = db.ExecContext(context.WithoutCancel(ctx), "SELECT 1") // it waits for no lock
				took[i] = max(took[i], time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() time.Duration {
		cancel()
		wg.Wait()
		return slices.Max(took)
	}
}

// over is by how much they were longer than allowed, and how many were.
func over(all []time.Duration) (by []time.Duration) {
	for _, d := range all {
		if d > allowedPause {
			by = append(by, d-allowedPause)
		}
	}
	return by
}

// spread returns the median, the 99th percentile and the maximum.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	all = slices.Sorted(slices.Values(all))
	at := func(percent int) time.Duration {
		return all[(len(all)-1)*percent/100].Round(time.Millisecond / 10)
	}
	return fmt.Sprintf("p50 %s, p99 %s, max %s", at(50), at(99), all[len(all)-1].Round(time.Millisecond/10))
}

// busy loads every processor with other processes, because busy goroutines would delay this
// process' own connections.
func busy(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = cmd.Wait() }) // it is killed
	}
	return func() { cancel(); wg.Wait() }
}

// TestSwitchesKeepToTheirPause makes cutovers and rollbacks while writers run. A switch that was given up before
// the first rename must not have made a writer wait for longer than allowed, unless the
// machine delayed trivial statements by as much. For switches that were finished or undone,
// the excess is printed and recorded in docs/soak.md, because a rename depends on the disk.
func TestSwitchesKeepToTheirPause(t *testing.T) {
	tries := effort.Cases(6, 250)
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 500)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		unload := func() {}
		if effort.Soak() { // which fails if a pause is too long beside them
			unload = busy(t)
		}
		all := s.switchThereAndBack(t, j, tries)
		unload()
		t.Logf("%d switches with --max-pause %s: %s; %d took longer, by %s", len(all.made), allowedPause, spread(all.made), len(over(all.made)), spread(over(all.made)))
		t.Logf("%d were undone after the first rename: %s; %d took longer, by %s", len(all.undone), spread(all.undone), len(over(all.undone)), spread(over(all.undone)))
		t.Logf("%d were given up under locks before it: %s; %d took longer, by %s", len(all.givenUp), spread(all.givenUp), len(over(all.givenUp)), spread(over(all.givenUp)))
		t.Logf("%d were not begun", all.refused)
		if effort.Soak() && len(all.late) > 0 {
			t.Errorf("given up too late, by more than the slowest statement took meanwhile that needs nothing:\n%s", strings.Join(all.late, "\n"))
		}
		s.compare(t, "id", "orders", "_sealed")
	})
}

// switchThereAndBack tries to switch, and to go back once it has, and at last goes there
// and back, while goroutines write to where the rows are.
func (s *migrationShop) switchThereAndBack(t *testing.T, j *migrate.Job, tries int) (all pauses) {
	t.Helper()
	try := func(pause time.Duration, onShards bool) bool {
		stop, do := s.changeNotes(t, onShards), j.Rollback
		if !onShards {
			do = j.Cutover
		}
		slowest := s.slowest(t)
		done, err := do(t.Context(), pause)
		delayed := slowest()
		stop()
		if err != nil && !errors.Is(err, migrate.ErrNotReady) {
			t.Fatal(err)
		}
		if pause == allowedPause {
			all.add(done, err, delayed)
		}
		if err == nil {
			onShards = !onShards
		}
		return onShards
	}
	onShards := false
	for range tries {
		onShards = try(allowedPause, onShards)
	}
	// What a switch that was given up leaves to follow is brought over by one that is made.
	for _, until := range []bool{true, false} {
		for onShards != until {
			onShards = try(longPause, onShards)
		}
	}
	return all
}

// changeNotes changes rows where they are, one after another, until stop is called.
func (s *migrationShop) changeNotes(t *testing.T, onShards bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for ctx.Err() == nil {
			id := random.IntN(500) + 1
			db, table := s.source, "orders"
			if onShards {
				at := shopOrders(t, "id").Map.Targets()[id&3]
				db, table = s.shards[at.DB], at.Table
			}
			// It fails when the table is closed.
			_, _ = db.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET total = %d WHERE id = %d", table, random.IntN(1000), id))
		}
	})
	return func() { cancel(); wg.Wait() }
}

// With closed shards to open again, to give one table its name back is shorter than to
// go on.
func TestALateSwitchIsUndoneWhereThatIsShorter(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 50)
		slow := false
		j := s.job(t, "id", func(c *migrate.Config) {
			c.Observe = func(step migrate.Step) {
				if slow && step.Name == migrate.StepRenamed {
					<-time.After(3 * time.Second)
				}
			}
		})
		if err := thereAndBack(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		slow = true
		done, err := j.Cutover(t.Context(), 3*time.Second)
		if isMariaDB(t, s.source) { // where there is no way back under the lock
			if err != nil || done.Over == 0 {
				t.Errorf("%+v, %v", done, err)
			}
			s.compare(t, "id", "orders_old", "")
			return
		}
		var late *migrate.PauseError
		if !errors.As(err, &late) {
			t.Fatalf("%+v, %v", done, err)
		}
		database.Exec(t, s.source, "INSERT INTO orders (user_id, note) VALUES (1, 'goes on')")
		slow = false
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders_old", "")
	})
}
