// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// payerVar makes a test be a program instead that is killed during COMMIT: it has the data sources and the id of the order.
const payerVar = "SHARDID_TEST_PAYER"

// payments is a router of orders, which are migrated, and of ledger, whose rows are on b.
func payments(t *testing.T, dbs sharding.DBs) *sharding.Router {
	t.Helper()
	m, err := sharding.MapOf(sharding.Target{DB: "b", Table: "ledger_0"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(dbs, shopOrders(t, "id").Table, sharding.Table{Name: "ledger", Key: "id", Rule: sharding.Mod(1), Map: m},
		sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id"}}, sharding.Transactions(sharding.Atomic))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// pay is killed when b, which decides, has committed, and before another database gets the COMMIT of its prepared branch.
func pay(t *testing.T, words []string) {
	t.Helper()
	s := shopAt(t, words[:3])
	killed := &trouble{speaks: s.speaks, before: func(statement string) {
		if strings.HasPrefix(statement, "XA COMMIT") || strings.HasPrefix(statement, "COMMIT PREPARED") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}}
	killed.off.Store(true)
	open := func(dsn string) *sql.DB { return sql.OpenDB(troubled{s.source.Driver(), dsn, killed}) }
	dbs := sharding.DBs{"legacy": open(words[0]), "a": open(words[1]), "b": s.shards["b"]}
	db := shardsql.OpenDB(shardsql.Config{Router: payments(t, dbs), Home: dbs["legacy"]})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INSERT INTO ledger (id) VALUES (" + words[3] + ")", "UPDATE orders SET note = 'paid' WHERE id = " + words[3]} {
		database.Exec(t, tx, text)
	}
	t.Fatal("it was not killed:", tx.Commit())
}

// paysAndIsKilled starts a program that is killed when its payment of an order has been decided.
func (s *migrationShop) paysAndIsKilled(t *testing.T, id int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", payerVar, s.servers[0].DSN("shop"), s.servers[0].DSN("shop_a"), s.servers[1].DSN("shop_b"), id))
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the program ended with %v: %s", err, said)
	}
}

// resolves ends the branch of the killed program, and returns how many were committed.
func resolves(t *testing.T, r *sharding.Router) int {
	t.Helper()
	resolver, err := twophase.New(twophase.Config{Router: r, After: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	did, err := resolver.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return did.Committed
}

func TestAPaymentOfAKilledProgramIsNotLostByASwitch(t *testing.T) {
	if words := os.Getenv(payerVar); words != "" {
		pay(t, strings.Fields(words))
	}
	test := func(t *testing.T, s *migrationShop) {
		t.Helper()
		s.fill(t, 100)
		dbs := sharding.DBs{"legacy": s.source, "a": s.shards["a"], "b": s.shards["b"]}
		database.Exec(t, s.shards["b"], "CREATE TABLE ledger_0 (id BIGINT NOT NULL PRIMARY KEY)")
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		router := payments(t, dbs)
		if err := twophase.Create(t.Context(), router, nil); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			order   int
			does    func(longest time.Duration) error
			counted *sql.DB
			in      string
		}{
			{1, func(longest time.Duration) error { _, err := j.Cutover(t.Context(), longest); return err }, s.shards["b"], "orders_01"},
			{4, func(longest time.Duration) error { _, err := j.Rollback(t.Context(), longest); return err }, s.source, "orders"}, // orders_00 is on a
		} {
			s.paysAndIsKilled(t, step.order)
			if err := step.does(allowedPause); !errors.Is(err, migrate.ErrNotReady) {
				t.Errorf("the switch beside the payment of order %d: %v", step.order, err)
			}
			if n := resolves(t, router); n != 1 {
				t.Errorf("%d branches of order %d were committed", n, step.order)
			}
			if err := step.does(longPause); err != nil {
				t.Fatal(err)
			}
			if n := database.MustNumber(t, step.counted, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE id = %d AND note = 'paid'", step.in, step.order)); n != 1 {
				t.Errorf("order %d is paid in %d rows of %s", step.order, n, step.in)
			}
		}
		if n := database.MustNumber(t, s.shards["b"], "SELECT COUNT(*) FROM ledger_0"); n != 2 {
			t.Errorf("the ledger has %d of 2 payments", n)
		}
		s.compare(t, "id", "orders", "_sealed")
	}
	onShopServers(t, test)
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, newMigrationShop(t, server.RunPostgres(t, "max_prepared_transactions=10"), server.RunPostgres(t, "max_prepared_transactions=10")))
	})
}
