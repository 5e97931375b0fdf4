// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServersOfEveryKindRunInADirectoryThatIsMadeInMemory(t *testing.T) {
	onEachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		base := openDir(t)
		m, err := makeMemory(base)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", m.Dir())
		left, err := k.start(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(left.dataDir(), m.Dir()+"/") {
			t.Errorf("the data is in %s", left.dataDir())
		}
		if at := filepath.Join(m.Dir(), "file"); os.WriteFile(at, []byte("x"), 0o600) != nil {
			t.Errorf("no file can be written: %s", at)
		}
		left.dir.owner.release() // as if its process had been killed
		if err := m.Remove(); err != nil {
			t.Fatal(err)
		}
		if pids := allIn(base); len(pids) > 0 {
			t.Errorf("the processes %v are left", pids)
		}
		if files, err := os.ReadDir(base); err != nil || len(files) != 0 {
			t.Errorf("left: %v, %v", files, err)
		}
	})
}

func TestTheMemoryOfAKilledRunIsGivenBackByTheNext(t *testing.T) {
	base := openDir(t)
	killed, err := makeMemory(base)
	if err != nil {
		t.Fatal(err)
	}
	living, err := makeMemory(base)
	if err != nil {
		t.Fatal(err)
	}
	killed.dir.owner.release()
	next, err := makeMemory(base)
	if err != nil {
		t.Fatal(err)
	}
	assertNoFile(t, killed.Dir())
	for _, m := range []*Memory{living, next} {
		if _, err := os.Stat(m.Dir()); err != nil {
			t.Error(err)
		}
		if err := m.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFileSystemWithoutRoomHoldsNoRun(t *testing.T) {
	for _, files := range []string{"/proc", filepath.Join(t.TempDir(), "missing")} {
		if holdsARun(files) {
			t.Errorf("%s", files)
		}
	}
}
