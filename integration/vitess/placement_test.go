// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// placedTable is a table of one of the rules that can be exported.
type placedTable struct {
	rule    sharding.Rule
	targets []int // by slot, in turn
	stored  bool  // rows have their slot in the column slot
	texts   bool  // its keys are texts
	signed  bool  // its keys may be negative
}

// places are one table for each rule that can be exported.
func places() map[string]placedTable {
	upTo := func(n int) (all []int) {
		for i := range n {
			all = append(all, i)
		}
		return all
	}
	var runs, halves []int
	for slot := range 256 {
		runs = append(runs, slot/100)
		halves = append(halves, slot/128)
	}
	return map[string]placedTable{
		"lows":    {rule: sharding.Low(10), targets: upTo(4)},
		"spots":   {rule: sharding.Low(2), targets: []int{0, 1, 0, 2}},
		"mods":    {rule: sharding.Mod(8), targets: upTo(8)},
		"steps":   {rule: sharding.OffsetStep(3, 4), targets: upTo(4)},
		"hashes":  {rule: sharding.Hash(256), targets: runs, signed: true},
		"texts":   {rule: sharding.HashText(256), targets: halves, texts: true},
		"dozens":  {rule: sharding.Mod(12), targets: upTo(6), stored: true, signed: true},
		"buckets": {rule: sharding.Bits(12, 3), targets: upTo(8), stored: true, signed: true},
	}
}

func (p placedTable) table(t *testing.T, name string) sharding.Table {
	t.Helper()
	var targets []sharding.Target
	for slot := range p.rule.Slots() {
		targets = append(targets, sharding.Target{DB: "east", Table: name + "_" + strconv.Itoa(p.targets[slot%len(p.targets)])})
	}
	layout, err := sharding.MapOf(targets...)
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: name, Key: "k", Rule: p.rule, Map: layout}
}

// keys are n keys for the table.
func (p placedTable) keys(n int) (all []any) {
	seen := map[int64]bool{}
	for _, k := range integers(3 * n) {
		switch {
		case len(all) == n:
			return all
		case seen[k]:
			continue
		case p.texts:
			all = append(all, "customer-"+strconv.FormatInt(k, 36))
		case k >= 0 || p.signed:
			all = append(all, k)
		}
		seen[k] = true
	}
	return all
}

func TestRowsThatVtgateInsertsLieWhereTheRuleSays(t *testing.T) {
	const rows = 400 // for each table
	tables := places()
	options := []sharding.Option{sharding.Broadcast("regions")}
	c := export.VitessConfig{Keyspace: "shop", Buckets: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		options = append(options, tables[name].table(t, name))
		if tables[name].stored {
			c.Buckets[name] = "slot"
		}
	}
	r, err := sharding.New(sharding.DBs{"east": new(sql.DB)}, options...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := export.Vitess(r, c)
	if err != nil {
		t.Fatal(err)
	}
	e := newExported(t, out)
	m := server.RunMySQL(t, forVitess...)
	s := newCombo(t, m, keyspace{"shop", e.names()})
	s.ctl(t, "ApplyVSchema", "--vschema-file", s.write(t, "vschema.json", e.file(t, "vschema.json")), "shop")
	shop := s.open(t, "shop")
	for name, p := range tables {
		key := "bigint"
		if p.texts {
			key = "varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
		}
		execf(t, shop, "CREATE TABLE %s (k %s PRIMARY KEY, slot bigint)", name, key)
		s.serves(t, "shop", "SELECT k FROM "+name)
		p.fill(t, shop, name, p.keys(rows))
	}
	for name, p := range tables {
		t.Run(name, func(t *testing.T) { p.check(t, shop, m, e, r, name, p.keys(rows)) })
	}
}

func (p placedTable) fill(t *testing.T, shop *sql.DB, name string, keys []any) {
	t.Helper()
	var values []string
	var args []any
	for _, k := range keys {
		values = append(values, "(?, ?)")
		args = append(args, k, p.slot(t, k))
	}
	if _, err := shop.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (k, slot) VALUES %s", name, strings.Join(values, ", ")), args...); err != nil {
		t.Fatal(err)
	}
}

func (p placedTable) slot(t *testing.T, key any) any {
	t.Helper()
	if !p.stored {
		return nil
	}
	slot, err := p.rule.Slot(key)
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// check looks for each key in the databases of the shards, and by vtgate.
func (p placedTable) check(t *testing.T, shop *sql.DB, m *server.MySQL, e exported, r *sharding.Router, name string, keys []any) {
	found := map[string]string{} // the shard's physical table by key
	for _, s := range e.shards {
		rows, err := m.Open(t, database("shop", s.Shard)).QueryContext(t.Context(), "SELECT k FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var k string
			if err := rows.Scan(&k); err != nil {
				t.Fatal(err)
			}
			if before, twice := found[k]; twice {
				t.Errorf("key %s lies in %s and in %s", k, before, s.Tables[name])
			}
			found[k] = s.Tables[name]
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) != len(keys) {
		t.Errorf("%d rows lie in the shards, %d were inserted", len(found), len(keys))
	}
	spread := map[string]int{}
	for _, k := range keys {
		at, err := r.Target(name, k)
		if err != nil {
			t.Fatal(err)
		}
		if got := found[fmt.Sprint(k)]; got != at.String() {
			t.Errorf("the rule puts %v into %s, Vitess into %q", k, at, got)
		}
		spread[at.String()]++
		var n int
		query, args := "SELECT COUNT(*) FROM "+name+" WHERE k = ?", []any{k}
		if p.stored {
			query, args = query+" AND slot = ?", append(args, p.slot(t, k))
		}
		if err := shop.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil || n != 1 {
			t.Errorf("vtgate finds %d rows of %v: %v", n, k, err)
		}
	}
	t.Logf("%d rows in %d of the router's tables, %d shards", len(keys), len(spread), len(e.shards))
}
