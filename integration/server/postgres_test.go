// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPostgresServersRunAtOnceWithDataOfTheirOwn(t *testing.T) {
	first, second := RunPostgres(t), RunPostgres(t)
	firstDB, secondDB := first.Open(t, "shop"), second.Open(t, "shop")
	mustExec(t, firstDB, "CREATE TABLE only_in_first (id BIGINT PRIMARY KEY)")

	if _, err := secondDB.ExecContext(t.Context(), "INSERT INTO only_in_first VALUES (1)"); err == nil {
		t.Error("the second server has the first one's table")
	}
	if first.DSN("") == second.DSN("") {
		t.Errorf("both servers have the DSN %s", first.DSN(""))
	}
	mustExec(t, first.Open(t, "shop"), "DROP TABLE only_in_first") // the database that is there
}

func TestSettingsOverrideTheUsualOnes(t *testing.T) {
	p := RunPostgres(t, "max_connections=7", "shared_buffers=1MB", "default_transaction_isolation=repeatable read", "fsync=on")
	db := p.Open(t, "shop")
	for name, want := range map[string]string{"max_connections": "7", "shared_buffers": "1MB", "default_transaction_isolation": "repeatable read", "fsync": "on", "synchronous_commit": "on"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestStartErrorOfPostgresQuotesItsLogAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", openDir(t))
	_, err := StartPostgres(t.Context(), "no_such_setting=1")
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("StartPostgres says %v, want its complaint about the setting", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v (%v)", left, err)
	}
}

// openDir returns a temporary directory that other users can reach.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the server's user must get in
		t.Fatal(err)
	}
	return dir
}

func TestTemplateOfPostgresIsMadeWhereNoneIs(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where macOS keeps caches
	program, err := postgres.program.find()
	if err != nil {
		t.Fatal(err)
	}
	template, err := postgres.template(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(template, "PG_VERSION")); err != nil {
		t.Error(err)
	}
}

func TestTheNewestInstalledVersionIsFound(t *testing.T) {
	t.Setenv("PATH", "")
	root := t.TempDir()
	for _, version := range []string{"9.6", "16", "15", "8"} {
		dir := filepath.Join(root, "v", version, "bin")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "postgres"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	got, err := program{"postgres", []string{filepath.Join(root, "v", "*", "bin")}, "postgresql"}.find()
	if want := filepath.Join(root, "v", "16", "bin", "postgres"); err != nil || got != want {
		t.Errorf("found %s, %v; want %s", got, err, want)
	}
}
