// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package sqlx_test

import (
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
)

func TestSqlxHookOnSQLiteWithCgo(t *testing.T) {
	db, err := sqlx.Open("sqlite3", filepath.Join(t.TempDir(), "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	sqlxDatabase{db, 32766, onConflict, "excluded.%s", "CAST(:id AS INTEGER)", "DATETIME"}.tell(t)
}
