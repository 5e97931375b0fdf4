// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Estimate returns about how many rows a table has, and its size in bytes. PostgreSQL counts the
// rows of a table that nobody has analyzed. SQLite keeps no estimates: it counts the rows, and the
// size is that of the file.
func Estimate(ctx context.Context, c *backend.Session, table string) (rows, bytes int64, err error) {
	query := "SELECT TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"
	args := []any{table}
	switch c.Database.Name() {
	case "postgres":
		query = "SELECT CASE WHEN c.reltuples < 0 THEN (SELECT COUNT(*) FROM " + c.Database.Quote(table) + ") ELSE c.reltuples::bigint END, pg_total_relation_size(c.oid)" +
			" FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = ?"
	case "sqlite":
		query = "SELECT (SELECT COUNT(*) FROM " + c.Database.Quote(table) + "), page_count * page_size FROM pragma_page_count, pragma_page_size"
		args = nil
	}
	err = c.QueryRowContext(ctx, query, args...).Scan(&rows, &bytes)
	return rows, bytes, err
}
