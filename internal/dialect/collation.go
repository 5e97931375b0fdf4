package dialect

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// Folding returns the collation of a column that takes texts of different bytes
// for equal, in upper and lower case say; "" for one that compares bytes, that holds
// no text, or that does not exist. SQLite tells no names of collations: of it the
// answer is "not BINARY". PostgreSQL is not asked.
func Folding(ctx context.Context, db Querier, d Dialect, table, column string) (string, error) {
	switch d.Name() {
	case "mysql":
		return foldingMySQL(ctx, db, table, column)
	case "sqlite":
		return foldingSQLite(ctx, db, d, table, column)
	}
	return "", nil
}

func foldingMySQL(ctx context.Context, db Querier, table, column string) (string, error) {
	var name string
	err := db.QueryRowContext(ctx, "SELECT COALESCE(COLLATION_NAME, 'binary') FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = ?", table, column).Scan(&name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case name == "binary" || strings.HasSuffix(name, "_bin"):
		return "", err
	}
	return name, err
}

// foldingSQLite tries the collation out: values beside a column that gives no rows
// are compared by the column's.
func foldingSQLite(ctx context.Context, db Querier, d Dialect, table, column string) (string, error) {
	var equal int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE", table, column).Scan(&equal)
	if err != nil || equal == 0 {
		return "", err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT "+d.Quote(column)+" AS v FROM "+d.Quote(table)+" WHERE 0"+
		" UNION ALL SELECT 'A' UNION ALL SELECT 'a ') AS tried WHERE v = 'a'").Scan(&equal)
	if equal == 0 {
		return "", err
	}
	return "not BINARY", err
}
