package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

const (
	contendedWait  = 10 * time.Second // then the other writer's lock is reported
	contendedPause = 5 * time.Millisecond
)

// session is one connection, pinned: settings and counters are read where
// they were set, and a pool of a single connection is enough.
type session struct {
	*sql.Conn
	dialect.Server
}

// withSession runs f on a connection of db, and again when another writer was
// in the way; f must be repeatable. A SQLite file without a busy timeout and
// a deadlock on MySQL need this.
func withSession(ctx context.Context, db *sql.DB, f func(session) error) error {
	if db == nil {
		return errors.New("schema: no database: give an open *sql.DB")
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close() }() // only hands it back to the pool
	s := session{Conn: conn}
	err = retry(ctx, func() (err error) {
		s.Server, err = dialect.Detect(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	return retry(ctx, func() error { return f(s) })
}

// retry repeats f while another writer is in the way. When the context ends
// meanwhile the error says both, whatever f made of the context.
func retry(ctx context.Context, f func() error) error {
	giveUp := time.NewTimer(contendedWait)
	defer giveUp.Stop()
	var contended error
	for {
		err := f()
		switch {
		case err != nil && contended != nil && ctx.Err() != nil:
			return errors.Join(contended, ctx.Err())
		case !dialect.Contended(err):
			return err
		}
		contended = err
		select {
		case <-ctx.Done():
			return errors.Join(contended, ctx.Err())
		case <-giveUp.C:
			return fmt.Errorf("%w; another writer held the lock for %v, try again when it is done", err, contendedWait)
		case <-time.After(contendedPause):
		}
	}
}

// inTx runs f in a transaction of its own, so that its statements neither
// join a transaction that an autocommit=0 connection has open nor leave one.
func (s session) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return tx.Commit()
}

// ignoreDone drops the error of a rollback that the end of the context, or
// SQLite itself, has done already.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// each scans the rows of a query one by one.
func (s session) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells all
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
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
