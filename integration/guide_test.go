// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	gormsharding "gorm.io/sharding"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/compat"
)

// guide is docs/from-go-gorm-sharding.md.
type guide struct{ text string }

func readGuide(t *testing.T) guide {
	t.Helper()
	text, err := os.ReadFile("../docs/from-go-gorm-sharding.md")
	if err != nil {
		t.Fatal(err)
	}
	return guide{string(text)}
}

// blocks returns the code of a language, in its order.
func (g guide) blocks(t *testing.T, language string, want int) []string {
	t.Helper()
	var blocks []string
	for _, rest := range strings.Split(g.text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```\n")
		blocks = append(blocks, block)
	}
	if len(blocks) != want {
		t.Fatalf("%d blocks of %s, want %d", len(blocks), language, want)
	}
	return blocks
}

// purchase is a model that both plugins accept.
type purchase struct {
	ID     int64 `gorm:"primaryKey" keygen:"orders"`
	UserID int64
	Note   string
}

func (purchase) TableName() string { return "orders" }

// guidedSwitch has the guide's Go code, which is compared with it below.
func guidedSwitch(ctx context.Context, t *testing.T, shopDB *sql.DB, db *gorm.DB) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	orders, err := compat.Import("orders", "shop", compat.Config{
		ShardingKey:         "user_id",
		NumberOfShards:      64,
		PrimaryKeyGenerator: compat.PKSnowflake,
	})
	check(err)
	router, err := sharding.New(sharding.DBs{"shop": shopDB}, orders)
	check(err)

	var next int64
	for _, target := range router.Targets("orders") {
		id, err := schema.NextID(ctx, shopDB, target.Table, "id")
		check(err)
		next = max(next, id)
	}
	generators := keygen.Set{Named: map[string]keygen.Generator[int64]{"orders": keygen.Counting(next, 1)}}

	err = db.Use(gormplugin.New(gormplugin.Config{Generators: generators, Router: router}))
	check(err)
}

func TestTheGuidesGoBlocksAreThoseThatRun(t *testing.T) {
	source, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range readGuide(t).blocks(t, "go", 3) {
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n\t") + "\n"
		if !strings.Contains(string(source), indented) {
			t.Errorf("the guide says, but this does not run:\n%s", block)
		}
	}
}

// openPurchases opens gorm on the shop's database.
func openPurchases(t *testing.T, db *sql.DB) *gorm.DB {
	t.Helper()
	g, err := gorm.Open(mysql.New(mysql.Config{Conn: db}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// go-gorm/sharding made the tables and rows, of which one is in the wrong table.
func TestAServiceComesFromGoGormShardingByTheGuide(t *testing.T) {
	g := readGuide(t)
	m := server.RunMariaDB(t)
	shop := m.Open(t, "shop")
	for i := range 64 {
		database.Exec(t, shop, fmt.Sprintf("CREATE TABLE orders_%02d (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT)", i))
	}
	want := makePurchases(t, shop)

	doctor := newDoctor(t, g, m.DSN("shop"))
	if out, code := doctor(); code != 1 || !strings.Contains(out, "misplaced_rows") || !strings.Contains(out, "orders_03") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	conn, err := shop.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(g.blocks(t, "sql", 1)[0]), ";\n") {
		if _, err := conn.ExecContext(t.Context(), strings.TrimSuffix(statement, ";")); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if out, code := doctor(); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	db := openPurchases(t, shop)
	guidedSwitch(t.Context(), t, shop, db)
	added := purchase{UserID: 129, Note: "of the new plugin"}
	if err := db.Create(&added).Error; err != nil {
		t.Fatal(err)
	}
	want[added.ID] = added
	for id, p := range want {
		var found purchase
		if err := db.First(&found, "user_id = ? AND id = ?", p.UserID, id).Error; err != nil || found != p {
			t.Errorf("%+v is %+v, %v", p, found, err)
		}
	}
	if out, code := doctor(); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// makePurchases inserts rows with go-gorm/sharding, and changes the key of one of them,
// which is then in the wrong table.
func makePurchases(t *testing.T, shop *sql.DB) map[int64]purchase {
	t.Helper()
	old := openPurchases(t, shop)
	if err := old.Use(gormsharding.Register(gormsharding.Config{
		ShardingKey: "user_id", NumberOfShards: 64, PrimaryKeyGenerator: gormsharding.PKSnowflake,
	}, "orders")); err != nil {
		t.Fatal(err)
	}
	all := map[int64]purchase{}
	for user := range int64(200) {
		p := purchase{UserID: user, Note: fmt.Sprint("of user ", user)}
		if err := old.Create(&p).Error; err != nil {
			t.Fatal(err)
		}
		var made purchase // the plugin does not set the id in the model
		if err := old.Where("user_id = ?", user).First(&made).Error; err != nil {
			t.Fatal(err)
		}
		all[made.ID] = made
	}
	moved := old.Model(&purchase{}).Where("user_id = ?", 3).Update("user_id", 640)
	if moved.Error != nil || moved.RowsAffected != 1 {
		t.Fatalf("%d rows, %v", moved.RowsAffected, moved.Error)
	}
	for id, p := range all {
		if p.UserID == 3 {
			p.UserID = 640
			all[id] = p
		}
	}
	return all
}

// newDoctor returns the guide's command, with its configuration.
func newDoctor(t *testing.T, g guide, dsn string) func() (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	program := server.Command(t)
	if err := os.WriteFile(filepath.Join(dir, "shards.json"), []byte(g.blocks(t, "json", 1)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(g.blocks(t, "sh", 1)[0], "\n")
	args := strings.Fields(line)
	if len(args) < 2 || args[0] != "shardid" {
		t.Fatalf("%q", args)
	}
	return func() (string, int) {
		cmd := exec.CommandContext(t.Context(), program, args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SHOP_DSN="+dsn)
		out, _ := cmd.CombinedOutput() // its code tells
		return string(out), cmd.ProcessState.ExitCode()
	}
}
