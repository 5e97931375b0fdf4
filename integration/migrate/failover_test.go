// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// replica makes a copy of a database on another server, as a replica has it that
// takes over later.
func replica(t *testing.T, of *sql.DB, on database.Server, name string) *sql.DB {
	t.Helper()
	db := on.Open(t, name)
	for _, table := range database.Texts(t, of, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'") {
		var text string
		if err := of.QueryRowContext(t.Context(), "SHOW CREATE TABLE "+table).Scan(&table, &text); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, db, text)
		copyRows(t, of, db, table)
	}
	for _, trigger := range database.Texts(t, of, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()") {
		database.Exec(t, db, triggerText(t, of, trigger))
	}
	return db
}

func copyRows(t *testing.T, from, to *sql.DB, table string) {
	t.Helper()
	rows, err := from.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	insert := "INSERT INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		if _, err := to.ExecContext(t.Context(), insert, values...); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// triggerText is the third column of however many there are.
func triggerText(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SHOW CREATE TRIGGER "+name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatalf("trigger %s: %v, %v", name, err, rows.Err())
	}
	values := make([]sql.NullString, len(columns))
	dest := make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	if err := rows.Scan(dest...); err != nil {
		t.Fatal(err)
	}
	return values[2].String
}

// lag makes changes that the existing copies do not have.
func (s *migrationShop) lag(t *testing.T, id int) {
	t.Helper()
	for _, text := range []string{
		"UPDATE orders SET note = 'lost with the server' WHERE id BETWEEN %[1]d AND %[1]d + 9",
		"DELETE FROM orders WHERE id BETWEEN %[1]d + 10 AND %[1]d + 14",
		"INSERT INTO orders (id, user_id) VALUES (%[1]d + 7000, 3)",
		"UPDATE orders SET user_id = user_id + 1 WHERE id BETWEEN %[1]d + 20 AND %[1]d + 24",
	} {
		database.Exec(t, s.source, fmt.Sprintf(text, id))
	}
	if err := s.job(t, "user_id").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// On PostgreSQL see TestAfterAStandbyTookOverTheShardsHaveWhatItHas: its replicas are of whole
// servers.
func TestAfterAReplicaTookOverTheShardsHaveWhatItHas(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		run := func() {
			t.Helper()
			if err := s.job(t, "user_id").Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.compare(t, "user_id", "orders", "")
		}
		run()

		shard := replica(t, s.shards["b"], s.servers[0], "shop_b2")
		s.lag(t, 20)
		s.shards = sharding.DBs{"a": s.shards["a"], "b": shard}
		run()

		source := replica(t, s.source, s.servers[1], "shop")
		s.lag(t, 60)
		s.source = source
		database.Exec(t, s.source, "UPDATE orders SET note = 'after the change' WHERE id BETWEEN 61 AND 63")
		run()

		late := replica(t, s.source, s.servers[0], "shop_late")
		if _, err := s.job(t, "user_id").Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "user_id", "orders_old", "")
		database.Exec(t, s.shards["a"], "UPDATE orders_00 SET note = 'on the shard'")
		s.source = late // knows nothing of the switch
		if err := s.job(t, "user_id").Run(t.Context()); !errors.Is(err, migrate.ErrUnclear) {
			t.Errorf("a source from before the switch: %v", err)
		}
		if n := strings.Join(database.Texts(t, s.shards["a"], "SELECT COUNT(*) FROM orders_00 WHERE note <> 'on the shard'"), ""); n != "0" {
			t.Errorf("%s rows that were written to the shard are gone", n)
		}
	})
}
