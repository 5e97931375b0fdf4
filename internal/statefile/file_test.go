// SPDX-License-Identifier: Apache-2.0

//go:build unix

package statefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/internal/statefile"
)

func TestReplaceLeavesTheNewContentAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state")
	for _, content := range []string{"first", "", "the third is longer"} {
		if err := statefile.Replace(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAReaderNeverFindsHalfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 100_000)}
	if err := statefile.Replace(file, []byte(contents[0])); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 50 {
			if err := statefile.Replace(file, []byte(contents[i%2])); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		got, err := os.ReadFile(file)
		if err != nil || string(got) != contents[0] && string(got) != contents[1] {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	writer.Wait()
}

func TestReplaceInADirectoryThatIsGoneIsAnError(t *testing.T) {
	if err := statefile.Replace(filepath.Join(t.TempDir(), "gone", "state"), nil); err == nil {
		t.Error("no error")
	}
}

func TestALockIsHeldOnceUntilItIsClosed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	first, err := statefile.Lock(file)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := statefile.Lock(file); err == nil || second != nil || !strings.Contains(err.Error(), "another process has locked it") {
		t.Errorf("a second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := statefile.Lock(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestASumIsOfTheWholeValue(t *testing.T) {
	type record struct{ A, B int }
	one, same, other := statefile.Sum(record{1, 2}), statefile.Sum(record{1, 2}), statefile.Sum(record{2, 1})
	if one != same || one == other {
		t.Error("sums do not tell values apart")
	}
}

func TestAFileThatCannotBeMadeSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "missing", "state"):  "create the directory " + filepath.Join(dir, "missing"),
		filepath.Join(dir, "file", "no", "way"): "not a directory",
	} {
		_, locked := statefile.Lock(name)
		for how, err := range map[string]error{"locked": locked, "replaced": statefile.Replace(name, nil)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}
