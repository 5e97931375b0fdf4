// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"fmt"
)

// EstimateBytes returns the approximate size in bytes of a table and its indexes, from the
// database's statistics; -1 on SQLite, which has none.
func EstimateBytes(ctx context.Context, db Querier, d Dialect, table string) (bytes int64, err error) {
	query := map[string]string{
		"mysql":    "SELECT COALESCE(MAX(DATA_LENGTH + INDEX_LENGTH), -1) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
		"postgres": "SELECT COALESCE(MAX(pg_total_relation_size(oid)), -1) FROM pg_class WHERE oid = to_regclass($1)",
	}[d.Name()]
	if query == "" {
		return -1, nil
	}
	err = db.QueryRowContext(ctx, query, table).Scan(&bytes)
	return bytes, err
}

// EstimateRows returns the approximate number of rows of a table, from the database's statistics,
// which may be old. SQLite has none, so there it counts.
func EstimateRows(ctx context.Context, db Querier, d Dialect, table string) (rows int64, err error) {
	query := map[string]string{
		"mysql":    "SELECT COALESCE(MAX(TABLE_ROWS), -1) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?",
		"postgres": "SELECT COALESCE(MAX(CAST(reltuples AS bigint)), -1) FROM pg_class WHERE oid = to_regclass($1)",
	}[d.Name()]
	if query == "" {
		err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+d.Quote(table)).Scan(&rows)
	} else {
		err = db.QueryRowContext(ctx, query, table).Scan(&rows)
	}
	switch {
	case err != nil:
		return 0, err
	case rows < 0:
		return 0, fmt.Errorf("the table %s does not exist, or has no statistics yet", table)
	}
	return rows, nil
}
