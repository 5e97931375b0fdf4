// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema"
)

// A statement that Spider sends to another server is answered there, and its number stays
// there.
func TestCountersInTablesOfSpiderAreRefusedForWhatTheyAre(t *testing.T) {
	there, engine := server.RunMariaDB(t), server.RunSpider(t)
	_, store := database.MariaDB(there).Store(t)
	if _, err := store.Tag("orders").Reserve(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	at, err := mysql.ParseDSN(there.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(at.Addr, ":")
	here := engine.Open(t, "app")
	database.Exec(t, here, fmt.Sprintf("CREATE SERVER far FOREIGN DATA WRAPPER mysql OPTIONS (HOST '%s', PORT %s, USER 'root', DATABASE 'app')", host, port))
	if err := schema.Apply(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"leaf_alloc", "WORKER_NODE", "worker_lease", "worker_namespace"} {
		database.Exec(t, here, fmt.Sprintf(`ALTER TABLE %s ENGINE = SPIDER COMMENT = 'wrapper "mysql", srv "far", table "%[1]s"'`, table))
	}
	through := database.StoreOn(t, here)
	_, segment := through.Tag("orders").Reserve(t.Context(), 10)
	_, node := through.WorkerNode("h", "1").Acquire(t.Context(), keygen.Disposable())
	_, lease := tryAcquire(t.Context(), through, "shop")
	for what, err := range map[string]error{"a segment": segment, "a row of WORKER_NODE": node, "a lease": lease} {
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), "SPIDER") || !strings.Contains(setup.Cure, "the server that has the rows") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := database.MustNumber(t, there.Open(t, "app"), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"); n != 11 {
		t.Errorf("the counter is at %d", n)
	}
}
