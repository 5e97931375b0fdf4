// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// These are the tables of the database that Run creates.
const (
	ordersTable = "orders"
	itemsTable  = "order_items"
	itemsParent = "order_id"
)

const ordersDDL = `
CREATE TABLE orders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL,
  status VARCHAR(20) NOT NULL DEFAULT 'new' COLLATE NOCASE,
  total_cents INTEGER NOT NULL,
  note TEXT,
  created_at DATETIME NOT NULL
);
CREATE TABLE order_items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id INTEGER NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  sku VARCHAR(32) NOT NULL,
  quantity INTEGER NOT NULL DEFAULT 1,
  price_cents INTEGER NOT NULL
);`

// A database that has been in use has gaps in its ids: every hundredth order was deleted,
// and some of the last ones, so that the next id is not the highest one plus one.
const (
	deletedEvery  = 100
	deletedAtEnd  = 7
	ordersPerStep = 5000 // per transaction
	rowsPerInsert = 20
)

// makeOrders inserts n orders with one to three items each; they are the same in every run.
func makeOrders(ctx context.Context, db *sql.DB, n int, add func(int64)) error {
	if _, err := db.ExecContext(ctx, ordersDDL); err != nil {
		return err
	}
	o := orderMaker{random: rand.New(rand.NewPCG(20240101, 7)), clock: time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC)}
	given := n + (n-1)/(deletedEvery-1) + deletedAtEnd
	for first := 1; first <= given; first += ordersPerStep {
		last := min(given, first+ordersPerStep-1)
		if err := o.insert(ctx, db, first, last); err != nil {
			return fmt.Errorf("make orders: %w", err)
		}
		add(int64(last - first + 1))
	}
	return deleteOrders(ctx, db, given)
}

func deleteOrders(ctx context.Context, db *sql.DB, given int) error {
	for _, statement := range []string{
		"CREATE INDEX order_items_order_id ON order_items (order_id)",
		fmt.Sprintf("DELETE FROM order_items WHERE order_id %% %d = 0 OR order_id > %d", deletedEvery, given-deletedAtEnd),
		fmt.Sprintf("DELETE FROM orders WHERE id %% %d = 0 OR id > %d", deletedEvery, given-deletedAtEnd),
		"PRAGMA wal_checkpoint(truncate)",
		"PRAGMA journal_mode = delete", // a single file, which can be read without creating files beside it
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// orderMaker generates orders.
type orderMaker struct {
	random *rand.Rand
	clock  time.Time
}

// insert inserts the orders first to last, which get these numbers.
func (o *orderMaker) insert(ctx context.Context, db *sql.DB, first, last int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	orders := &inserter{tx: tx, into: "orders (user_id, status, total_cents, note, created_at)", columns: 5}
	items := &inserter{tx: tx, into: "order_items (order_id, sku, quantity, price_cents)", columns: 4}
	for id := first; id <= last; id++ {
		total := 0
		for range 1 + o.random.IntN(3) {
			quantity, price := 1+o.random.IntN(4), 99+o.random.IntN(30_000)
			total += quantity * price
			if err := items.add(ctx, id, o.sku(), quantity, price); err != nil {
				return err
			}
		}
		if err := orders.add(ctx, 1+o.random.IntN(20_000), pickOne(o.random, statuses), total, o.note(), o.next()); err != nil {
			return err
		}
	}
	if err := orders.flush(ctx); err != nil {
		return err
	}
	if err := items.flush(ctx); err != nil {
		return err
	}
	return tx.Commit()
}

var (
	statuses = []string{"new", "paid", "packed", "sent", "returned"}
	goods    = []string{"LAMP", "NUT", "TENT", "ROPE", "MUG", "BOOK", "PEN", "CHAIR"}
	notes    = []string{
		"", "leave it at the door", `say "hello"`, "it's a gift; don't ring", "größer, bitte",
		"请放在门口", //nolint:gosmopolitan // notes are in any language
		"двор, 2-й этаж", "line one\nline two", "100 % cotton?", "\\o/ -- thanks", "🚲 only",
	}
)

func (o *orderMaker) sku() string {
	return fmt.Sprintf("%s-%04d", pickOne(o.random, goods), o.random.IntN(10_000))
}

// note returns NULL for most orders.
func (o *orderMaker) note() any {
	if o.random.IntN(4) > 0 {
		return nil
	}
	return pickOne(o.random, notes)
}

func (o *orderMaker) next() string {
	o.clock = o.clock.Add(time.Duration(o.random.IntN(600)) * time.Second)
	return o.clock.Format(time.DateTime)
}

func pickOne(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// inserter collects rows into statements with several rows.
type inserter struct {
	tx      *sql.Tx
	into    string
	columns int
	args    []any
}

func (i *inserter) add(ctx context.Context, values ...any) error {
	i.args = append(i.args, values...)
	if len(i.args) < rowsPerInsert*i.columns {
		return nil
	}
	return i.flush(ctx)
}

func (i *inserter) flush(ctx context.Context) error {
	if len(i.args) == 0 {
		return nil
	}
	group := "(?" + strings.Repeat(", ?", i.columns-1) + ")"
	n := len(i.args) / i.columns
	_, err := i.tx.ExecContext(ctx, "INSERT INTO "+i.into+" VALUES "+group+strings.Repeat(", "+group, n-1), i.args...)
	i.args = i.args[:0]
	return err
}
