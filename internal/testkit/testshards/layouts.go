// SPDX-License-Identifier: Apache-2.0

package testshards

import (
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// Layouts are two distributions of the tables orders and items over two SQLite databases: four of
// each, or two in the other order. Each layout is complete, with [LayoutOrders] orders that contain
// its name, and a write goes to one of them; so a statement that was planned with both can be
// detected. Orders are sharded by their id.
type Layouts struct {
	DBs    sharding.DBs
	Maps   map[string]map[string]sharding.Map // by layout and table
	Router *sharding.Router                   // its maps are replaced; the caller sets it
}

// LayoutOrders is the number of orders of each layout, with ids from 0 and an item each. They
// belong to user 0.
const LayoutOrders = 16

var layoutNames = []string{"old", "new"}

// NewLayouts creates both layouts in empty databases, and returns the tables of a router that
// begins with the old one.
func NewLayouts(t testing.TB, db0, db1 *sql.DB) (l *Layouts, tables []sharding.Option) {
	t.Helper()
	l = &Layouts{DBs: sharding.DBs{"db0": db0, "db1": db1}, Maps: map[string]map[string]sharding.Map{"old": {}, "new": {}}}
	for name, key := range map[string]string{"orders": "id", "items": "order_id"} {
		l.lay(t, "old", name, []string{"db0", "db1"}, 4)
		l.lay(t, "new", name, []string{"db1", "db0"}, 2)
		tables = append(tables, sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: l.Maps["old"][name], Group: "shop"})
	}
	return l, tables
}

// lay creates the tables of a layout, with their rows.
func (l *Layouts) lay(t testing.TB, layout, table string, dbs []string, n int) {
	t.Helper()
	m, err := sharding.Spread(dbs, n, layout+"_"+table+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	l.Maps[layout][table] = m
	columns := map[string]string{"orders": "(id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)", "items": "(id INTEGER PRIMARY KEY, order_id INTEGER, sku TEXT)"}[table]
	for _, target := range m.Targets() {
		l.exec(t, target, "CREATE TABLE "+target.Table+columns)
	}
	row := map[string]string{"orders": "(id, user_id, note) VALUES (%[1]d, 0, '%[2]s')", "items": "(order_id, sku) VALUES (%[1]d, '%[2]s %[1]d')"}[table]
	for id := range sharding.Slot(LayoutOrders) {
		target, _ := m.Target(id % 4)
		l.exec(t, target, "INSERT INTO "+target.Table+fmt.Sprintf(row, id, layout))
	}
}

func (l *Layouts) exec(t testing.TB, target sharding.Target, query string) {
	t.Helper()
	if _, err := l.DBs[target.DB].ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// Swap replaces the layouts in turn until the channel is closed.
func (l *Layouts) Swap(t testing.TB, done <-chan struct{}) (times int64) {
	for version := int64(1); ; version++ {
		select {
		case <-done:
			return version
		default:
		}
		next := map[string]sharding.Map{}
		for table, m := range l.Maps[layoutNames[version%2]] {
			next[table] = m.At(version)
		}
		if err := l.Router.Swap(next); err != nil {
			t.Error(err)
			return version
		}
		if table, _ := l.Router.Table("orders"); table.Map.Version() != version {
			t.Errorf("version %d is in force, not %d", table.Map.Version(), version)
			return version
		}
		runtime.Gosched()
	}
}

// Check compares the orders of users other than 0 with the acknowledged ones: batches of ids, each
// of which is in one layout and was changed as a whole.
func (l *Layouts) Check(t testing.TB, batches [][]int64) {
	t.Helper()
	found := map[int64][]string{}
	for layout := range l.Maps {
		for _, at := range l.Maps[layout]["orders"].Targets() {
			l.find(t, layout, at, found)
		}
	}
	for _, ids := range batches {
		first := found[ids[0]]
		for _, id := range ids {
			if len(first) != 1 || !slices.Equal(found[id], first) {
				t.Errorf("of the batch %d order %d is %q, and the first one %q", ids, id, found[id], first)
			}
		}
		for _, id := range ids {
			delete(found, id)
		}
	}
	if len(found) > 0 {
		t.Errorf("rows that were deleted, or never acknowledged: %v", found)
	}
}

// find adds the layout and the note of each order in a table, and checks that it belongs there.
func (l *Layouts) find(t testing.TB, layout string, at sharding.Target, found map[int64][]string) {
	t.Helper()
	rows, err := l.DBs[at.DB].QueryContext(t.Context(), "SELECT id, note FROM "+at.Table+" WHERE user_id > 0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var note string
		if err := rows.Scan(&id, &note); err != nil {
			t.Fatal(err)
		}
		found[id] = append(found[id], layout+" "+note)
		if right, _ := l.Maps[layout]["orders"].Target(sharding.Slot(id % 4)); right != at {
			t.Errorf("order %d is in %s, not %s", id, at, right)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
