// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// discard is a MySQL handle that discards all statements.
type discard struct{}

func (discard) DriverName() string         { return "mysql" }
func (discard) Rebind(query string) string { return query }
func (discard) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return noResult{}, nil
}

func presetRows(n int) []order {
	rows := make([]order, n)
	for i := range rows {
		rows[i] = order{int64(i + 1000), int64(i + 5000), "note"}
	}
	return rows
}

// BenchmarkPlan makes the text and the arguments of rows whose ids are set, as sqlx.Named does:
// with the compiled plan, with a search for it, and with hand-written code for these rows.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1, 1000} {
		rows := presetRows(n)
		var one any = &rows[0]
		if n > 1 {
			one = rows
		}
		h, _ := newHook(b, sqlxhook.Config{})
		db := sqlx.NewDb(nil, "mysql")
		plan, err := sqlxhook.Plan(h, db, insertOrder, one)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("compiled/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan(one)
			}
		})
		b.Run(fmt.Sprintf("hook/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := sqlxhook.Bind(h, db, insertOrder, one); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("byhand/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var args []any
			for b.Loop() {
				args = make([]any, 0, 3*n)
				for i := range rows {
					args = append(args, rows[i].ID, rows[i].UserID, rows[i].Note)
				}
			}
			if len(args) != 3*n {
				b.Error(args)
			}
		})
		b.Run(fmt.Sprintf("sqlx/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := sqlx.Named(insertOrder, one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNamedExec measures everything without a database: rows that have their keys, rows that
// get one, and sqlx.
func BenchmarkNamedExec(b *testing.B) {
	for _, n := range []int{1, 1000} {
		rows := presetRows(n)
		db := discard{}
		h, _ := newHook(b, sqlxhook.Config{})
		b.Run(fmt.Sprintf("hook/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.NamedExec(b.Context(), db, insertOrder, rows); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("filled/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range rows {
					rows[i].ID = 0
				}
				if _, err := h.NamedExec(b.Context(), db, insertOrder, rows); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("sqlx/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				query, args, err := sqlx.Named(insertOrder, rows)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := db.ExecContext(b.Context(), query, args...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInsertSQLite compares with sqlx on a database, end to end, without waiting for its disk:
// with ids of the program, and with ids of the database.
func BenchmarkInsertSQLite(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		id := int64(0)
		for name, insert := range map[string]func(h *sqlxhook.Hook, db *sqlx.DB, rows []order) error{
			"hook": func(h *sqlxhook.Hook, db *sqlx.DB, rows []order) error {
				_, err := h.NamedExec(b.Context(), db, insertOrder, rows)
				return err
			},
			"sqlx": func(_ *sqlxhook.Hook, db *sqlx.DB, rows []order) error {
				for i := range rows {
					id += 10
					rows[i].ID = id
				}
				_, err := db.NamedExecContext(b.Context(), insertOrder, rows)
				return err
			},
			"auto": func(_ *sqlxhook.Hook, db *sqlx.DB, rows []order) error {
				_, err := db.NamedExecContext(b.Context(), "INSERT INTO orders (user_id, note) VALUES (:user_id, :note)", rows)
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				db := open(b)
				db.SetMaxOpenConns(1)
				db.MustExec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
				db.MustExec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
				h, _ := newHook(b, sqlxhook.Config{})
				b.ReportAllocs()
				for b.Loop() {
					if err := insert(h, db, make([]order, n)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRouted compares inserts into the table of one shard, through the routed
// database, with those into a plain one of the same file.
func BenchmarkRouted(b *testing.B) {
	db := open(b)
	db.SetMaxOpenConns(1)
	db.MustExec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
	for i := range 4 {
		db.MustExec(fmt.Sprintf("CREATE TABLE orders_%d (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)", i))
	}
	db.MustExec("CREATE TABLE plain (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	router, err := sharding.New(sharding.DBs{"main": db.DB},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: spread(b, []string{"main"}, "orders_%d")})
	if err != nil {
		b.Fatal(err)
	}
	h, shards := routed(b, router, db.DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}})
	for _, n := range []int{1, 1000} {
		for table, to := range map[string]*sqlx.DB{"plain": db, "orders": shards} {
			b.Run(fmt.Sprintf("%s/%d", table, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rows := make([]order, n)
					for i := range rows {
						rows[i].UserID = 5000
					}
					if _, err := h.Insert(b.Context(), to, table, rows); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
