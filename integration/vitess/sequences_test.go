// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// firstNumber is where the exported sequence begins.
const firstNumber = 5000

// numberedShop is a keyspace whose orders Vitess numbers by the exported sequence and finds by
// their number through the exported lookup.
func numberedShop(t *testing.T) (e exported, m *server.MySQL, shop *sql.DB) {
	t.Helper()
	layout, err := sharding.Spread([]string{"east"}, 4, "orders_%02d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"east": new(sql.DB)}, sharding.Table{
		Name: "orders", Key: "user_id", Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(10)}}, Rule: sharding.Low(10), Map: layout,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := export.Vitess(r, export.VitessConfig{
		Keyspace: "shop", Lookups: true, Sequences: map[string]export.Sequence{"orders": {Column: "id", Next: firstNumber}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, m = newExported(t, out), server.RunMySQL(t, forVitess...)
	s := newCombo(t, m, keyspace{"shop_global", []string{"0"}}, keyspace{"shop", e.names()})
	shop = s.open(t, "shop")
	for keyspace, file := range map[string]string{"shop_global": "sequences", "shop": "lookups"} {
		vschema := map[string]string{"shop_global": "sequences.vschema.json", "shop": "vschema.json"}[keyspace]
		s.ctl(t, "ApplyVSchema", "--vschema-file", s.write(t, vschema, e.file(t, vschema)), keyspace)
		for statement := range strings.SplitSeq(strings.TrimSpace(e.file(t, file+".sql")), ";\n") {
			execf(t, s.open(t, keyspace), "%s", statement)
		}
	}
	execf(t, shop, "CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint NOT NULL)")
	s.serves(t, "shop", "SELECT user_id FROM orders")
	s.serves(t, "shop", "SELECT id FROM orders_id_lookup")
	return e, m, shop
}

func TestVitessNumbersRowsByTheExportedSequenceAndFindsThemByTheExportedLookup(t *testing.T) {
	e, m, shop := numberedShop(t)
	const rows = 200
	users := map[int64]int64{} // by number
	for user := range int64(rows) {
		res, err := shop.ExecContext(t.Context(), "INSERT INTO orders (user_id) VALUES (?)", user)
		if err != nil {
			t.Fatal(err)
		}
		id, err := res.LastInsertId()
		if err != nil || id < firstNumber {
			t.Fatalf("the row of user %d has number %d, %v", user, id, err)
		}
		users[id] = user
	}
	if len(users) != rows {
		t.Errorf("%d rows got %d numbers", rows, len(users))
	}
	for id, user := range users {
		var found int64
		if err := shop.QueryRowContext(t.Context(), "SELECT user_id FROM orders WHERE id = ?", id).Scan(&found); err != nil || found != user {
			t.Errorf("number %d leads to user %d, want %d: %v", id, found, user, err)
		}
	}
	placed, entries := int64(0), int64(0)
	for _, s := range e.shards {
		shard := m.Open(t, database("shop", s.Shard))
		n := number(t.Context(), t, shard, "SELECT COUNT(*) FROM orders")
		if n == 0 {
			t.Errorf("shard %s has no row", s.Shard)
		}
		placed += n
		entries += number(t.Context(), t, shard, "SELECT COUNT(*) FROM orders_id_lookup")
	}
	if placed != rows || entries != rows {
		t.Errorf("the shards have %d rows and %d entries of lookups, want %d", placed, entries, rows)
	}

	// The lookup leads to one shard, and keeps a number that another shard's row has from being taken.
	if plan := plan(t, shop, "SELECT user_id FROM orders WHERE id = 5000"); !strings.Contains(plan, "orders_id_lookup") {
		t.Errorf("the plan is %s", plan)
	}
	var taken *mysql.MySQLError
	if _, err := shop.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (?, ?)", firstNumber, users[firstNumber]+1); !errors.As(err, &taken) || taken.Number != 1062 {
		t.Errorf("a number that is taken: %v", err)
	}
}

// plan is how vtgate carries out a query.
func plan(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "VEXPLAIN PLAN "+query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var text strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		text.WriteString(line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
