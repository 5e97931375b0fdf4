package sqlxhook_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// silent is a database that answers every statement with one row affected. Each
// first calls exec, if that is set.
type silent struct{ exec func(query string) error }

var (
	_ driver.Connector     = silent{}
	_ driver.ExecerContext = silent{}
	_ driver.Tx            = silent{}
)

func (s silent) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s silent) Driver() driver.Driver                        { return nil }
func (s silent) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s silent) Close() error                                 { return nil }
func (s silent) Begin() (driver.Tx, error)                    { return s, nil }
func (s silent) Commit() error                                { return nil }
func (s silent) Rollback() error                              { return nil }

func (s silent) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	if s.exec != nil {
		if err := s.exec(query); err != nil {
			return nil, err
		}
	}
	return driver.RowsAffected(1), nil
}

func openSilent(t testing.TB, exec func(query string) error) *sql.DB {
	t.Helper()
	db := sql.OpenDB(silent{exec})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
