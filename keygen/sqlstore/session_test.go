// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// When a call is given up, a driver may close the connection and return only an error that
// the connection is gone.
func TestACallThatWasGivenUpSaysSoWhateverTheDriverSays(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = store.do(ctx, func(session) error {
		cancel()
		return driver.ErrBadConn
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("got %v", err)
	}
}

// The connection returns to the pool, and the application uses it next.
func TestSQLitesOwnWaitingIsPutBackWhenTheContextEndsInBetween(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "PRAGMA busy_timeout = 5000"); err != nil {
		t.Fatal(err)
	}
	store, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	const query = "PRAGMA busy_timeout"
	var during, after int
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = store.do(ctx, func(s session) error {
		err := s.row(ctx, query).Scan(&during)
		cancel()
		return errors.Join(err, ctx.Err())
	})
	if !errors.Is(err, context.Canceled) || during != 0 {
		t.Errorf("busy_timeout is %d during the call, %v", during, err)
	}
	if err := db.QueryRowContext(t.Context(), query).Scan(&after); err != nil || after != 5000 {
		t.Errorf("busy_timeout is %d afterwards, %v", after, err)
	}
}

// A member of a Galera cluster may fail a ROLLBACK after a conflict. Then the connection is
// discarded, and the next attempt needs another one.
func TestAnAttemptAfterADiscardedConnectionGetsAnother(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	err = s.try(t.Context(), func(on session) error {
		if attempts++; attempts == 1 {
			_ = on.conn.Raw(func(any) error { return driver.ErrBadConn })
			return errBusy
		}
		return on.exec(t.Context(), "SELECT 1")
	})
	if err != nil || attempts != 2 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}
