package sqlxhook_test

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sqlxhook"
)

// BenchmarkNamed binds rows whose ids are set, and sends them nowhere.
func BenchmarkNamed(b *testing.B) {
	for _, n := range []int{1, 1000} {
		rows := make([]order, n)
		for i := range rows {
			rows[i].ID = int64(i + 1)
		}
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

// BenchmarkInsertSQLite compares with sqlx on a database, 100 rows at a time.
func BenchmarkInsertSQLite(b *testing.B) {
	ddl := "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)"
	b.Run("hook", func(b *testing.B) {
		db := open(b, ddl)
		h, _ := newHook(b, sqlxhook.Config{})
		for b.Loop() {
			if _, err := h.NamedExec(b.Context(), db, insertOrder, make([]order, 100)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sqlx", func(b *testing.B) {
		db := open(b, ddl)
		id := int64(0)
		for b.Loop() {
			rows := make([]order, 100)
			for i := range rows {
				id += 10
				rows[i].ID = id
			}
			if _, err := db.NamedExecContext(b.Context(), insertOrder, rows); err != nil {
				b.Fatal(err)
			}
		}
	})
}
