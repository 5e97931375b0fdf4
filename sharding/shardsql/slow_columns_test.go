// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// slow is a driver whose queries take a time.
type slow struct {
	driver.Connector

	takes time.Duration
}

func (s slow) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	return slowConn{conn, s.takes}, err
}

type slowConn struct {
	driver.Conn

	takes time.Duration
}

func (c slowConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	select {
	case <-time.After(c.takes):
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The columns of a table are read with several queries. The time of the test is simulated.
func TestColumnsAreReadInTheDatabaseThatAnswersFirst(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration // that a query takes
		fails         bool
	}{
		"both are slow":              {first: 800 * time.Millisecond, second: 900 * time.Millisecond},
		"the first does not answer":  {first: time.Hour, second: time.Millisecond},
		"the second does not answer": {first: 800 * time.Millisecond, second: time.Hour},
		"neither answers in time":    {first: time.Hour, second: time.Hour, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := files(t)
				late := func(db *sql.DB, takes time.Duration) *sql.DB {
					wrapped := sql.OpenDB(slow{poolOf{db}, takes})
					t.Cleanup(func() { _ = wrapped.Close() })
					return wrapped
				}
				first, second := open("a.db"), open("b.db")
				m, err := sharding.Spread([]string{"a", "b"}, 2, "notes_%d")
				if err != nil {
					t.Fatal(err)
				}
				exec(t, first, "CREATE TABLE notes_0 (id INTEGER PRIMARY KEY, word TEXT)")
				exec(t, second, "CREATE TABLE notes_1 (id INTEGER PRIMARY KEY, word TEXT)")
				router, err := sharding.New(sharding.DBs{"a": late(first, c.first), "b": late(second, c.second)}, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: m})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: open("home.db")})
				defer func() { _ = routed.Close() }()
				ctx, done := context.WithTimeout(t.Context(), 8*time.Second)
				defer done()
				e, err := shardsql.Explain(ctx, routed, "SELECT id FROM notes ORDER BY word")
				if errors.Is(err, context.DeadlineExceeded) != c.fails || !c.fails && (err != nil || e.Err != nil) {
					t.Errorf("%s, %v, %v", e.Kind, e.Err, err)
				}
			})
		})
	}
}
