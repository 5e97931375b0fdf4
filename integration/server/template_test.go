// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestTemplateIsMadeOnceForAllWhoAskAtOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where macOS keeps caches
	program, err := mariadb.program.find()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	infos := make([]os.FileInfo, 4)
	for i := range infos {
		wg.Go(func() {
			template, err := mariadb.template(t.Context(), program)
			if err != nil {
				t.Error(err)
				return
			}
			if infos[i], err = os.Stat(filepath.Join(template, "ibdata1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, info := range infos {
		if !os.SameFile(infos[0], info) {
			t.Error("the template was made more than once")
		}
	}
}

func TestInterruptedTemplateIsMadeAnew(t *testing.T) {
	template := filepath.Join(t.TempDir(), "template")
	stale := filepath.Join(template+".unfinished", "half-written")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := mariadb.program.find()
	if err != nil {
		t.Fatal(err)
	}
	if err := mariadb.makeTemplate(t.Context(), program, template); err != nil {
		t.Fatal(err)
	}
	assertNoFile(t, filepath.Join(template, "half-written"))
	if _, err := os.Stat(filepath.Join(template, "ibdata1")); err != nil {
		t.Error(err)
	}
}

func TestACopyOfATemplateHasItsBytes(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	files := map[string][]byte{"empty": nil, "text": []byte("text"), "zeros": make([]byte, 3*len(zeros)+1), "mixed": make([]byte, 5*len(zeros))}
	copy(files["mixed"][2*len(zeros)-1:], "across two blocks")
	if err := os.Mkdir(filepath.Join(from, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(from, "sub", name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyData(to, from); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(to, "sub", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want %d, or others: %v", name, len(got), len(want), err)
		}
	}
}
