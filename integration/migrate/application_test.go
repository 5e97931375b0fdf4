// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// appGrants are those of docs/runbook.md for the application, in its order: of MySQL and MariaDB, and of PostgreSQL.
func appGrants(t *testing.T) (mysql, postgres []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	into := &mysql
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "On PostgreSQL ") {
			into = &postgres
		}
		if strings.HasPrefix(line, "GRANT ") && strings.Contains(line, " TO app;") {
			*into = append(*into, strings.TrimSuffix(strings.TrimSpace(line), ";"))
		}
	}
	if len(mysql) < 3 || len(postgres) < 1 {
		t.Fatalf("%q, %q", mysql, postgres)
	}
	return mysql, postgres
}

// With the documented rights the generators of an application take ids and worker ids, and its recorder stores what it finds.
func TestAnApplicationOfPostgresHasItsGeneratorsAndItsRecorderWithTheDocumentedGrants(t *testing.T) {
	ctx, p := t.Context(), server.RunPostgres(t)
	admin := p.Open(t, "shop")
	if err := errors.Join(schema.Apply(ctx, admin), preview.Create(ctx, admin)); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(ctx, admin, "orders", 1000, 10); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, admin, "CREATE USER app")
	_, grants := appGrants(t)
	for _, grant := range grants {
		database.Exec(t, admin, grant)
	}
	app, err := sql.Open("pgx", strings.Replace(p.DSN("shop"), "postgres@", "app@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close() })
	store, err := sqlstore.New(ctx, app)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := segment.New(ctx, segment.Config{Source: store.Tag("orders")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = counter.Close() }()
	if id, err := counter.Next(ctx); err != nil || id != 1000 {
		t.Errorf("%d, %v", id, err)
	}
	leased, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders", Instance: "pod-0", Term: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, worker := range map[string]keygen.Assigner{"WORKER_NODE": store.WorkerNode("pod-0", "1"), "a lease": leased} {
		g, err := snowflake.New(ctx, snowflake.Config{Worker: worker})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := g.Next(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	recorder, err := preview.Start(ctx, preview.Config{Source: app, Preview: new(sharding.Preview)})
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(ctx); err != nil {
		t.Error(err)
	}
}

// The application has only the documented rights. It runs from before the first row
// is copied until it writes to the shards, with ids of leaf_alloc.
func TestAnApplicationWithTheDocumentedGrantsLivesThroughAMigration(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		ctx := t.Context()
		m := newMoving(t, s, grants...)
		database.Exec(t, m.admin, "CREATE USER app")
		database.Exec(t, m.admin, "GRANT INSERT, UPDATE, DELETE ON shop.orders TO app") // what it has
		if err := errors.Join(schema.Apply(ctx, m.cfg.Source), preview.Create(ctx, m.cfg.Source)); err != nil {
			t.Fatal(err)
		}
		documented, _ := appGrants(t)
		for _, grant := range documented {
			database.Exec(t, m.admin, grant)
			if strings.Contains(grant, "shop_east") {
				database.Exec(t, m.admin, strings.ReplaceAll(grant, "shop_east", "shop_west"))
			}
		}
		if _, err := schema.Seed(ctx, m.cfg.Source, "orders", 1000, 10); err != nil {
			t.Fatal(err)
		}
		insert := newClerk(t, sharding.DBs{
			"legacy": database.OpenAs(t, s, "app", "shop"), "east": database.OpenAs(t, s, "app", "shop_east"), "west": database.OpenAs(t, s, "app", "shop_west"),
		}, m.cfg.Tables[0].Table)
		if id := insert(); id != 16 {
			t.Errorf("before the job: %d", id)
		}
		if err := m.job.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if id := insert(); id != 17 {
			t.Errorf("before the switch: %d", id)
		}
		recorder, err := preview.Start(ctx, preview.Config{Source: database.OpenAs(t, s, "app", "shop"), Preview: new(sharding.Preview)})
		if err != nil {
			t.Fatal(err)
		}
		if err := recorder.Close(ctx); err != nil {
			t.Error(err)
		}
		if _, err := m.job.Cutover(ctx, longPause); err != nil {
			t.Fatal(err)
		}
		if id := insert(); id != 1000 {
			t.Errorf("after the switch: %d", id)
		}
	})
}

// newClerk returns a function that inserts an order and returns its id.
func newClerk(t *testing.T, dbs sharding.DBs, orders sharding.Table) func() int64 {
	t.Helper()
	ctx := t.Context()
	store, err := sqlstore.New(ctx, dbs["legacy"])
	if err != nil {
		t.Fatal(err)
	}
	counter, err := segment.New(ctx, segment.Config{Source: store.Tag("orders")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = counter.Close() })
	router, err := sharding.New(dbs, orders, sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id"}, Patience: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Load(ctx); err != nil {
		t.Fatal(err)
	}
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: counter}, Router: router})
	if err != nil {
		t.Fatal(err)
	}
	db := database.RoutedSqlx(t, router, dbs["legacy"])
	return func() int64 {
		order := struct {
			ID     int64 `db:"id" keygen:""`
			UserID int64 `db:"user_id"`
		}{UserID: 5}
		if _, err := h.Insert(ctx, db, "orders", &order); err != nil {
			t.Fatal(err)
		}
		return order.ID
	}
}
