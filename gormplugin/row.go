package gormplugin

import (
	"context"
	"database/sql"

	"github.com/shardid/shardid/internal/sqlrun"
)

// errorRow returns a *sql.Row whose Scan and Err return err.
func errorRow(err error) *sql.Row {
	db := sqlrun.Refusing(err)
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(context.Background(), "")
}
