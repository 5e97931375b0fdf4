// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
)

// Whole is a column's type and the largest id that it can hold as an exact integer. Most is 0 if
// the type holds no integers, or not all of them exactly.
type Whole struct {
	Type string // in the server's form; "" if the column does not exist
	Most int64
}

// WholeNumbers returns the type of a column of a table in the present database. A server may
// truncate a number that does not fit without an error: MySQL and MariaDB do unless sql_mode has
// STRICT_ALL_TABLES.
func WholeNumbers(ctx context.Context, db Querier, d Dialect, table, column string) (w Whole, err error) {
	err = db.QueryRowContext(ctx, columnTypes[d.Name()], table, column).Scan(&w.Type)
	if errors.Is(err, sql.ErrNoRows) {
		return Whole{}, nil
	}
	w.Most = mostOf(d, strings.ToLower(w.Type))
	return w, err
}

var columnTypes = map[string]string{
	"mysql": `SELECT COLUMN_TYPE FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = ?`,
	"postgres": `SELECT format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = to_regclass(quote_ident($1)) AND attname = $2 AND NOT attisdropped`,
	"sqlite": `SELECT type FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE`,
}

// PostgresColumnType is an expression for the type of a column of PostgreSQL, which is a row a of pg_attribute. An
// enumerated type, a domain and an array of one are followed by what they consist of, because each database has its own.
const PostgresColumnType = `format_type(a.atttypid, a.atttypmod) || COALESCE((SELECT CASE
	WHEN e.typtype = 'e' THEN ' (' || (SELECT string_agg(quote_literal(l.enumlabel), ', ' ORDER BY l.enumsortorder) FROM pg_enum l WHERE l.enumtypid = e.oid) || ')'
	WHEN e.typtype = 'd' THEN ' AS ' || format_type(e.typbasetype, e.typtypmod) || CASE WHEN e.typnotnull THEN ' NOT NULL' ELSE '' END ||
		COALESCE((SELECT string_agg(' ' || pg_get_constraintdef(k.oid), '' ORDER BY k.conname) FROM pg_constraint k WHERE k.contypid = e.oid AND k.contype = 'c'), '') END
	FROM pg_type t JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END WHERE t.oid = a.atttypid), '')`

// integerBits maps the names of integer types to their widths.
var integerBits = map[string]uint{
	"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64,
}

// mostOf returns the largest id that a column of a type in lower case can hold. On SQLite only texts and
// floating-point numbers convert integers.
func mostOf(d Dialect, kind string) int64 {
	if d.Name() == "sqlite" {
		if holds := Affinity(kind); holds == HoldsTexts || holds == HoldsFloats {
			return 0
		}
		return math.MaxInt64
	}
	name, _ := typeOf(kind)
	switch bits := integerBits[name]; {
	case bits == 0:
		return 0
	case bits == 64:
		return math.MaxInt64
	case strings.Contains(kind, " unsigned"):
		return 1<<bits - 1
	default:
		return 1<<(bits-1) - 1
	}
}

// Engine describes the properties of a table's storage engine that make it unfit for a counter.
type Engine struct {
	Name string // "" if the table does not exist, or the database has no engines

	Forgets bool // it has no transactions: a crash of the server may lose acknowledged writes
	Remote  bool // the rows are on another server, whose clock, identity and statement results are not visible
}

// elsewhere lists the engines whose tables are on other servers.
const elsewhere = `'SPIDER', 'FEDERATED', 'CONNECT'`

// EngineOf returns the storage engine of a table of the present database. Only MySQL and
// MariaDB have engines.
func EngineOf(ctx context.Context, db Querier, d Dialect, table string) (e Engine, err error) {
	if d.Name() != (MySQL{}).Name() {
		return e, nil
	}
	err = db.QueryRowContext(ctx, `SELECT t.ENGINE, COALESCE(e.TRANSACTIONS, '') = 'NO', t.ENGINE IN (`+elsewhere+`)
		FROM information_schema.TABLES t LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
		WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = ? AND t.ENGINE IS NOT NULL`, table).Scan(&e.Name, &e.Forgets, &e.Remote)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return e, err
}
