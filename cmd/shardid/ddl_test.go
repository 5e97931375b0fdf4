// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDDLSaysThatThereIsNothingToDo(t *testing.T) {
	config, dir := newConfig(t, shardsJSON), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00001_orders.sql"), []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(verb string, args ...string) outcome {
		t.Helper()
		return succeed(t, append([]string{"ddl", verb, "--config", config, "--dir", dir}, args...)...)
	}
	if o := run("up"); strings.Contains(o.stderr, "every version") {
		t.Errorf("%q", o.stderr)
	}
	for _, verb := range []string{"up", "plan"} {
		if o := run(verb); o.stdout != "" || o.stderr != "every version is applied\n" {
			t.Errorf("%s: %q, %q", verb, o.stdout, o.stderr)
		}
		if o := run(verb, "--to", "1"); o.stdout != "" || o.stderr != "every version up to 1 is applied\n" {
			t.Errorf("%s --to 1: %q, %q", verb, o.stdout, o.stderr)
		}
	}
}
