// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"strconv"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// joinedAtHome are queries of shards and of tables beside them that are not sharded.
var joinedAtHome = []string{
	"SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id ORDER BY u.name DESC, o.id LIMIT 9",
	"SELECT o.id FROM orders o JOIN users u ON u.id = o.user_id ORDER BY u.vip, u.since DESC, u.spent, o.id LIMIT 9 OFFSET 3",
	"SELECT DISTINCT u.name FROM users u JOIN orders o ON o.user_id = u.id ORDER BY u.name",
	"SELECT u.name, COUNT(*) AS n, MAX(u.since) AS last, SUM(u.spent) AS s, COUNT(DISTINCT u.vip) AS v FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.name ORDER BY n DESC, u.name",
	"SELECT o.paid, MIN(u.name) AS least FROM users u JOIN orders o ON o.user_id = u.id GROUP BY o.paid ORDER BY o.paid",
	"SELECT t.title, COUNT(*) AS n FROM titles t JOIN orders o ON o.user_id = t.id GROUP BY t.title ORDER BY t.title",
	"SELECT o.id FROM orders o ORDER BY (SELECT u.vip FROM users u WHERE u.id = o.user_id), o.id LIMIT 11",
}

func TestRowsOfShardsAreOrderedByColumnsOfTablesBesideThem(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) { joinsAtHome(t, open) })
	}
}

// ordersAtHome returns a routed database whose shards of orders are all at home, and one with one table.
func ordersAtHome(t *testing.T, open namedDatabase, name string) (routed, whole *sql.DB) {
	t.Helper()
	home, whole := open(t, name+"_home"), open(t, name+"_whole")
	m, err := sharding.Spread([]string{"home"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	const orders = " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, paid INT)"
	database.Exec(t, whole, "CREATE TABLE orders"+orders)
	for _, at := range m.Targets() {
		database.Exec(t, home, "CREATE TABLE "+at.Table+orders)
	}
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole
}

func joinsAtHome(t *testing.T, open namedDatabase) {
	t.Helper()
	routed, whole := ordersAtHome(t, open, "beside")
	create := func(db database.Execer, table, columns string) {
		database.Exec(t, db, "DROP TABLE IF EXISTS "+table)
		database.Exec(t, db, "CREATE TABLE "+table+columns)
	}
	for _, db := range []database.Execer{whole, routed} {
		database.Exec(t, db, "DROP VIEW IF EXISTS titles")
		create(db, "users", " (id BIGINT PRIMARY KEY, name VARCHAR(20), vip INT, since TIMESTAMP NULL, spent DECIMAL(9, 2))")
		database.Exec(t, db, "CREATE VIEW titles AS SELECT id, CONCAT(name, '!') AS title FROM users")
		for id := range 9 {
			name, vip := fmt.Sprintf("'%c'", []rune("Ba fXödc-")[id]), strconv.Itoa(id%3)
			if id == 4 {
				name, vip = "NULL", "NULL"
			}
			database.Exec(t, db, fmt.Sprintf("INSERT INTO users VALUES (%d, %s, %s, '2024-01-0%d 10:00:00', %d.5)", id, name, vip, 1+id%4, id%5))
		}
		for id := range 40 {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders (id, user_id, paid) VALUES (%d, %d, %d)", id, id%9, id%4))
		}
	}
	for _, text := range joinedAtHome {
		q := selects.Query{Text: text}
		want, err := q.Answer(t.Context(), whole, nil)
		if err != nil {
			t.Fatalf("%s: one table: %v", text, err)
		}
		if got, err := q.Answer(t.Context(), routed, nil); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%v (%v)\none table: %v", text, got, err, want)
		}
	}
}

// On MySQL and MariaDB a CREATE TABLE in a transaction commits what its database has. With BestEffort the transaction may go
// on to shards: what it writes at home afterwards is committed at once, and what it writes in shards with COMMIT.
func TestARollbackAfterACreatedTableUndoesWhatShardsHave(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			home, pools := open(t, "created_home"), sharding.DBs{"a": open(t, "created_a"), "b": open(t, "created_b")}
			m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, pools[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY)")
			}
			router, err := sharding.New(pools, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.BestEffort))
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			t.Cleanup(func() { _ = routed.Close() })
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{
				"CREATE TABLE notes (id BIGINT PRIMARY KEY)", "INSERT INTO orders (id) VALUES (0), (1)", "INSERT INTO notes (id) VALUES (5)",
			} {
				database.Exec(t, tx, text)
			}
			var notes, orders int
			if err := home.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notes").Scan(&notes); err != nil || notes != 1 {
				t.Errorf("%d notes are committed, %v", notes, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&orders); err != nil || orders != 0 {
				t.Errorf("%d orders remain, %v", orders, err)
			}
		})
	}
}

// A CREATE TABLE of MySQL and MariaDB ends the transaction. As on one table, each statement after it is then committed at once,
// with its rows on all shards or on none.
func TestAStatementForSeveralShardsMayFollowACreateTableInItsTransaction(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) { createsInTransaction(t, open) })
	}
}

func createsInTransaction(t *testing.T, open namedDatabase) {
	t.Helper()
	routed, whole := ordersAtHome(t, open, "creates")
	var said [2][]any
	for i, db := range []*sql.DB{whole, routed} {
		for _, commit := range []bool{false, true} {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			database.Exec(t, tx, fmt.Sprintf("CREATE TABLE staff_%t (id BIGINT PRIMARY KEY)", commit))
			database.Exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (1, 1), (2, 2), (3, 3)")
			database.Exec(t, tx, "UPDATE orders SET paid = user_id WHERE user_id IN (1, 2)")
			if driver := database.DriverName(whole); driver == "mysql" { // after an error PostgreSQL executes nothing more
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (4, 0), (2, 2)"); err == nil {
					t.Error("a second row with a key")
				}
			}
			if commit {
				err = tx.Commit()
			} else {
				err = tx.Rollback()
			}
			said[i] = append(said[i], err, database.Texts(t, db, "SELECT COALESCE(paid, id) FROM orders ORDER BY id"))
			database.Exec(t, db, "DELETE FROM orders WHERE user_id IN (0, 1, 2, 3)")
		}
	}
	if fmt.Sprint(said[1]) != fmt.Sprint(said[0]) {
		t.Errorf("%v\nwant %v", said[1], said[0])
	}
}
