// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sqlxhook"
)

// pageOrder is a row of the page.
type pageOrder struct {
	ID     keygen.ID `db:"id"      gorm:"primaryKey" json:"id" keygen:"order"`
	UserID int64     `db:"user_id" json:"user"`
}

func (pageOrder) TableName() string { return "orders" }

// idsInFiveMinutes is the code of docs/ids.md.
func idsInFiveMinutes(ctx context.Context, idDB *sql.DB, db *gorm.DB, plain *sqlx.DB) []pageOrder {
	type Order = pageOrder

	check(schema.Apply(ctx, idDB))
	_, err := schema.Seed(ctx, idDB, "order", 48_001, 1000)
	check(err)

	store, err := sqlstore.New(ctx, idDB)
	check(err)
	orders, err := segment.New(ctx, segment.Config{Source: store.Tag("order")})
	check(err)
	defer func() { check(orders.Close()) }()
	generators := keygen.Set{Named: map[string]keygen.Generator[int64]{"order": orders}}

	check(db.Use(gormplugin.New(gormplugin.Config{Generators: generators})))
	check(gormplugin.Check(db, &Order{}))
	list := []Order{{UserID: 7}, {UserID: 8}}
	check(db.Create(&list).Error)

	hook, err := sqlxhook.New(sqlxhook.Config{Generators: generators})
	check(err)
	_, err = hook.NamedExec(ctx, plain, "INSERT INTO orders (id, user_id) VALUES (:id, :user_id)", &Order{UserID: 9})
	check(err)

	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "shop"})
	check(err)
	events, err := snowflake.New(ctx, snowflake.Config{Worker: worker})
	check(err)
	defer func() { check(events.Close()) }()

	return list
}

func Example_idsInFiveMinutes() {
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=busy_timeout(5000)")
		check(err)
		return db
	}
	ids, rows := open("ids.db"), open("shop.db")
	defer func() { check(errors.Join(ids.Close(), rows.Close())) }()
	_, err = rows.Exec("CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT)")
	check(err)
	db, err := gorm.Open(sqlite.Dialector{Conn: rows}, &gorm.Config{Logger: logger.Discard})
	check(err)

	list := idsInFiveMinutes(context.Background(), ids, db, sqlx.NewDb(rows, "sqlite"))
	var stored int
	check(rows.QueryRow("SELECT COUNT(*) FROM orders WHERE id BETWEEN 48001 AND 48003").Scan(&stored))
	fmt.Println(list[0].ID, list[1].ID)
	fmt.Println(stored, "orders")
	// Output:
	// 48001 48002
	// 3 orders
}

func TestThePageOnIDsShowsWhatRuns(t *testing.T) {
	runs := dedented(readText(t, "idspage_test.go"))
	blocks := strings.Split(readText(t, "../docs/ids.md"), "\n```go\n")[1:]
	if len(blocks) != 5 {
		t.Errorf("the page has %d blocks of Go, want 5", len(blocks))
	}
	for _, rest := range blocks {
		block, _, closed := strings.Cut(rest, "```\n")
		block = strings.Replace(block, "type Order struct", "type pageOrder struct", 1)
		if !closed || !strings.Contains(runs, "\n"+block) && !strings.Contains(readText(t, "idspage_test.go"), "\n"+block) {
			t.Errorf("no example has these lines:\n%s", block)
		}
	}
}
