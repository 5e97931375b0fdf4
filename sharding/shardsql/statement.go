package shardsql

import (
	"context"
	"database/sql/driver"
)

// statement is a text that is executed several times on one connection.
type statement struct {
	conn  *conn
	text  string
	inner map[preparedAs]*shared // by where and as what the databases prepared it
}

var (
	_ driver.StmtQueryContext  = (*statement)(nil)
	_ driver.StmtExecContext   = (*statement)(nil)
	_ driver.NamedValueChecker = (*statement)(nil)
)

// NumInput is unknown: the inner driver counts.
func (s *statement) NumInput() int { return -1 }

// CheckNamedValue leaves arguments to the inner driver.
func (s *statement) CheckNamedValue(a *driver.NamedValue) error { return value(a) }

// QueryContext sends the query where its rows are.
func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s, s.text, args)
}

// ExecContext sends the statement where its rows are.
func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s, s.text, args)
}

// Query is QueryContext without a context.
func (s *statement) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

// Exec is ExecContext without a context.
func (s *statement) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, v := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return all
}
