// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/sharding"
)

// twoLayouts is a shop whose orders and items lie in one of two layouts.
type twoLayouts struct {
	*gorm.DB
	*testshards.Layouts
}

// layTwo creates both layouts, and the tables of a router that begins with the old one.
func layTwo(t *testing.T) (l *twoLayouts, tables []sharding.Option) {
	t.Helper()
	l = &twoLayouts{}
	l.Layouts, tables = testshards.NewLayouts(t, openShared(t, "db0"), openShared(t, "db1"))
	return l, tables
}

func newTwoLayouts(t *testing.T) *twoLayouts {
	t.Helper()
	l, tables := layTwo(t)
	var err error
	if l.Router, err = sharding.New(l.DBs, tables...); err != nil {
		t.Fatal(err)
	}
	l.DB = openGORM(t, openShared(t, "home"))
	if err := l.Use(gormplugin.New(gormplugin.Config{Router: l.Router})); err != nil {
		t.Fatal(err)
	}
	return l
}

// client executes statements on its own rows, and on those of the layouts.
type client struct {
	*twoLayouts
	number  int64
	made    int64           // of its ids
	batches map[int64]bool  // first ids of the batches that are there
	seen    map[string]bool // the layouts that answered
}

func (l *twoLayouts) client(number int64) *client {
	return &client{twoLayouts: l, number: number, batches: map[int64]bool{}, seen: map[string]bool{}}
}

func (c *client) step(t *testing.T, n int) error {
	db := c.WithContext(t.Context()).Session(&gorm.Session{PrepareStmt: n%3 == 0, SkipDefaultTransaction: n%5 == 0})
	everywhere := db.WithContext(sharding.AllShards(t.Context()))
	first := int64(n % 13)
	switch n % 8 {
	case 0:
		var list []presetOrder
		return c.answered(db.Where("id = ?", first).Find(&list).Error, list, 1)
	case 1:
		var list []presetOrder
		return c.answered(db.Where("id IN ?", []int64{first, first + 1, first + 2, first + 3}).Order("id DESC").Find(&list).Error, list, 4)
	case 2:
		var list []presetOrder
		return c.answered(everywhere.Where("user_id = 0").Order("id").Find(&list).Error, list, testshards.LayoutOrders)
	case 3:
		return c.combined(everywhere)
	case 4:
		return c.joined(db, first)
	case 5:
		return c.create(db)
	case 6:
		return c.update(db, n)
	}
	return c.remove(db)
}

// answered checks that a result belongs to one layout, and has each row once.
func (c *client) answered(err error, list []presetOrder, n int) error {
	ids := map[int64]bool{}
	for _, o := range list {
		ids[o.ID] = true
		if o.Note != list[0].Note {
			return fmt.Errorf("rows of two layouts: %+v", list)
		}
	}
	if err != nil || len(list) != n || len(ids) != n {
		return fmt.Errorf("%d rows, not %d: %+v: %w", len(ids), n, list, err)
	}
	c.seen[list[0].Note] = true
	return nil
}

func (c *client) combined(db *gorm.DB) error {
	var got struct {
		N      int
		Lo, Hi string
	}
	err := db.Model(&presetOrder{}).Select("COUNT(*) n, MIN(note) lo, MAX(note) hi").Where("user_id = 0").Scan(&got).Error
	if err != nil || got.N != testshards.LayoutOrders || got.Lo != got.Hi {
		return fmt.Errorf("combined %+v: %w", got, err)
	}
	return nil
}

// joined reads an order with its item, both by their logical names.
func (c *client) joined(db *gorm.DB, id int64) error {
	var note, sku string
	row := db.Model(&presetOrder{}).Joins("JOIN items ON items.order_id = orders.id").Where("orders.id = ?", id).Select("orders.note, items.sku").Row()
	if err := row.Scan(&note, &sku); err != nil || sku != fmt.Sprint(note, " ", id) {
		return fmt.Errorf("order of %s with item %s: %w", note, sku, err)
	}
	return nil
}

// batch are three ids from the first on that lie in two tables or in one, and
// always in one database.
func batch(first int64) []int64 { return []int64{first, first + 2, first + 4} }

func (c *client) create(db *gorm.DB) error {
	first := c.number*1_000_000 + c.made*8
	c.made++
	var list []presetOrder
	for _, id := range batch(first) {
		list = append(list, presetOrder{ID: id, UserID: c.number, Note: "made"})
	}
	if tx := db.Create(&list); tx.Error != nil || tx.RowsAffected != 3 {
		return fmt.Errorf("create: %d rows: %w", tx.RowsAffected, tx.Error)
	}
	c.batches[first] = true
	return nil
}

// update changes a batch: all of it, or nothing if the other layout is in use.
func (c *client) update(db *gorm.DB, n int) error {
	for first := range c.batches {
		tx := db.Model(&presetOrder{}).Where("id IN ?", batch(first)).Update("note", strconv.Itoa(n))
		if tx.Error != nil || tx.RowsAffected%3 != 0 {
			return fmt.Errorf("update: %d rows: %w", tx.RowsAffected, tx.Error)
		}
		break
	}
	return nil
}

func (c *client) remove(db *gorm.DB) error {
	for first := range c.batches {
		tx := db.Delete(&presetOrder{}, batch(first))
		if tx.Error != nil || tx.RowsAffected%3 != 0 {
			return fmt.Errorf("delete: %d rows: %w", tx.RowsAffected, tx.Error)
		}
		if tx.RowsAffected > 0 {
			delete(c.batches, first)
		}
		break
	}
	return nil
}

// check compares the present rows with the acknowledged ones.
func (l *twoLayouts) check(t *testing.T, clients []*client) {
	t.Helper()
	var batches [][]int64
	for _, c := range clients {
		for first := range c.batches {
			batches = append(batches, batch(first))
		}
		if len(c.seen) != 2 {
			t.Errorf("client %d saw the layouts %v only", c.number, c.seen)
		}
	}
	l.Check(t, batches)
}

// TestStatementsUnderConcurrentSwapsAreOfOneLayout makes clients read and write while the maps of
// all tables are replaced as fast as possible.
func TestStatementsUnderConcurrentSwapsAreOfOneLayout(t *testing.T) {
	steps := 1200
	if effort.Race {
		steps = 240
	}
	l := newTwoLayouts(t)
	clients := make([]*client, 4)
	var all sync.WaitGroup
	for i := range clients {
		c := l.client(int64(i + 1))
		clients[i] = c
		all.Go(func() {
			for n := range steps {
				if err := c.step(t, n); err != nil {
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

// TestMapsAreExchangedWhileATableIsMigrated has writers of a table that moves out of its source,
// clients of two other tables, and replaces the maps of all three as fast as possible.
func TestMapsAreExchangedWhileATableIsMigrated(t *testing.T) {
	r := newRemoval(t)
	l, tables := layTwo(t)
	dbs := maps.Clone(r.dbs)
	maps.Copy(dbs, l.DBs)
	gate := sharding.Migration{Source: "source", Tables: map[string]string{"parcels": "id"}, Patience: time.Minute}
	var err error
	if l.Router, err = sharding.New(dbs, append(tables, parcels(t), gate)...); err != nil {
		t.Fatal(err)
	}
	for _, tables := range l.Maps {
		tables["parcels"] = parcels(t).Map
	}
	l.DB = openGORM(t, r.dbs["source"])
	if err := l.Use(gormplugin.New(gormplugin.Config{Generators: r.generators(0), Router: l.Router})); err != nil {
		t.Fatal(err)
	}
	h, c := &hand{db: l.DB, name: "w ", rows: map[int64]string{}}, l.client(1)
	stop, done := crew{h}.start(t), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { t.Logf("%d swaps", l.Swap(t, done)) })
	all.Go(func() {
		for n := range 1 << 30 {
			select {
			case <-done:
				return
			default:
			}
			if err := c.step(t, n); err != nil {
				t.Errorf("step %d: %v", n, err)
				return
			}
		}
	})
	for _, step := range []func(*testing.T){r.cutover, r.rollback, r.cutover} {
		crew{h}.proceed(t)
		step(t)
	}
	crew{h}.proceed(t)
	stop()
	close(done)
	all.Wait()
	l.check(t, []*client{c})
	for id := int64(1); id <= 5; id++ {
		h.rows[id] = "old"
	}
	if got := r.stored(t, onShards); !maps.Equal(got, h.rows) {
		t.Errorf("%d parcels, not %d: %v, not %v", len(got), len(h.rows), got, h.rows)
	}
}
