package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// errorRow returns a *sql.Row whose Scan and Err return err. database/sql makes
// such rows only from a query that failed, so one is made to fail.
func errorRow(err error) *sql.Row {
	db := sql.OpenDB(refusal{err})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(context.Background(), "")
}

// refusal is a connector that never connects.
type refusal struct{ err error }

var (
	_ driver.Connector = refusal{}
	_ driver.Driver    = refusal{}
)

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }
func (r refusal) Driver() driver.Driver                        { return r }
func (r refusal) Open(string) (driver.Conn, error)             { return nil, r.err }
