// SPDX-License-Identifier: Apache-2.0

package inner_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding/internal/inner"
)

// server is a database of one connection that prepares every text, and records what it is asked for.
type server struct {
	asked   []string
	failing error // of the next execution
}

func (s *server) Connect(context.Context) (driver.Conn, error) { return &conn{s}, nil }

func (s *server) Driver() driver.Driver { return nil }

func (s *server) told(what string) { s.asked = append(s.asked, what) }

// expect compares what the server was asked for since the last call.
func (s *server) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.asked, want) {
		t.Errorf("%q, want %q", s.asked, want)
	}
	s.asked = nil
}

type conn struct{ of *server }

func (c *conn) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }

func (c *conn) Close() error { return nil }

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	c.of.told("prepare " + text)
	return &stmt{c.of, text}, nil
}

type stmt struct {
	of   *server
	text string
}

func (s *stmt) Close() error {
	s.of.told("close " + s.text)
	return nil
}

func (s *stmt) NumInput() int { return -1 }

func (s *stmt) Exec([]driver.Value) (driver.Result, error) {
	s.of.told("execute " + s.text)
	return driver.RowsAffected(1), s.of.failing
}

func (s *stmt) Query([]driver.Value) (driver.Rows, error) {
	s.of.told("query " + s.text)
	return &noRows{}, s.of.failing
}

type noRows struct{}

func (*noRows) Columns() []string { return []string{"id"} }

func (*noRows) Close() error { return nil }

func (*noRows) Next([]driver.Value) error { return io.EOF }

// open returns a connection, and its pool.
func open(t *testing.T) (*server, *sql.DB, inner.Conn) {
	t.Helper()
	s := &server{}
	db := sql.OpenDB(s)
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, db, inner.Conn{SQL: c}
}

func TestRowsHoldTheirConnectionUntilTheyAreClosed(t *testing.T) {
	s, db, c := open(t)
	rows, err := c.Query(t.Context(), nil, "SELECT 1", nil)
	if err != nil || db.Stats().InUse != 1 {
		t.Fatal(err, db.Stats().InUse)
	}
	s.expect(t, "prepare SELECT 1", "query SELECT 1")
	for range 2 {
		if err := rows.Close(); err != nil || db.Stats().InUse != 0 {
			t.Error(err, db.Stats().InUse)
		}
	}
	s.expect(t, "close SELECT 1")
}

func TestAFailedTextLeavesNeitherAStatementNorTheConnection(t *testing.T) {
	for _, run := range []func(inner.Conn) error{
		func(c inner.Conn) error { return c.Run(t.Context(), "x") },
		func(c inner.Conn) error {
			_, err := c.Query(t.Context(), nil, "x", nil)
			return err
		},
	} {
		s, db, c := open(t)
		s.failing = errors.New("no such table")
		if err := run(c); err != s.failing { //nolint:errorlint // a driver's error is returned as it is
			t.Error(err)
		}
		if n := db.Stats().InUse; n != 0 || s.asked[len(s.asked)-1] != "close x" {
			t.Errorf("%d in use, %q", n, s.asked)
		}
	}
}

func TestAHeldConnectionKeepsStatementsPrepared(t *testing.T) {
	s, db, c := open(t)
	c.Kept = &inner.Kept{}
	own, other := &inner.Statement{}, &inner.Statement{}
	exec := func(of *inner.Statement) {
		t.Helper()
		if _, err := c.Exec(t.Context(), of, "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	exec(own)
	exec(own)
	s.expect(t, "prepare x", "execute x", "execute x")
	exec(other)
	exec(&inner.Statement{Once: true})
	s.expect(t, "prepare x", "execute x", "prepare x", "execute x", "close x")
	if err := c.Forget(own); err != nil {
		t.Error(err)
	}
	s.expect(t, "close x")
	exec(other)
	s.expect(t, "execute x")
	if err := c.Release(); err != nil || db.Stats().InUse != 1 {
		t.Error("a connection that is held was released", err)
	}
	if err := c.Leave(); err != nil || db.Stats().InUse != 0 {
		t.Error(err)
	}
	s.expect(t, "close x")
}

func TestABrokenConnectionIsReportedEachTimeAndNeedsNoCleanup(t *testing.T) {
	s, _, c := open(t)
	c.Kept = &inner.Kept{}
	s.failing = driver.ErrBadConn
	for range 2 {
		if err := c.Run(t.Context(), "x"); !errors.Is(err, driver.ErrBadConn) {
			t.Error(err)
		}
	}
	if c.Valid() {
		t.Error("it is valid")
	}
	if err := c.Leave(); err != nil {
		t.Error(err)
	}
}

func TestADriverWithoutContextsIsNotAskedAfterTheirEnd(t *testing.T) {
	s, _, c := open(t)
	c.Kept = &inner.Kept{}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.Run(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.expect(t)
	if _, err := c.Exec(t.Context(), nil, "x", []driver.NamedValue{{Name: "id", Ordinal: 1, Value: int64(1)}}); err == nil {
		t.Error("a driver without named parameters got one")
	}
}

func TestAMemoryIsUsedByTheNextStatement(t *testing.T) {
	_, _, c := open(t)
	c.Kept, c.Memory = &inner.Kept{}, &inner.Memory{}
	st := &inner.Statement{}
	run := func() {
		rows, err := c.Query(t.Context(), st, "SELECT 1", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		if _, err := c.Exec(t.Context(), st, "x", nil); err != nil {
			t.Fatal(err)
		}
		list := c.Memory.TakeValues(3)
		c.Memory.KeepValues(append(list, 1, 2, 3))
	}
	run()
	with := testing.AllocsPerRun(100, run)
	fresh := testing.AllocsPerRun(100, func() {
		c.Memory = &inner.Memory{}
		run()
	})
	if with >= fresh {
		t.Errorf("%v allocations, and %v with a new memory each time", with, fresh)
	}
}
