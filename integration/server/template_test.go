// SPDX-License-Identifier: Apache-2.0

package server

import (
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
