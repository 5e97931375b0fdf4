// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"strings"
)

var ownValues = map[string]string{
	"mysql": `SELECT COLUMN_NAME, COALESCE(COLUMN_DEFAULT, ''), EXTRA FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?`,
	// A column of a domain has the domain's default unless it has its own. LOCALTIMESTAMP, LOCALTIME and the names of users have no parentheses.
	"postgres": `SELECT column_name, value, CASE WHEN is_identity = 'YES' OR value LIKE 'nextval(%' THEN 'auto_increment'
		WHEN is_generated = 'ALWAYS' THEN 'stored generated' WHEN value IN ('LOCALTIMESTAMP', 'LOCALTIME', 'SESSION_USER', 'SYSTEM_USER', 'USER') THEN 'default_generated' ELSE '' END
		FROM information_schema.columns c CROSS JOIN LATERAL (SELECT COALESCE(c.column_default, CASE WHEN c.domain_name IS NOT NULL THEN (SELECT d.domain_default
			FROM information_schema.domains d WHERE d.domain_schema = c.domain_schema AND d.domain_name = c.domain_name) END, '') AS value) v WHERE table_schema = current_schema() AND table_name = $1`,
	// An INTEGER PRIMARY KEY of one column is the row's number.
	"sqlite": `SELECT name, COALESCE(dflt_value, ''), CASE WHEN pk = 1 AND upper(type) = 'INTEGER'
		AND (SELECT COUNT(*) FROM pragma_table_info(?1) WHERE pk > 0) = 1 THEN 'auto_increment' ELSE '' END FROM pragma_table_info(?1)`,
}

var emptyColumns = map[string]string{
	"mysql": `SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND IS_NULLABLE = 'YES' AND EXTRA = ''
		AND (COLUMN_DEFAULT IS NULL OR COLUMN_DEFAULT = 'NULL' AND VERSION() LIKE '%MariaDB%')`, // where a text has quotes
	"postgres": `SELECT LOWER(a.attname::text) FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped AND t.typtype <> 'd' AND NOT a.attnotnull AND NOT a.atthasdef`,
	"sqlite": `SELECT LOWER(name) FROM pragma_table_info(?) WHERE dflt_value IS NULL AND pk = 0 AND "notnull" = 0`,
}

// EmptyColumns returns the columns, in lower case, that have NULL in a row without a value: those that may be NULL and
// have no default.
func EmptyColumns(ctx context.Context, db Lister, d Dialect, table string) (names []string, err error) {
	err = Each(ctx, db, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, emptyColumns[d.Name()], table)
	return names, err
}

// Own says which values of a column the database computes itself. Another database with the same
// rows may compute other values.
type Own struct {
	Numbered bool // a number, if there is no value
	Varies   bool // a computed default: the time, a UUID
	Touched  bool // ON UPDATE CURRENT_TIMESTAMP
	Computed bool // GENERATED ALWAYS AS an expression
}

// OwnValues returns the columns of a table of the present database whose values the database
// computes, by their names in lower case.
func OwnValues(ctx context.Context, db Lister, d Dialect, table string) (map[string]Own, error) {
	own := map[string]Own{}
	err := Each(ctx, db, func(rows *sql.Rows) error {
		var column, value, extra string
		if err := rows.Scan(&column, &value, &extra); err != nil {
			return err
		}
		value, extra = strings.ToLower(value), strings.ToLower(extra)
		found := Own{
			Numbered: strings.Contains(extra, "auto_increment"),
			Varies:   strings.HasPrefix(value, "current_") || strings.Contains(extra, "default_generated") || !strings.HasPrefix(value, "'") && strings.Contains(value, "("),
			Touched:  strings.Contains(extra, "on update"),
			Computed: strings.HasSuffix(extra, " generated"),
		}
		if found != (Own{}) {
			own[strings.ToLower(column)] = found
		}
		return nil
	}, ownValues[d.Name()], table)
	return own, err
}
