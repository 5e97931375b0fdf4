// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// withFile is a process at a fixed address that keeps a file.
func withFile(t *testing.T) zookeeper.WorkersConfig {
	t.Helper()
	cfg := zooChild{Addr: freeAddr(t), File: filepath.Join(t.TempDir(), "worker")}.config()
	cfg.Hold = time.Hour
	return cfg
}

func TestAProcessWithAFileGoesOnAndStartsWithoutZooKeeper(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	cfg := withFile(t)
	w := openWorkers(t, c, cfg)
	g := snowflakes(t, w)
	worker := g.Stats().Worker
	ids := someIDs(t, g, 100)
	testwait.Until(t, "a report", func() bool { return g.Stats().Reservations > 0 })
	z.Kill()
	killed := fewWorkers().Tick(time.Now())
	for tickOf(t, ids[len(ids)-1]) < killed+5*report.Milliseconds() {
		ids = append(ids, someIDs(t, g, 100)...)
	}
	_ = g.Close() // cannot tell ZooKeeper
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	w = openWorkers(t, c, cfg)
	g = snowflakes(t, w)
	if g.Stats().Worker != worker {
		t.Errorf("worker id %d, then %d", worker, g.Stats().Worker)
	}
	ids = append(ids, someIDs(t, g, 1000)...)
	if err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it is registered again", func() bool {
		names, _, err := c.Children("/snowflake/shop/temporary")
		return err == nil && len(names) == 1 && names[0] == w.Addr() && g.Stats().LastError == nil
	})
	ids = append(ids, someIDs(t, g, 1000)...)
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
	last := tickOf(t, ids[len(ids)-1])
	testwait.Until(t, "a report says how far it went without ZooKeeper", func() bool {
		r := firstRecord(t, c)
		return r.Owner == w.Addr() && r.Ceiling >= last
	})
}

func TestWithoutAFileNothingStartsWithoutZooKeeper(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	z.Kill()
	for name, cfg := range map[string]zookeeper.WorkersConfig{"no file": anywhere(), "an empty file's place": withFile(t)} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if lease, err := openWorkers(t, c, cfg).Acquire(ctx, fewWorkers()); err == nil {
			t.Errorf("%s: %v", name, lease)
		}
		cancel()
	}
}

func TestAFilesTimeIsComparedWhenZooKeeperIsDown(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	cfg := withFile(t)
	var clock keygentest.WallClock
	cfg.Now = clock.Now
	stopAt := func(w *zookeeper.Workers) {
		t.Helper()
		window := reported(t, w)
		if err := errors.Join(window.Release(t.Context(), window.NotBefore()+1), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	stopAt(openWorkers(t, c, cfg))
	z.Kill()
	clock.Set(-time.Minute)
	w := openWorkers(t, c, cfg)
	if lease, err := w.Acquire(t.Context(), fewWorkers()); !errors.Is(err, keygen.ErrClockRollback) {
		t.Errorf("a clock behind: %v, %v", lease, err)
	}
	clock.Set(2 * time.Hour)
	if lease, err := w.Acquire(t.Context(), fewWorkers()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("after Hold: %v, %v", lease, err)
	}
	clock.Set(0)
	if _, err := w.Acquire(t.Context(), fewWorkers()); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeTrustedIsAnErrorThatSaysWhatToDo(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	cfg := withFile(t)
	w := openWorkers(t, c, cfg)
	if _, err := zookeeper.NewWorkers(c, cfg); err == nil || !strings.Contains(err.Error(), "another process has locked it") {
		t.Errorf("a file was opened twice: %v", err)
	}
	for _, text := range []string{"", "{}", "17", `{"worker":3}`} {
		if err := os.WriteFile(cfg.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if lease, err := w.Acquire(t.Context(), fewWorkers()); !errors.Is(err, workerid.ErrRecord) || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%q: %v, %v", text, lease, err)
		}
	}
}

// Ids may have been issued without ZooKeeper up to where the file said.
func TestAnAddressThatLostItsFileGetsAnotherWorkerID(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	cfg := withFile(t)
	w := openWorkers(t, c, cfg)
	g := snowflakes(t, w)
	first := g.Stats().Worker
	testwait.Until(t, "a report", func() bool { return g.Stats().Reservations > 0 })
	if err := errors.Join(g.Close(), w.Close(), os.Remove(cfg.File)); err != nil {
		t.Fatal(err)
	}
	if second := snowflakes(t, openWorkers(t, c, cfg)).Stats().Worker; second == first {
		t.Errorf("worker id %d again", second)
	}
}

// reported has a window's holder report once, from which on its file is good for
// Hold.
func reported(t *testing.T, w *zookeeper.Workers) keygen.Window {
	t.Helper()
	lease, err := w.Acquire(t.Context(), fewWorkers())
	if err != nil {
		t.Fatal(err)
	}
	window := lease.(keygen.Window)
	testwait.Until(t, "a report", func() bool { _, err := window.Renew(t.Context()); return err == nil })
	return window
}

func TestAFileThatWentFurtherThanZooKeeperKnowsIsBelieved(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	cfg := withFile(t)
	cfg.Report, cfg.Threshold = 10*time.Second, 10*time.Second // so that the ceilings are still ahead after the restart
	w := openWorkers(t, c, cfg)
	window := reported(t, w)
	known := firstRecord(t, c).Ceiling
	z.Kill()
	testwait.Until(t, "the file goes further", func() bool {
		ceiling, err := window.Renew(t.Context())
		return err == nil && ceiling > known
	})
	again := func() keygen.Window { // the former one tells nobody, as if it was killed
		t.Helper()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		w = openWorkers(t, c, cfg)
		lease, err := w.Acquire(t.Context(), fewWorkers())
		if err != nil {
			t.Fatal(err)
		}
		next := lease.(keygen.Window)
		if next.ID() != window.ID() || next.NotBefore() < window.Ceiling() {
			t.Errorf("worker id %d up to %d, then %d from %d", window.ID(), window.Ceiling(), next.ID(), next.NotBefore())
		}
		return next
	}
	window = again()
	if err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if still := firstRecord(t, z.Open(t, steady)).Ceiling; still >= window.Ceiling() {
		t.Fatalf("ZooKeeper knows of %d, and the file says %d", still, window.Ceiling())
	}
	again()
}

func TestAFileGoesNoFurtherThanZooKeeperGranted(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	cfg := withFile(t)
	cfg.Hold = 25 * report
	w := openWorkers(t, c, cfg)
	window := reported(t, w)
	granted := firstRecord(t, c).Until
	z.Kill()
	testwait.Until(t, "what was granted is over", func() bool {
		_, err := window.Renew(t.Context())
		if window.Ceiling() > granted {
			t.Fatalf("the ceiling is %d, and ZooKeeper granted %d", window.Ceiling(), granted)
		}
		return err != nil && window.Ceiling() == granted
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if lease, err := openWorkers(t, c, cfg).Acquire(t.Context(), fewWorkers()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("%v, %v after that", lease, err)
	}
}
