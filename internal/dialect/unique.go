// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

var uniqueColumns = map[string]string{
	"mysql": `SELECT INDEX_NAME, CASE WHEN SUB_PART IS NULL THEN COLUMN_NAME END, INDEX_NAME = 'PRIMARY', NULLABLE <> 'YES', FALSE FROM information_schema.STATISTICS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX`,
	"postgres": `SELECT i.relname::text, a.attname::text, x.indisprimary,
		x.indpred IS NULL AND x.indimmediate AND x.indisvalid AND COALESCE(a.attnotnull, FALSE), x.indpred IS NOT NULL FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		CROSS JOIN LATERAL generate_series(1, x.indnkeyatts::int) u (n)
		LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[u.n - 1] AND a.attnum <> 0
		WHERE x.indrelid = to_regclass(quote_ident($1)) AND x.indisunique ORDER BY NOT x.indisprimary, i.relname, u.n`,
	// SQLite has no index for an INTEGER PRIMARY KEY. Other primary keys of it may be NULL.
	"sqlite": `SELECT k, c, k = '', total, partial FROM (
		SELECT i.name AS k, x.name AS c, i.origin <> 'pk' AS later, x.seqno AS n,
		NOT i.partial AND EXISTS (SELECT 1 FROM pragma_table_info(?1) t WHERE t.cid = x.cid AND t."notnull") AS total, i.partial
		FROM pragma_index_list(?1) i JOIN pragma_index_xinfo(i.name) x WHERE i."unique" AND x.key UNION ALL
		SELECT '', name, 0, pk, 1, 0 FROM pragma_table_info(?1) t WHERE pk > 0
		AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) p WHERE p.origin = 'pk')) ORDER BY later, k, n`,
}

// Key is a unique key of a table.
type Key struct {
	// Columns are its columns in lower case. A part that is not a whole column, but an expression or a prefix of a text, is "".
	Columns []string
	Primary bool // it is the primary key, and its columns are never NULL
	// Total: no two rows are equal in its columns, because these are never NULL, and it is a key of all rows.
	Total bool
	// Partial: it is a key of some rows only, so others may have the same values.
	Partial bool
}

// HasUniqueKey reports whether a table in the present database has a unique key of exactly these columns.
func HasUniqueKey(ctx context.Context, db Lister, d Dialect, table string, columns ...string) (bool, error) {
	keys, err := UniqueKeys(ctx, db, d, table)
	return slices.ContainsFunc(keys, func(key Key) bool { return slices.EqualFunc(key.Columns, columns, strings.EqualFold) }), err
}

// UniqueKeys returns the unique keys of a table in the present database, the primary key first.
func UniqueKeys(ctx context.Context, db Lister, d Dialect, table string) (keys []Key, err error) {
	var last sql.NullString
	err = Each(ctx, db, func(rows *sql.Rows) error {
		var name, column sql.NullString
		var primary, total, partial bool
		if err := rows.Scan(&name, &column, &primary, &total, &partial); err != nil {
			return err
		}
		if name != last || len(keys) == 0 {
			keys, last = append(keys, Key{Primary: primary, Total: true, Partial: partial}), name
		}
		key := &keys[len(keys)-1]
		key.Columns, key.Total = append(key.Columns, strings.ToLower(column.String)), key.Total && total && column.Valid
		return nil
	}, uniqueColumns[d.Name()], table)
	if err == nil && len(keys) == 0 && d.Name() == "mysql" {
		err = lacksUniqueKeys(ctx, db, d, table)
	}
	return keys, err
}

var errInterrupted = errors.New("the query was interrupted")

// lacksUniqueKeys returns an error unless a table has no unique key. MariaDB answers a query of information_schema.STATISTICS
// without rows if it is interrupted, by KILL QUERY or max_statement_time, while the server opens the table. It answers
// SHOW INDEX with an error then.
func lacksUniqueKeys(ctx context.Context, db Lister, d Dialect, table string) error {
	err := Each(ctx, db, func(*sql.Rows) error {
		return fmt.Errorf("unique keys of %s: %w", table, errInterrupted)
	}, "SHOW INDEX FROM "+d.Quote(table)+" WHERE Non_unique = 0")
	if FaultOf(err) != NoFault { // the table does not exist, or its user may not see it
		return nil
	}
	return err
}
