// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// gorm's DoNothing is ON DUPLICATE KEY UPDATE id = id on MySQL and MariaDB.
func TestTheRefusalOfAnUpsertThatChangesNothingDoesNotAdviseToDeleteTheRow(t *testing.T) {
	m := server.ShareMySQL(t)
	dbs := sharding.DBs{"a": m.Open(t, "advice_a"), "b": m.Open(t, "advice_b")}
	tables, err := sharding.Spread([]string{"a", "b"}, 4, "members_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range tables.Targets() {
		database.Exec(t, dbs[at.DB], fmt.Sprintf("CREATE TABLE %s (id BIGINT PRIMARY KEY, email VARCHAR(50) UNIQUE, name VARCHAR(50))", at.Table))
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "members", Key: "id", Rule: sharding.Low(2), Map: tables})
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = db.Close() }()
	database.Exec(t, db, "INSERT INTO members (id, email) VALUES (3, 'a')")
	for text, want := range map[string]string{
		"INSERT IGNORE INTO members (id, email) VALUES (4, 'a')":                                                 "leave the INSERT out",
		"INSERT INTO members (id, email) VALUES (4, 'a') ON DUPLICATE KEY UPDATE id = id":                        "leave the INSERT out",
		"INSERT INTO members (id, email, name) VALUES (4, 'a', 'n') ON DUPLICATE KEY UPDATE name = VALUES(name)": "search for it first, and update it by its id",
	} {
		if _, err := db.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
