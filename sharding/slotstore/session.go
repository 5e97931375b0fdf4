// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// base is a database with its dialect. Its statements have names in double quotes and ? for
// arguments, whatever the server.
type base struct {
	db     *sql.DB
	server dialect.Server
}

func open(ctx context.Context, db *sql.DB) (base, error) {
	server, err := dialect.Detect(ctx, db)
	return base{db, server}, err
}

// tx is a transaction at the level read committed.
type tx struct {
	*sql.Tx
	server dialect.Server
}

// do runs f in a transaction, and again after a conflict with another writer; f must be repeatable.
func (b base) do(ctx context.Context, f func(tx) error) error {
	return sqlrun.Retry(ctx, nil, func() error { return b.once(ctx, f) })
}

func (b base) once(ctx context.Context, f func(tx) error) error {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if b.server.Name() == "sqlite" {
		options = nil // SQLite has only one level
	}
	return sqlrun.InTx(ctx, b.db, options, func(begun *sql.Tx) error { return f(tx{begun, b.server}) })
}

// execAll executes statements on the database or one connection, and repeats those that conflict
// with other writers.
func (b base) execAll(ctx context.Context, on Execer, statements []string) error {
	for _, statement := range statements {
		err := sqlrun.Retry(ctx, nil, func() error {
			_, err := on.ExecContext(ctx, dialect.Text(b.server, statement))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b base) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return b.db.QueryRowContext(ctx, dialect.Text(b.server, statement), args...)
}

func (t tx) exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.ExecContext(ctx, dialect.Text(t.server, statement), args...)
	return err
}

// insertRows is the number of rows of one INSERT, well below the databases' limits on arguments.
const insertRows = 500

// insert inserts rows of equal width into a table with its columns; ending follows the values.
func (t tx) insert(ctx context.Context, into string, rows [][]any, ending string) error {
	for some := range slices.Chunk(rows, insertRows) {
		group := "(?" + strings.Repeat(", ?", len(some[0])-1) + ")"
		statement := "INSERT INTO " + into + " VALUES " + group + strings.Repeat(", "+group, len(some)-1) + ending
		if err := t.exec(ctx, statement, slices.Concat(some...)...); err != nil {
			return err
		}
	}
	return nil
}

func (t tx) row(ctx context.Context, statement string, args ...any) *sql.Row {
	return t.QueryRowContext(ctx, dialect.Text(t.server, statement), args...)
}

// each calls scan for each row of a query.
func (t tx) each(ctx context.Context, scan func(*sql.Rows) error, statement string, args ...any) error {
	return sqlrun.Each(ctx, t, scan, dialect.Text(t.server, statement), args...)
}
