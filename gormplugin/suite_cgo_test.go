// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package gormplugin_test

import (
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/internal/testkit/gormsuite"
)

// gorm's own driver for SQLite is written in C; without cgo it compiles to one
// that only refuses.
func TestFillingOnSQLiteWithCgo(t *testing.T) {
	dsn := "file:" + filepath.Join(t.TempDir(), "suite.db") + "?_busy_timeout=3600000&_txlock=immediate"
	gormsuite.Run(t, sqliteSuite("sqlite3", dsn))
}
