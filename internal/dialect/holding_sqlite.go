// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

func readSQLiteColumn(ctx context.Context, db Querier, d Dialect, table, column string) (Column, error) {
	c := Column{Unlimited: true}
	err := db.QueryRowContext(ctx, "SELECT LOWER(type) FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE", table, column).Scan(&c.Type)
	if err != nil {
		return c, err
	}
	c.Holds = Affinity(c.Type)
	if c.Holds == HoldsClocks {
		var written string
		err = db.QueryRowContext(ctx, "SELECT CAST(? AS TEXT)", finest).Scan(&written)
		c.Precision, c.Parsed = unitOf(written), true
		return c, err
	}
	c.Collation, err = sqliteCollation(ctx, db, d, table, column)
	return c, err
}

// sqliteCollation finds the collation of a column by a test, because SQLite does not report it:
// values in a UNION with a column without rows are compared with the column's collation. The
// collation has a name if the table uses only SQLite's own collations.
func sqliteCollation(ctx context.Context, db Querier, d Dialect, table, column string) (string, error) {
	var equal int
	var made sql.NullString
	err := db.QueryRowContext(ctx, "SELECT COALESCE(SUM(n), 0), (SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE)"+
		" FROM (SELECT "+d.Quote(column)+" AS v, 0 AS n FROM "+d.Quote(table)+" WHERE 0 UNION ALL SELECT 'A', 1 UNION ALL SELECT 'a ', 2) AS tried WHERE v = 'a'",
		table).Scan(&equal, &made)
	if err != nil || equal == 0 {
		return "", err
	}
	for _, name := range collate.FindAllStringSubmatch(made.String, -1) {
		if !slices.Contains([]string{"BINARY", "NOCASE", "RTRIM"}, strings.ToUpper(name[1])) {
			return "not BINARY", nil
		}
	}
	switch {
	case made.Valid && equal == 1:
		return "NOCASE", nil
	case made.Valid && equal == 2:
		return "RTRIM", nil
	}
	return "not BINARY", nil
}

var collate = regexp.MustCompile(`(?i)\bCOLLATE\b\s*[\["'` + "`" + `]?(\w*)`)

// Affinity returns what a column of SQLite with a declared type in lower case holds: by the affinity of the type, and
// by the names under which drivers recognise times.
func Affinity(typ string) Holding {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(typ, part) })
	}
	switch {
	case typ == "date", typ == "datetime", typ == "timestamp":
		return HoldsClocks
	case has("int"):
		return HoldsIntegers
	case has("char", "clob", "text"):
		return HoldsTexts
	case typ == "", has("blob"):
		return HoldsAnything
	case has("real", "floa", "double"):
		return HoldsFloats
	}
	return HoldsNumbers
}
