package dialect

import (
	"context"
	"strings"
)

func readSQLiteColumn(ctx context.Context, db Querier, d Dialect, table, column string) (Column, error) {
	var c Column
	err := db.QueryRowContext(ctx, "SELECT LOWER(type) FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE", table, column).Scan(&c.Type)
	if err != nil {
		return c, err
	}
	c.Holds = sqliteHolds(c.Type)
	if c.Holds == HoldsClocks {
		var written string
		err = db.QueryRowContext(ctx, "SELECT CAST(? AS TEXT)", finest).Scan(&written)
		c.Precision, c.Parsed = unitOf(written), true
		return c, err
	}
	// The collation is tried out: values beside a column that gives no rows are compared
	// by the column's.
	var equal int
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT "+d.Quote(column)+" AS v FROM "+d.Quote(table)+" WHERE 0"+
		" UNION ALL SELECT 'A' UNION ALL SELECT 'a ') AS tried WHERE v = 'a'").Scan(&equal)
	if equal > 0 {
		c.Collation = "not BINARY"
	}
	return c, err
}

// sqliteHolds goes by the affinity of a declared type, and by the names under which
// drivers know times.
func sqliteHolds(typ string) Holding {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(typ, part) {
				return true
			}
		}
		return false
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
	case has("real", "float", "double"):
		return HoldsFloats
	}
	return HoldsNumbers
}
