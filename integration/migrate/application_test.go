// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// appGrants are those of docs/runbook.md for the application, in its order.
func appGrants(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var grants []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "GRANT ") && strings.Contains(line, " TO app;") {
			grants = append(grants, strings.TrimSuffix(strings.TrimSpace(line), ";"))
		}
	}
	if len(grants) < 3 {
		t.Fatalf("%q", grants)
	}
	return grants
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
		for _, grant := range appGrants(t) {
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
