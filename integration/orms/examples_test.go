// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"xorm.io/xorm"
	"xorm.io/xorm/core"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/orms/entorders"
	"github.com/shardid/shardid/integration/orms/entorders/hook"
	entorder "github.com/shardid/shardid/integration/orms/entorders/order"
	"github.com/shardid/shardid/integration/orms/genorders"
	"github.com/shardid/shardid/integration/orms/genorders/model"
	"github.com/shardid/shardid/integration/orms/sqlcorders"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// exampleShop returns two databases as one, and what makes the ids of orders.
func exampleShop() (routed *sql.DB, nextID func(ctx context.Context, user int64) (int64, error), end func()) {
	home, router, ids, endRouter := exampleRouter()
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	nextID = func(ctx context.Context, user int64) (int64, error) {
		return router.NextID(ctx, ids, "orders", "id", user)
	}
	return routed, nextID, func() {
		check(routed.Close())
		endRouter()
	}
}

func exampleRouter() (home *sql.DB, router *sharding.Router, ids *snowflake.Generator, end func()) {
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		check(err)
		return db
	}
	ctx, east, west := context.Background(), open("east"), open("west")
	home = open("home")
	for i, db := range []*sql.DB{east, west, east, west} {
		for name, columns := range tables {
			_, err := db.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s_%d %s", name, i, strings.ReplaceAll(columns, "(6)", "")))
			check(err)
		}
	}

	orders, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	check(err)
	items, err := sharding.Spread([]string{"east", "west"}, 4, "items_%d")
	check(err)
	router, err = sharding.New(sharding.DBs{"east": east, "west": west},
		sharding.Table{
			Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders, Group: "shop",
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(2)}}, // the id leads to the shard as well
		},
		sharding.Table{Name: "items", Key: "order_id", Rule: sharding.Low(2), Map: items, Group: "shop"})
	check(err)

	ids, err = snowflake.New(ctx, snowflake.Config{
		Worker: workerid.Static(3),
		Layout: keygen.Layout{
			Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 10}, {Kind: keygen.Bucket, Bits: 2}},
		},
	})
	check(err)
	return home, router, ids, func() {
		check(ids.Close())
		for _, db := range []*sql.DB{east, west, home} {
			check(db.Close())
		}
		check(os.RemoveAll(dir))
	}
}

func Example_sqlc() {
	ctx := context.Background()
	routed, nextID, end := exampleShop()
	defer end()

	queries := sqlcorders.New(routed)
	id, err := nextID(ctx, 7)
	check(err)
	check(queries.CreateOrder(ctx, sqlcorders.CreateOrderParams{ID: id, UserID: 7, Amount: 30, CreatedAt: time.Now()}))
	order, err := queries.Order(ctx, id)
	check(err)
	fmt.Println(order.UserID, order.Amount)
	// Output: 7 30
}

func Example_ent() {
	ctx := context.Background()
	routed, nextID, end := exampleShop()
	defer end()

	client := entorders.NewClient(entorders.Driver(entsql.OpenDB(dialect.SQLite, routed)))
	client.Order.Use(hook.On(func(next entorders.Mutator) entorders.Mutator {
		return hook.OrderFunc(func(ctx context.Context, m *entorders.OrderMutation) (entorders.Value, error) {
			user, _ := m.UserID()
			id, err := nextID(ctx, user)
			if err != nil {
				return nil, err
			}
			m.SetID(id)
			return next.Mutate(ctx, m)
		})
	}, entorders.OpCreate))
	order, err := client.Order.Create().SetUserID(7).SetAmount(30).SetCreatedAt(time.Now()).Save(ctx)
	check(err)
	check(client.Order.UpdateOne(order).AddAmount(5).Exec(ctx)) // by the id
	order, err = client.Order.Query().Where(entorder.UserID(7)).Only(ctx)
	check(err)
	fmt.Println(order.UserID, order.Amount)
	// Output: 7 35
}

func Example_gen() {
	ctx := context.Background()
	home, router, ids, end := exampleRouter()
	defer end()

	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: home})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})))
	q := genorders.Use(db)
	order := model.Order{UserID: 7, Amount: 30}
	check(q.Order.WithContext(ctx).Create(&order)) // the plugin fills order.ID
	_, err = q.Order.WithContext(ctx).Where(q.Order.ID.Eq(order.ID)).UpdateSimple(q.Order.Amount.Add(5))
	check(err)
	found, err := q.Order.WithContext(ctx).Where(q.Order.UserID.Eq(7)).First()
	check(err)
	fmt.Println(found.ID == order.ID, found.Amount)
	// Output: true 35
}

func Example_bun() {
	ctx := context.Background()
	routed, nextID, end := exampleShop()
	defer end()

	db := bun.NewDB(routed, sqlitedialect.New())
	order := bunOrder{UserID: 7, Amount: 30, CreatedAt: time.Now(), next: nextID}
	_, err := db.NewInsert().Model(&order).Exec(ctx) // BeforeAppendModel sets the id
	check(err)
	_, err = db.NewUpdate().Model(&order).Set("amount = amount + 5").WherePK().Exec(ctx)
	check(err)
	err = db.NewSelect().Model(&order).Where("user_id = ?", 7).Scan(ctx)
	check(err)
	fmt.Println(order.UserID, order.Amount)
	// Output: 7 35
}

func Example_xorm() {
	ctx := context.Background()
	routed, nextID, end := exampleShop()
	defer end()

	engine, err := xorm.NewEngineWithDB("sqlite", "", core.FromDB(routed))
	check(err)
	id, err := nextID(ctx, 7)
	check(err)
	_, err = engine.Context(ctx).Insert(&xormOrder{ID: id, UserID: 7, Amount: 30, CreatedAt: time.Now()})
	check(err)
	_, err = engine.Context(ctx).ID(id).Incr("amount", 5).Update(&xormOrder{})
	check(err)
	order := xormOrder{UserID: 7}
	_, err = engine.Context(ctx).Get(&order) // WHERE user_id = 7
	check(err)
	fmt.Println(order.UserID, order.Amount)
	// Output: 7 35
}

func TestTheGuideHasTheCodeOfTheExamples(t *testing.T) {
	text := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	ours := unindented(text("examples_test.go") + text("bun_test.go") + text("pgx_test.go") + text("genorders/model/model.go") + text("casbin/example_test.go"))
	blocks := strings.Split(text("../../docs/other-libraries.md"), "\n```go\n")[1:]
	if len(blocks) != 12 {
		t.Errorf("%d blocks of Go", len(blocks))
	}
	for _, rest := range blocks {
		block, _, _ := strings.Cut(rest, "```\n")
		if !strings.Contains(ours, unindented(block)) {
			t.Errorf("no example has this:\n%s", block)
		}
	}
}

// unindented is the text without blank lines and indentation.
func unindented(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines.WriteString(line + "\n")
		}
	}
	return lines.String()
}
