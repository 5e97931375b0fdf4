// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// session is one pinned connection: settings and counters are read on the connection where
// they were set, and a pool of one connection is enough.
type session struct {
	*sql.Conn
	dialect.Server
}

// withSession runs f on a connection of db, and repeats it when another writer conflicts; f
// must be repeatable.
func withSession(ctx context.Context, db *sql.DB, f func(session) error) error {
	if db == nil {
		return errors.New("schema: no database: give an open *sql.DB")
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close() }() // only returns it to the pool
	s := session{Conn: conn}
	err = sqlrun.Retry(ctx, nil, func() (err error) {
		s.Server, err = dialect.Detect(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	return sqlrun.Retry(ctx, nil, func() error { return f(s) })
}

// inTx runs f in a transaction of its own.
func (s session) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	return sqlrun.InTx(ctx, s, nil, f)
}

// each scans the rows of a query one by one.
func (s session) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return sqlrun.Each(ctx, s, scan, query, args...)
}

// list returns the one column of a query.
func (s session) list(ctx context.Context, query string, args ...any) ([]string, error) {
	var all []string
	err := s.each(ctx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, query, args...)
	return all, err
}
