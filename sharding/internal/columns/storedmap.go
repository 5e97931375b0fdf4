// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"context"
	"database/sql"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// hasFenceTable are the queries whether a database has the table in which package slotstore notes the tables with fences, and whether it may
// be read.
var hasFenceTable = map[string]string{
	"mysql":    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'shard_fence_table'",
	"postgres": "SELECT CASE WHEN has_table_privilege(to_regclass('shard_fence_table'), 'SELECT') THEN 1 ELSE 0 END",
	"sqlite":   "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'shard_fence_table'",
}

// StoredMap returns the name of the stored map that assigns the slots of one of some tables of a database, "" if there is none.
func StoredMap(ctx context.Context, d dialect.Dialect, db dialect.Querier, tables []string) (name string, err error) {
	var has int
	if err := db.QueryRowContext(ctx, hasFenceTable[d.Name()]).Scan(&has); err != nil || has == 0 {
		return "", err
	}
	args := make([]any, len(tables))
	for i, table := range tables {
		args[i] = table
	}
	var found sql.NullString
	query := `SELECT MIN("name") FROM "shard_fence_table" WHERE "table_name" IN (?` + strings.Repeat(", ?", len(tables)-1) + `)`
	err = db.QueryRowContext(ctx, dialect.Text(d, query), args...).Scan(&found)
	return found.String, err
}
