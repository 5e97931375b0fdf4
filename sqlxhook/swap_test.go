// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// twoLayouts is a shop whose orders and items lie in one of two layouts.
type twoLayouts struct {
	*sqlxhook.Hook
	*testshards.Layouts
	db *sqlx.DB
}

// filedOrder is an order whose id the program sets.
type filedOrder struct {
	ID     int64  `db:"id"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

func newTwoLayouts(t *testing.T) *twoLayouts {
	t.Helper()
	layouts, tables := testshards.NewLayouts(t, openShared(t, "db0"), openShared(t, "db1"))
	l := &twoLayouts{Layouts: layouts}
	var err error
	if l.Router, err = sharding.New(l.DBs, tables...); err != nil {
		t.Fatal(err)
	}
	l.Hook, l.db = routed(t, l.Router, l.DBs["db0"], keygen.Set{})
	return l
}

// client executes statements on its own rows, and on those of the layouts.
type client struct {
	*twoLayouts
	number  int64
	made    int64           // of its ids
	batches map[int64]int64 // that are there: first ids, and their distance
	seen    map[string]bool // the layouts that answered
	refused int
}

func (c *client) step(ctx context.Context, n int) error {
	id := int64(n % testshards.LayoutOrders)
	switch n % 9 {
	case 0:
		return c.one(ctx, id)
	case 1:
		return c.several(ctx)
	case 2:
		return c.every(ctx)
	case 3:
		return c.joined(ctx, id)
	case 4:
		return c.create(ctx, twoSlots)
	case 5:
		return c.create(ctx, oneSlot)
	case 6:
		return c.together(ctx)
	case 7:
		return c.change(ctx, "UPDATE orders SET note = 'changed' WHERE id IN (?, ?, ?)", false)
	}
	return c.change(ctx, "DELETE FROM orders WHERE id IN (?, ?, ?)", true)
}

// answered checks that a result belongs to one layout, and has each row once.
func (c *client) answered(list []filedOrder, n int) error {
	ids := map[int64]bool{}
	for _, o := range list {
		ids[o.ID] = true
		if o.Note != list[0].Note {
			return fmt.Errorf("rows of two layouts: %+v", list)
		}
	}
	if len(list) != n || len(ids) != n {
		return fmt.Errorf("%d rows, not %d: %+v", len(ids), n, list)
	}
	c.seen[list[0].Note] = true
	return nil
}

func (c *client) one(ctx context.Context, id int64) error {
	var list []filedOrder
	if err := c.db.SelectContext(ctx, &list, "SELECT * FROM orders WHERE id = ?", id); err != nil {
		return err
	}
	return c.answered(list, 1)
}

// several reads by a list of all keys.
func (c *client) several(ctx context.Context) error {
	keys := make([]int64, testshards.LayoutOrders)
	for i := range keys {
		keys[i] = int64(i)
	}
	query, args, err := sqlx.In("SELECT * FROM orders WHERE id IN (?)", keys)
	if err != nil {
		return err
	}
	var list []filedOrder
	if err := c.db.SelectContext(ctx, &list, query, args...); err != nil {
		return err
	}
	return c.answered(list, testshards.LayoutOrders)
}

// every reads from all shards.
func (c *client) every(ctx context.Context) error {
	var list []filedOrder
	if err := c.db.SelectContext(ctx, &list, "SELECT * FROM orders WHERE user_id = 0"); err != nil {
		return err
	}
	return c.answered(list, testshards.LayoutOrders)
}

// joined reads an order with its item, both by their logical names.
func (c *client) joined(ctx context.Context, id int64) error {
	var found struct{ Note, Sku string }
	err := c.db.GetContext(ctx, &found, "SELECT orders.note, items.sku FROM orders JOIN items ON items.order_id = orders.id WHERE orders.id = ?", id)
	if err == nil && found.Sku != fmt.Sprint(found.Note, " ", id) {
		err = fmt.Errorf("order of %s with item %s", found.Note, found.Sku)
	}
	return err
}

// The ids of a batch are of one slot, or of two that lie in one database.
const oneSlot, twoSlots = 4, 2

func batch(first, distance int64) []int64 {
	return []int64{first, first + distance, first + 2*distance}
}

// fresh returns the rows of a new batch.
func (c *client) fresh(distance int64) (first int64, rows []filedOrder) {
	first = c.number*1_000_000 + c.made*12 + c.made%4
	c.made++
	for _, id := range batch(first, distance) {
		rows = append(rows, filedOrder{id, c.number, "made"})
	}
	return first, rows
}

func (c *client) create(ctx context.Context, distance int64) error {
	first, rows := c.fresh(distance)
	res, err := c.Insert(ctx, c.db, "orders", rows)
	if err != nil {
		return err
	}
	c.batches[first] = distance
	if res.RowsAffected != 3 {
		return fmt.Errorf("create: %d rows", res.RowsAffected)
	}
	return nil
}

// together inserts and updates in one transaction.
func (c *client) together(ctx context.Context) error {
	first, rows := c.fresh(oneSlot)
	tx, err := c.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := c.Insert(ctx, tx, "orders", rows); err != nil {
		return err
	}
	if err := whole(tx.ExecContext(ctx, "UPDATE orders SET note = 'changed' WHERE id IN (?, ?, ?)", first, first+4, first+8)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	c.batches[first] = oneSlot
	return nil
}

// change changes a batch of one slot: all of it, or nothing if the other layout is in use.
func (c *client) change(ctx context.Context, query string, removes bool) error {
	for first, distance := range c.batches {
		if distance != oneSlot {
			continue
		}
		res, err := c.db.ExecContext(ctx, query, first, first+4, first+8)
		if err := whole(res, err); err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n > 0 && removes {
			delete(c.batches, first)
		}
		break
	}
	return nil
}

// whole checks that a statement changed three rows or none.
func whole(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n%3 != 0 {
		return fmt.Errorf("%d rows, %w", n, err)
	}
	return nil
}

// check compares the present rows with the acknowledged ones.
func (l *twoLayouts) check(t *testing.T, clients []*client) {
	t.Helper()
	var batches [][]int64
	for _, c := range clients {
		for first, distance := range c.batches {
			batches = append(batches, batch(first, distance))
		}
		if len(c.seen) != 2 {
			t.Errorf("client %d saw the layouts %v only", c.number, c.seen)
		}
		t.Logf("client %d: %d statements were refused", c.number, c.refused)
	}
	l.Check(t, batches)
}

// TestStatementsUnderConcurrentSwapsAreOfOneLayout makes clients read and write while the maps of
// all tables are replaced as fast as possible. A transaction may be refused if its rows are in
// another database by then; it then leaves no change.
func TestStatementsUnderConcurrentSwapsAreOfOneLayout(t *testing.T) {
	steps := 900
	if effort.Race {
		steps = 180
	}
	l := newTwoLayouts(t)
	clients := make([]*client, 4)
	var all sync.WaitGroup
	for i := range clients {
		c := &client{twoLayouts: l, number: int64(i + 1), batches: map[int64]int64{}, seen: map[string]bool{}}
		clients[i] = c
		all.Go(func() {
			for n := range steps {
				err := c.step(t.Context(), n)
				if n%9 == 6 && errors.Is(err, sharding.ErrCrossDatabase) {
					c.refused++
				} else if err != nil {
					t.Errorf("client %d, step %d: %v", c.number, n, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	t.Logf("%d swaps", l.Swap(t, done))
	<-done
	l.check(t, clients)
}
