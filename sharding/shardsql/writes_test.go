// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// written is a table in four shards in two databases, whose ids carry the slot, and
// one table beside it.
func written(t testing.TB, mode sharding.TxMode) *twin { return writtenIn(t, fourTables(t), mode) }

func writtenIn(t testing.TB, m sharding.Map, mode sharding.TxMode) *twin {
	t.Helper()
	return twinOf(t, sharding.Table{
		Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads,
		Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}},
	}, changes.Columns, sharding.Transactions(mode))
}

// rows returns the number of rows in each database.
func (w *twin) rows(t testing.TB) (a, b int64) {
	t.Helper()
	const both = "SELECT (SELECT COUNT(*) FROM orders_%d) + (SELECT COUNT(*) FROM orders_%d)"
	return one[int64](t, w.dbs["a"], fmt.Sprintf(both, 0, 2)), one[int64](t, w.dbs["b"], fmt.Sprintf(both, 1, 3))
}

func TestRandomWritesToSeveralShardsLeaveWhatOneTableHas(t *testing.T) {
	for name, m := range layouts(t) {
		t.Run(name, func(t *testing.T) { writeRandomly(t, writtenIn(t, m, sharding.BestEffort)) })
	}
}

func writeRandomly(t *testing.T, w *twin) {
	t.Helper()
	programs := effort.Cases(300, 25_000)
	done := 0
	for seed := range uint64(programs) {
		m := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 5)), SQLite: true}
		n, err := m.Program(sharding.AllShards(t.Context()), w.routed, w.one)
		if done += n; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Logf("%d statements", done); done < 3*programs {
		t.Error("too few succeed")
	}
}

func TestTheRowsOfAnInsertReturnInTheirOrder(t *testing.T) {
	w := written(t, sharding.BestEffort)
	const insert = "INSERT INTO orders (id, user_id, paid) VALUES (?, ?, ?), (7, 3, 3), (?, ?, ?), (5, ?, 1), (?, ?, ?) RETURNING id, paid + ?"
	args := []any{10, 2, 1, 8, 4, 2, 1, 4, 8, 9, 100}
	want, err := answer(t.Context(), w.one, insert, args...)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := answer(t.Context(), w.routed, insert, args...); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	got, err := answer(t.Context(), w.routed, "DELETE FROM orders WHERE id IN (10, 5) RETURNING id")
	if err != nil || len(got) != 3 {
		t.Errorf("%q, %v", got, err)
	}
}

// Libraries that read rows into maps ask for the types of the columns.
func TestTheRowsThatAWriteReturnsHaveTheColumnTypesOfOneTable(t *testing.T) {
	w := written(t, sharding.BestEffort)
	for _, text := range []string{
		"INSERT INTO orders (id, user_id, paid, note) VALUES (2, 2, 1, 'n'), (1, 1, 1, 'x'), (3, 3, 0, 'y') RETURNING *",
		"UPDATE orders SET paid = 2 WHERE user_id IN (1, 2, 3) RETURNING note, id",
		"DELETE FROM orders WHERE user_id IN (1, 4) RETURNING id, note",
	} {
		if got, want := returnedTypes(t, w.routed, text), returnedTypes(t, w.one, text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// returnedTypes describes the columns of rows.
func returnedTypes(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range types {
		nullable, known := c.Nullable()
		all = append(all, fmt.Sprint(c.Name(), " ", c.DatabaseTypeName(), " ", c.ScanType(), " ", nullable, known))
	}
	for rows.Next() {
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return strings.Join(all, "; ")
}

// Existing rows are not returned, and the others are in their order.
func TestTheRowsThatAreNotLeftOutReturnInTheirOrder(t *testing.T) {
	w := written(t, sharding.BestEffort)
	for _, db := range []*sql.DB{w.routed, w.one} {
		exec(t, db, "INSERT INTO orders (id, user_id, paid) VALUES (6, 2, 0), (9, 1, 0), (13, 1, 0)")
	}
	for text, args := range map[string][]any{
		"INSERT OR IGNORE INTO orders (id, user_id, paid) VALUES (10, 2, 1), (9, 1, 5), (17, 1, 2), (17, 1, 3), (6, 2, 5), (?, 3, ?) RETURNING paid": {"11", 4},
		"INSERT INTO orders (user_id, paid, id) VALUES (2, 1, 22), (1, 5, 9), (1, 6, 21), (3, ?, ?) ON CONFLICT DO NOTHING RETURNING paid + 1, *":    {2, 23},
		"INSERT INTO orders (user_id, paid, id) VALUES (2, 1, 6), (1, 5, 9) ON CONFLICT (id) DO NOTHING RETURNING id AS got":                         nil,
	} {
		want, err := answer(t.Context(), w.one, text, args...)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer(t.Context(), w.routed, text, args...); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	_, err := answer(t.Context(), w.routed, "INSERT INTO orders (id, user_id, paid) VALUES (6, 2, 1), (9, 1, 5) ON CONFLICT (id) DO UPDATE SET paid = 1 WHERE orders.paid = 0 RETURNING id")
	if !errors.Is(err, sharding.ErrCrossShard) {
		t.Errorf("rows that a condition leaves out: %v", err)
	}
}

func TestTheLastInsertIDIsThatOfTheLastRow(t *testing.T) {
	w := written(t, sharding.BestEffort)
	r := exec(t, w.routed, "INSERT INTO orders (id, user_id, paid) VALUES (5, 1, 0), (6, 2, 0), (9, 1, 0)")
	want := exec(t, w.one, "INSERT INTO orders (id, user_id, paid) VALUES (5, 1, 0), (6, 2, 0), (9, 1, 0)")
	rows, err := r.RowsAffected()
	if wanted, _ := want.RowsAffected(); err != nil || rows != wanted {
		t.Errorf("%d rows, %v, want %d", rows, err, wanted)
	}
	if _, err := r.LastInsertId(); err != nil {
		t.Error(err)
	}
}

func TestAWriteThatSpansDatabasesIsRefusedUnlessTransactionsMaySpanThem(t *testing.T) {
	w := written(t, sharding.SingleShard)
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []execer{w.routed, tx} {
		_, err := on.ExecContext(t.Context(), "INSERT INTO orders (id, user_id, paid) VALUES (1, 1, 0), (2, 2, 0)")
		if !errors.Is(err, sharding.ErrCrossDatabase) {
			t.Error(err)
		}
	}
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (4, 4, 0), (2, 2, 0)") // of one database
	if _, err := tx.Exec("UPDATE orders SET paid = 1 WHERE user_id IN (1, 3)"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("a write for the other database: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.rows(t); a != 2 || b != 0 {
		t.Error(a, b)
	}
}

func TestAWriteWithoutAKeyNeedsAllShards(t *testing.T) {
	w := written(t, sharding.BestEffort)
	exec(t, w.routed, "INSERT INTO orders (id, user_id, paid) VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 1)")
	if _, err := w.routed.Exec("UPDATE orders SET paid = 2 WHERE paid = 0"); !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "sharding.AllShards") {
		t.Error(err)
	}
	r, err := w.routed.ExecContext(sharding.AllShards(t.Context()), "UPDATE orders SET paid = 2 WHERE paid = 0")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); n != 3 || err != nil {
		t.Error(n, err)
	}
}

// A participant that fails undoes the writes of the others.
func TestAWriteOfWhichOneShardFailsLeavesNothing(t *testing.T) {
	w := written(t, sharding.BestEffort)
	exec(t, w.routed, "INSERT INTO orders (id, user_id, paid) VALUES (3, 3, 0)")
	const twice = "INSERT INTO orders (id, user_id, paid) VALUES (4, 4, 0), (2, 2, 0), (1, 1, 0), (3, 3, 0)"
	_, err := w.routed.Exec(twice)
	var shard *sharding.ShardError
	if !errors.As(err, &shard) || shard.Target.Table != "orders_3" {
		t.Errorf("%v", err)
	}
	if a, b := w.rows(t); a != 0 || b != 1 {
		t.Error(a, b)
	}
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (8, 8, 0)")
	if _, err := tx.Exec(twice); err == nil {
		t.Fatal("no error")
	}
	if _, err := answer(t.Context(), w.routed, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (12, 12, 0), (5, 5, 0)")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.rows(t); a != 2 || b != 2 {
		t.Error(a, b)
	}
}

// A savepoint is set on a database that joins the transaction after it.
func TestADatabaseThatJoinsLaterHasTheSavepoints(t *testing.T) {
	w := written(t, sharding.BestEffort)
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "SAVEPOINT first")
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (2, 2, 0)")
	exec(t, tx, "SAVEPOINT `second`")
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (4, 4, 0), (3, 3, 0)")
	exec(t, tx, "rollback to savepoint second;")
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (1, 1, 0)")
	exec(t, tx, "RELEASE first")
	if _, err := tx.Exec("ROLLBACK TO second"); err == nil {
		t.Error("a savepoint that was released")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.rows(t); a != 1 || b != 1 {
		t.Error(a, b)
	}
}

// A statement on a savepoint that is not recognized would be executed at home alone.
func TestASavepointIsRecognizedBesideCommentsAndSpaces(t *testing.T) {
	for save, undo := range map[string]string{
		"\n\tSAVEPOINT a": "\n\tROLLBACK TO a",
		"/* make */ SAVEPOINT a /*traceparent='00-1'*/": "-- back\nROLLBACK /* all */ TO SAVEPOINT a; -- end",
		"SAVEPOINT \"a b\"":                             "ROLLBACK TO \"a b\" ;",
		"SAVEPOINT/**/a;":                               "rollback transaction to/***/a",
	} {
		w := written(t, sharding.BestEffort)
		tx, err := w.routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (1, 1, 0)")
		if _, err := answer(t.Context(), tx, save); err != nil { // a query, as of a console
			t.Errorf("%s: %v", save, err)
		}
		exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (4, 4, 0), (3, 3, 0)")
		if _, err := tx.Exec(undo); err != nil {
			t.Errorf("%s: %v", undo, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if a, b := w.rows(t); a != 0 || b != 1 {
			t.Errorf("%s: %d and %d rows", save, a, b)
		}
	}
}

// The first database has committed when the second one cannot.
func TestATransactionThatCommitsPartlyReturnsAPartialCommitError(t *testing.T) {
	w := written(t, sharding.BestEffort)
	exec(t, w.dbs["b"], "CREATE TABLE parents (id INTEGER PRIMARY KEY)")
	exec(t, w.dbs["b"], "CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
	exec(t, w.dbs["b"], "CREATE TRIGGER later AFTER INSERT ON orders_3 BEGIN INSERT INTO children VALUES (new.id); END")
	for name, commit := range map[string]func() error{
		"of a statement": func() error {
			_, err := w.routed.Exec("INSERT INTO orders (id, user_id, paid) VALUES (3, 3, 0), (2, 2, 0)")
			return err
		},
		"of its own": func() error {
			tx, err := w.routed.Begin()
			if err != nil {
				return err
			}
			exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (6, 6, 0)")
			exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (7, 7, 0)")
			return tx.Commit()
		},
	} {
		var partial *sharding.PartialCommitError
		if err := commit(); !errors.As(err, &partial) || !reflect.DeepEqual(partial.Committed, []string{"a"}) || partial.Failed["b"] == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a, b := w.rows(t); a != 2 || b != 0 {
		t.Error(a, b)
	}
}

func TestAWriteWhoseContextHasEndedLeavesNothing(t *testing.T) {
	w := written(t, sharding.BestEffort)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.routed.ExecContext(ctx, "INSERT INTO orders (id, user_id, paid) VALUES (2, 2, 0), (3, 3, 0)"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tx, err := w.routed.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id, paid) VALUES (4, 4, 0)")
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, user_id, paid) VALUES (2, 2, 0), (3, 3, 0)"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.rows(t); a != 1 || b != 0 {
		t.Error(a, b)
	}
}

func BenchmarkAThousandRows(b *testing.B) {
	text := "INSERT INTO orders (id, user_id, paid) VALUES (?, ?, 0)" + strings.Repeat(", (?, ?, 0)", 999)
	for name, users := range map[string]int{"of one shard": 1, "of four shards": 4} {
		b.Run(name, func(b *testing.B) {
			w := written(b, sharding.BestEffort)
			for name, db := range map[string]*sql.DB{"routed": w.routed, "one table": w.one} {
				b.Run(name, func(b *testing.B) {
					args := make([]any, 2000)
					exec(b, db, "DELETE FROM orders WHERE user_id IN (0, 1, 2, 3)")
					for id := 0; b.Loop(); {
						for i := 0; i < len(args); i, id = i+2, id+1 {
							args[i], args[i+1] = 4*id+id%users, id%users
						}
						exec(b, db, text, args...)
					}
				})
			}
		})
	}
}

func TestAnIDThatTheDatabaseWouldNumberIsRefused(t *testing.T) {
	s := newShop(t)
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(s.dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}}})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
	t.Cleanup(func() { _ = routed.Close() })
	for _, query := range []string{"INSERT INTO orders (user_id) VALUES (5)", "INSERT INTO orders (id, user_id) VALUES (9, 5), (NULL, 5)"} {
		if _, err := routed.Exec(query); !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "keygen") {
			t.Errorf("%s: %v", query, err)
		}
	}
	exec(t, routed, "INSERT INTO orders (id, user_id) VALUES (0, 4)") // SQLite stores it as it is
	if n := one[int](t, routed, "SELECT COUNT(*) FROM orders WHERE id = 0"); n != 1 {
		t.Error(n)
	}
}

// A row whose default leads to another slot than its sharding key would not be found by that column.
func TestAnInsertThatLeavesAColumnThatLeadsToTheShardToItsDefaultIsRefused(t *testing.T) {
	for column, refused := range map[string]bool{
		"BIGINT NOT NULL DEFAULT 0": true,
		"BIGINT DEFAULT 7":          true,
		"BIGINT NOT NULL":           true,
		"BIGINT":                    false,
		"BIGINT GENERATED ALWAYS AS (user_id + 4) STORED": false,
	} {
		s := newShop(t)
		m, err := sharding.Spread([]string{"a", "b"}, 4, "lines_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			exec(t, s.dbs[at.DB], "CREATE TABLE "+at.Table+" (user_id BIGINT NOT NULL, note TEXT, order_id "+column+")")
		}
		also := []sharding.Alt{{Column: "order_id", Rule: sharding.Mod(4)}}
		router, err := sharding.New(s.dbs, sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Mod(4), Map: m, Also: also})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
		t.Cleanup(func() { _ = routed.Close() })
		_, err = routed.Exec("INSERT INTO lines (user_id) VALUES (5)")
		if refused != (errors.Is(err, sharding.ErrMisplaced) && strings.Contains(err.Error(), "name the column order_id")) || !refused && err != nil {
			t.Errorf("%s: %v", column, err)
		}
	}
}
