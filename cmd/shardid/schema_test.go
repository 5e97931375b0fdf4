// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestSchemaPrintsWhatADatabaseTakes(t *testing.T) {
	o := succeed(t, "schema", "--dialect", "sqlite")
	path := newFile(t, o.stdout+o.stdout) // safe to run again
	var n int
	if err := openFile(t, path).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('leaf_alloc', 'WORKER_NODE')").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d of our tables, %v", n, err)
	}
	for kind, quoted := range map[string]string{"mysql": "`leaf_alloc`", "mariadb": "`leaf_alloc`", "postgres": `"leaf_alloc"`} {
		if o := succeed(t, "schema", "--dialect", kind); !strings.Contains(o.stdout, quoted) {
			t.Errorf("%s: %s", kind, o.stdout)
		}
	}
}
