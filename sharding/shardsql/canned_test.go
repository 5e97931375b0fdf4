// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testkit/secondpool"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// canned is a driver that answers the queries and statements of a benchmark at once, and passes all
// others to SQLite, such as those that read a database's properties.
type canned struct{ driver.Connector }

func (c canned) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return cannedConn{conn}, err
}

type cannedConn struct{ driver.Conn }

func (c cannedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.HasPrefix(query, "SELECT id, user_id") || strings.HasPrefix(query, "SELECT used") {
		return &cannedRows{}, nil
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c cannedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "INSERT INTO") {
		return driver.RowsAffected(1), nil
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

type cannedRows struct{ read bool }

var cannedColumns = []string{"id"}

func (r *cannedRows) Columns() []string { return cannedColumns }

func (r *cannedRows) Close() error { return nil }

func (r *cannedRows) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	dest[0], r.read = int64(1), true
	return nil
}

// cannedShop is a shop whose databases answer at once.
func cannedShop(b testing.TB) *shop {
	b.Helper()
	s := newShop(b)
	of := func(db *sql.DB) *sql.DB {
		wrapped := sql.OpenDB(canned{poolOf{db}})
		b.Cleanup(func() { _ = wrapped.Close() })
		return wrapped
	}
	s.home, s.dbs["a"], s.dbs["b"] = of(s.home), of(s.dbs["a"]), of(s.dbs["b"])
	router, err := sharding.New(s.dbs, sharding.Tables(tablesOf(s.router)...), sharding.Broadcast("countries"))
	if err != nil {
		b.Fatal(err)
	}
	s.router, s.routed = router, shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
	b.Cleanup(func() { _ = s.routed.Close() })
	return s
}

// tablesOf returns the tables of a router.
func tablesOf(r *sharding.Router) (all []sharding.Table) {
	for _, name := range []string{"orders", "items"} {
		if t, ok := r.Table(name); ok {
			all = append(all, t)
		}
	}
	return all
}

// poolOf opens connections to the database of a pool.
type poolOf struct{ *sql.DB }

func (p poolOf) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var raw driver.Conn
	err = conn.Raw(func(c any) error {
		raw = c.(driver.Conn)
		return nil
	})
	return raw, err // the *sql.Conn keeps it
}

func TestRoutingAStatementAllocatesNothing(t *testing.T) {
	s := cannedShop(t)
	allocated := func(db *sql.DB, text string, args ...any) float64 {
		return testing.AllocsPerRun(100, func() {
			if err := db.QueryRow(text, args...).Scan(new(int64)); err != nil {
				t.Fatal(err)
			}
		})
	}
	written := func(db *sql.DB, text string) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := db.Exec(text, int64(1), int64(5), "x"); err != nil {
				t.Fatal(err)
			}
		})
	}
	shard, home := s.dbs["b"], s.home
	for what, of := range map[string]struct{ routed, plain float64 }{
		"a query of a shard": {
			allocated(s.routed, "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?", int64(5), int64(1)),
			allocated(shard, "SELECT id, user_id, note FROM orders_1 WHERE user_id = ? AND id = ?", int64(5), int64(1)),
		},
		"arguments that a driver converts": {
			allocated(s.routed, "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?", 5, uint(1)),
			allocated(shard, "SELECT id, user_id, note FROM orders_1 WHERE user_id = ? AND id = ?", 5, uint(1)),
		},
		"a query at home":        {allocated(s.routed, "SELECT used FROM coupons WHERE code = ? OR code = ?", "a", "b"), allocated(home, "SELECT used FROM coupons WHERE code = ? OR code = ?", "a", "b")},
		"an INSERT into a shard": {written(s.routed, "INSERT INTO orders (id, user_id, note) VALUES (?, ?, ?)"), written(shard, "INSERT INTO orders_1 (id, user_id, note) VALUES (?, ?, ?)")},
	} {
		// sql.DB.Conn allocates a *sql.Conn, and a function when it is first used.
		if added := of.routed - of.plain; added > 2 {
			t.Errorf("%s: %v allocations, and %v without routing", what, of.routed, of.plain)
		}
	}
}

// BenchmarkWhatRoutingAdds asks databases that answer at once. passed is the least that any second pool
// adds.
func BenchmarkWhatRoutingAdds(b *testing.B) {
	s := cannedShop(b)
	observed := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home, Observer: shardsql.Observer{
		Statement: func(context.Context, shardsql.Statement) {},
	}})
	defer func() { _ = observed.Close() }()
	passed := secondpool.Open(s.dbs["b"])
	defer func() { _ = passed.Close() }()
	const many = 1000
	rows := "(?, ?, ?)" + strings.Repeat(", (?, ?, ?)", many-1)
	long := strings.ReplaceAll(rows, "?", "             ?") // its plan is not cached
	args := make([]any, 0, 3*many)
	for i := range many {
		args = append(args, int64(i), int64(5), "x")
	}
	query := func(db *sql.DB, text string, args ...any) func() error {
		return func() error {
			var id int64
			return db.QueryRow(text, args...).Scan(&id)
		}
	}
	exec := func(db *sql.DB, text string) func() error {
		return func() error {
			_, err := db.Exec(text, args...)
			return err
		}
	}
	for _, bench := range []struct {
		name string
		run  func() error
	}{
		{"row/plain", query(s.dbs["b"], "SELECT id, user_id, note FROM orders_1 WHERE user_id = ? AND id = ?", 5, 1)},
		{"row/passed", query(passed, "SELECT id, user_id, note FROM orders_1 WHERE user_id = ? AND id = ?", 5, 1)},
		{"row/routed", query(s.routed, "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?", 5, 1)},
		{"row/observed", query(observed, "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?", 5, 1)},
		{"home/plain", query(s.home, "SELECT used FROM coupons WHERE code = ?", "x")},
		{"home/routed", query(s.routed, "SELECT used FROM coupons WHERE code = ?", "x")},
		{"insert1000/plain", exec(s.dbs["b"], "INSERT INTO orders_1 (id, user_id, note) VALUES "+rows)},
		{"insert1000/routed", exec(s.routed, "INSERT INTO orders (id, user_id, note) VALUES "+rows)},
		{"long/plain", exec(s.dbs["b"], "INSERT INTO orders_1 (id, user_id, note) VALUES "+long)},
		{"long/routed", exec(s.routed, "INSERT INTO orders (id, user_id, note) VALUES "+long)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
