// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// MariaDB leaves a table out of information_schema while a statement changes it, if the reader is in a transaction that has used a table.
// A move of slots and a migration create and drop triggers.
func TestATransactionReadsTheColumnsOfATableWhoseTriggersAreBeingChanged(t *testing.T) {
	db := server.ShareMariaDB(t).Open(t, "triggers")
	for _, table := range []string{"orders_0", "users_0"} {
		database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, email VARCHAR(50) NOT NULL, n BIGINT NOT NULL DEFAULT 7, UNIQUE (email))")
	}
	var tables []sharding.Option
	for _, name := range []string{"orders", "users"} {
		m, err := sharding.Spread([]string{"a"}, 1, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		table := sharding.Table{Name: name, Key: "id", Rule: sharding.Mod(1), Map: m}
		if name == "users" {
			table.Lookups = []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}}
		}
		tables = append(tables, table)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, tables...)
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: db, Table: "users", Column: "email"}); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var changing sync.WaitGroup
	defer changing.Wait()
	defer close(end)
	changing.Go(func() {
		for {
			for _, statement := range []string{"CREATE TRIGGER changing AFTER DELETE ON users_0 FOR EACH ROW SET @deleted = 1", "DROP TRIGGER changing"} {
				if _, err := db.Exec(statement); err != nil {
					t.Error(err)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(8 * time.Millisecond):
			}
		}
	})
	failed, committed := map[string]int{}, 0
	for n := range 200 {
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db}) // has not read the columns of the lookup yet
		err := func() error {
			if _, err := routed.ExecContext(t.Context(), "SELECT n FROM users WHERE id = 1"); err != nil {
				return err
			}
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "SELECT n FROM orders WHERE id = 1"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO users (id, email) VALUES (?, ?)", n, strconv.Itoa(n)); err != nil {
				return err
			}
			return tx.Commit()
		}()
		if err == nil {
			committed++
		} else if !dialect.Contended(err) {
			failed[err.Error()]++
		}
		if err := routed.Close(); err != nil {
			t.Error(err)
		}
	}
	if committed == 0 {
		t.Error("nothing was committed")
	}
	for text, n := range failed {
		t.Errorf("%d transactions: %s", n, text)
	}
}
