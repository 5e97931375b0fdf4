package sqlrun

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Refusing returns a database all of whose statements fail with err. database/sql
// makes a row with an error only from a query that failed.
func Refusing(err error) *sql.DB { return sql.OpenDB(refusal{err}) }

// refusal is a connector that never connects.
type refusal struct{ err error }

var (
	_ driver.Connector = refusal{}
	_ driver.Driver    = refusal{}
)

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }
func (r refusal) Driver() driver.Driver                        { return r }
func (r refusal) Open(string) (driver.Conn, error)             { return nil, r.err }
