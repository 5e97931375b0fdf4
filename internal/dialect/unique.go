// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const (
	mysqlUnique = `SELECT INDEX_NAME, CASE WHEN SUB_PART IS NULL THEN COLUMN_NAME END, INDEX_NAME = 'PRIMARY' FROM information_schema.STATISTICS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX`
	postgresUnique = `SELECT i.relname::text, a.attname::text, x.indisprimary FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		CROSS JOIN LATERAL generate_series(1, x.indnkeyatts::int) u (n)
		LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[u.n - 1] AND a.attnum <> 0
		WHERE x.indrelid = to_regclass(quote_ident($1)) AND x.indisunique ORDER BY NOT x.indisprimary, i.relname, u.n`
	// SQLite has no index for an INTEGER PRIMARY KEY. Other primary keys of it may be NULL.
	sqliteUnique = `SELECT k, c, k = '' FROM (
		SELECT i.name AS k, x.name AS c, i.origin <> 'pk' AS later, x.seqno AS n FROM pragma_index_list(?1) i JOIN pragma_index_xinfo(i.name) x
		WHERE i."unique" AND x.key UNION ALL
		SELECT '', name, 0, pk FROM pragma_table_info(?1) t WHERE pk > 0
		AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) p WHERE p.origin = 'pk')) ORDER BY later, k, n`
)

// UniqueKeys returns the columns of each unique key of a table in the present database, those of
// the primary key first. A part of a key that is not a whole column, but an expression or a prefix
// of a text, is "". primary reports whether the first key is a primary key whose columns are never NULL.
func UniqueKeys(ctx context.Context, db Lister, d Dialect, table string) (keys [][]string, primary bool, err error) {
	query := mysqlUnique
	switch d.Name() {
	case "postgres":
		query = postgresUnique
	case "sqlite":
		query = sqliteUnique
	}
	if keys, primary, err = uniqueKeys(ctx, db, query, table); err == nil && len(keys) == 0 && d.Name() == "mysql" {
		err = lacksUniqueKeys(ctx, db, d, table)
	}
	return keys, primary, err
}

func uniqueKeys(ctx context.Context, db Lister, query, table string) (keys [][]string, primary bool, err error) {
	var last sql.NullString
	err = Each(ctx, db, func(rows *sql.Rows) error {
		var key, column sql.NullString
		var never bool
		if err := rows.Scan(&key, &column, &never); err != nil {
			return err
		}
		primary = primary || never
		if key != last || len(keys) == 0 {
			keys, last = append(keys, nil), key
		}
		keys[len(keys)-1] = append(keys[len(keys)-1], column.String)
		return nil
	}, query, table)
	return keys, primary, err
}

var errInterrupted = errors.New("the query was interrupted")

// lacksUniqueKeys returns an error unless a table has no unique key. MariaDB answers a query of information_schema.STATISTICS
// without rows if it is interrupted, by KILL QUERY or max_statement_time, while the server opens the table. It answers
// SHOW INDEX with an error then.
func lacksUniqueKeys(ctx context.Context, db Lister, d Dialect, table string) error {
	rows, err := db.QueryContext(ctx, "SHOW INDEX FROM "+d.Quote(table)+" WHERE Non_unique = 0")
	if err != nil {
		if FaultOf(err) != NoFault { // the table does not exist, or its user may not see it
			return nil
		}
		return err
	}
	defer func() { _ = rows.Close() }() // closed after the error is known
	if rows.Next() {
		err = fmt.Errorf("unique keys of %s: %w", table, errInterrupted)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}
