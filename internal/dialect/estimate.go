// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// WithStatistics calls do with a connection of db that reads the present statistics of tables.
func WithStatistics(ctx context.Context, db *sql.DB, d Dialect, do func(Querier) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	restore, err := PresentStatistics(ctx, conn, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore(context.WithoutCancel(ctx))) }()
	return do(conn)
}

// PresentStatistics switches off a cache of the session: MySQL 8 and newer answer sizes of tables, their numbers of rows and
// AUTO_INCREMENT from one that may be a day old. Other databases have no such variable. restore sets the session's
// former value; if that fails, the pool drops the connection.
func PresentStatistics(ctx context.Context, conn *sql.Conn, d Dialect) (restore func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	if d.Name() != (MySQL{}).Name() {
		return nothing, nil
	}
	var name string
	var expiry int64
	err = conn.QueryRowContext(ctx, "SHOW SESSION VARIABLES LIKE 'information_schema_stats_expiry'").Scan(&name, &expiry)
	if errors.Is(err, sql.ErrNoRows) { // MariaDB and MySQL 5.7
		return nothing, nil
	}
	if err != nil {
		return nothing, err
	}
	restore = func(ctx context.Context) error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("SET SESSION information_schema_stats_expiry = %d", expiry))
		if err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // Raw returns this error
		}
		return err
	}
	if _, err = conn.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0"); err != nil {
		return nothing, errors.Join(err, restore(context.WithoutCancel(ctx))) // the error does not tell whether the server has applied it
	}
	return restore, nil
}

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

// EstimateRows returns the approximate number of rows of a table, from the database's statistics:
// those of WithStatistics are the present ones. SQLite has none, so there it counts.
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
