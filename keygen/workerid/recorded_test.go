// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func acquireLock(t *testing.T, file string, l keygen.Layout) keygen.Window {
	t.Helper()
	lease, err := workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	w := lease.(keygen.Window)
	t.Cleanup(func() { _ = w.Release(t.Context(), w.Ceiling()) })
	return w
}

func TestARecordedWorkerGoesOnWhereItsFormerHolderStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	l := keygen.Twitter()
	first := acquireLock(t, file, l)
	end := first.NotBefore() + 1234
	if err := first.Release(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	if second := acquireLock(t, file, l); second.NotBefore() != end || second.ID() != 5 || second.Ceiling() <= end {
		t.Errorf("from %d to %d after %d", second.NotBefore(), second.Ceiling(), end)
	}
}

func TestAfterAKillTheNextHolderStartsAboveTheWrittenCeiling(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "worker")
	l := keygen.Twitter()
	first := acquireLock(t, file, l)
	ceiling, err := first.Renew(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What a killed process leaves: the file, but no lock.
	copied := filepath.Join(dir, "copy")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if second := acquireLock(t, copied, l); second.NotBefore() < ceiling {
		t.Errorf("starts at %d, below %d", second.NotBefore(), ceiling)
	}
}

func TestARecordIsHeldByOneProcessAtATime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	acquireLock(t, file, keygen.Twitter())
	if _, err := workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, workerid.ErrRecord) {
		t.Errorf("%v", err)
	}
}

// loseLock are ways to lose the lock file. A program that cleans up deletes files that nobody has
// written for long.
var loseLock = map[string]func(lock string) error{
	"deleted":  os.Remove,
	"replaced": func(lock string) error { return errors.Join(os.Remove(lock), os.WriteFile(lock, nil, 0o600)) },
}

// written renews until the record had to be written.
func written(t *testing.T, w keygen.Window) (err error) {
	t.Helper()
	before := w.Ceiling()
	testwait.Until(t, "the record is written", func() bool {
		ceiling, failed := w.Renew(t.Context())
		err = failed
		return ceiling > before || failed != nil
	})
	return err
}

func TestARecordIsLockedAnewWhenItsLockFileIsGone(t *testing.T) {
	for name, lose := range loseLock {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "worker")
			first := acquireLock(t, file, keygen.Twitter())
			if err := lose(file + ".lock"); err != nil {
				t.Fatal(err)
			}
			if err := written(t, first); err != nil {
				t.Error(err)
			}
			if _, err := workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, workerid.ErrRecord) {
				t.Errorf("a second process has the record: %v", err)
			}
		})
	}
}

func TestAProcessWhoseLockFileIsGoneWritesNoRecordThatAnotherOneHas(t *testing.T) {
	for name, lose := range loseLock {
		for ended, end := range map[string]func(w keygen.Window) error{
			"runs":  func(keygen.Window) error { return nil },
			"ended": func(w keygen.Window) error { return w.Release(t.Context(), w.Ceiling()) },
		} {
			t.Run(name+" and the other one "+ended, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "worker")
				first := acquireLock(t, file, keygen.Twitter())
				if err := lose(file + ".lock"); err != nil {
					t.Fatal(err)
				}
				second := acquireLock(t, file, keygen.Twitter())
				if second.NotBefore() < first.Ceiling() {
					t.Errorf("starts at %d, below %d", second.NotBefore(), first.Ceiling())
				}
				if err := end(second); err != nil {
					t.Fatal(err)
				}
				if err := written(t, first); !errors.Is(err, workerid.ErrRecord) || !strings.Contains(err.Error(), "restart") {
					t.Errorf("renewed up to %d: %v", first.Ceiling(), err)
				}
				if err := first.Release(t.Context(), first.NotBefore()); !errors.Is(err, workerid.ErrRecord) {
					t.Errorf("released: %v", err)
				}
				_ = second.Release(t.Context(), second.Ceiling())
				if third := acquireLock(t, file, keygen.Twitter()); third.NotBefore() < second.Ceiling() {
					t.Errorf("starts at %d, below %d", third.NotBefore(), second.Ceiling())
				}
			})
		}
	}
}

func TestARecordThatCannotBeTrustedIsAnErrorThatSaysWhatToDo(t *testing.T) {
	l := keygen.Twitter()
	other := l
	other.Epoch = l.Epoch.Add(time.Hour)
	for name, damage := range map[string]func(string) string{
		"empty":          func(string) string { return "" },
		"cut":            func(s string) string { return s[:len(s)/2] },
		"a flipped bit":  func(s string) string { return strings.Replace(s, `"ceiling":`, `"ceiling":1`, 1) },
		"other content":  func(string) string { return "17" },
		"a missing part": func(string) string { return "{}" },
	} {
		file := filepath.Join(t.TempDir(), "worker")
		w := acquireLock(t, file, l)
		if err := w.Release(t.Context(), w.Ceiling()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(damage(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), l)
		if !errors.Is(err, workerid.ErrRecord) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "worker")
	w := acquireLock(t, file, l)
	if err := w.Release(t.Context(), w.Ceiling()); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		id     int64
		layout keygen.Layout
	}{"another worker id": {6, l}, "another epoch": {5, other}} {
		if _, err := workerid.Recorded(file, workerid.Static(try.id)).Acquire(t.Context(), try.layout); !errors.Is(err, workerid.ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty name, of a variable that was not set say, gets another error than a damaged file.
func TestARecordWithoutAFileIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := workerid.Recorded("", workerid.Static(5)).Acquire(t.Context(), keygen.Twitter())
	if !errors.Is(err, workerid.ErrRecord) || !strings.Contains(err.Error(), "file name of Recorded is empty") {
		t.Error(err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// A fast clock that is corrected leaves the file ahead; it comes back at half the
// speed of time, and nobody begins below it meanwhile.
func TestAFileWithoutItsDirectorySaysWhatToDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "worker")
	for name, a := range map[string]keygen.Assigner{
		"Recorded": workerid.Recorded(file, workerid.Static(5)), "LeasedConfig.File": leasedWith(t, file),
	} {
		lease, err := a.Acquire(t.Context(), keygen.Twitter())
		if !errors.Is(err, workerid.ErrRecord) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "create the directory "+filepath.Dir(file)) {
			t.Errorf("%s: %v, %v", name, lease, err)
		}
	}
}

func leasedWith(t *testing.T, file string) keygen.Assigner {
	t.Helper()
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: keygentest.NewMemoryLedger(time.Now), Namespace: "shop", File: file})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestARecordComesBackToAClockThatWasFast(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	synctest.Test(t, func(t *testing.T) {
		l := keygen.Twitter()
		l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		const off = time.Minute
		wall := time.Now().Add(off)
		lease, err := workerid.OnWall(workerid.Recorded(file, workerid.Static(5)), func() time.Time { return wall }).Acquire(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		w := lease.(keygen.Window)
		fast := w.Ceiling()
		for begin := time.Now(); time.Since(begin) < 3*off; time.Sleep(time.Second) {
			wall = time.Now()
			ceiling, err := w.Renew(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			passed := time.Since(begin)
			want := max(fast+passed.Milliseconds()/2, l.Tick(wall.Add(w.Term())))
			if ceiling < want-10 || ceiling > want+10 { // rounded down each time
				t.Fatalf("after %v up to %d, want %d", passed, ceiling, want)
			}
		}
		if err := w.Release(t.Context(), l.Tick(wall)); err != nil {
			t.Error(err)
		}
	})
}

// wider has four more worker bits than Twitter's layout.
func wider() keygen.Layout {
	l := keygen.Twitter()
	l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 14}, {Kind: keygen.Sequence, Bits: 8}}
	return l
}

func TestARecordOfAnotherLayoutIsRefusedWithAWordOnHowToChangeIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	w := acquireLock(t, file, keygen.Twitter())
	if err := w.Release(t.Context(), w.Ceiling()); err != nil {
		t.Fatal(err)
	}
	_, err := workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), wider())
	if !errors.Is(err, workerid.ErrRecord) || !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "package workerid") {
		t.Errorf("%v", err)
	}
	whole := keygen.Twitter()
	whole.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 12}}
	if next := acquireLock(t, file, whole); next.NotBefore() != w.Ceiling() {
		t.Errorf("the same ids, with datacenter and worker as one: from %d after %d", next.NotBefore(), w.Ceiling())
	}
}

// The files are as the version before wrote them.
func TestARecordOfAVersionThatNotedNoLayoutTakesThatOfItsNextProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	const before = `{"worker":5,"epoch":"2010-11-04T01:42:54.657Z","unit":"1ms","ceiling":999999999999,"written":"2026-11-22T13:00:00Z","sum":`
	if err := os.WriteFile(file, []byte(before+strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(before+"0}"))), 10)+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := acquireLock(t, file, wider())
	if w.NotBefore() != 999999999999 {
		t.Errorf("from %d", w.NotBefore())
	}
	if err := w.Release(t.Context(), w.Ceiling()); err != nil {
		t.Fatal(err)
	}
	if _, err := workerid.Recorded(file, workerid.Static(5)).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("%v", err)
	}
}

func TestBackupWorkerIDsOfOneGeneratorAreNotThoseOfAnother(t *testing.T) {
	b := workerid.Backup(5, 5+512)
	if _, err := b.Acquire(t.Context(), keygen.Twitter()); err != nil {
		t.Fatal(err)
	}
	if lease, err := b.Acquire(t.Context(), wider()); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("%v, %v", lease, err)
	}
}

func TestAFullDiskIsAnErrorAndTheOldCeilingHolds(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gone", "worker")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	w := acquireLock(t, file, keygen.Twitter())
	before := w.Ceiling()
	if err := os.RemoveAll(filepath.Dir(file)); err != nil { // no place to write to any more
		t.Fatal(err)
	}
	for w.Ceiling() == before {
		if _, err := w.Renew(t.Context()); err != nil {
			if !errors.Is(err, workerid.ErrRecord) || w.Ceiling() != before {
				t.Errorf("%v, ceiling %d", err, w.Ceiling())
			}
			return
		}
	}
	t.Error("a ceiling was raised that could not be written")
}

func TestARecordOfNoWorkerIDIsRefused(t *testing.T) {
	for _, from := range []keygen.Assigner{nil, (*workerid.Leased)(nil)} {
		if lease, err := workerid.Recorded(filepath.Join(t.TempDir(), "worker"), from).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("%v, %v", lease, err)
		}
	}
}
