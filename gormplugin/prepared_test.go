// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// slowly lets other goroutines run while it prepares a statement.
type slowly struct{ driver.Conn }

func (c slowly) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	for range 10 {
		runtime.Gosched()
	}
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c slowly) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

type slowConnector string

func (slowConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c slowConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := (&sqlite.Driver{}).Open(string(c))
	return slowly{conn}, err
}

// closedByGORM reports whether GORM's cache closed a statement between finding and executing it,
// as it does without this plugin, too. Nothing was sent then.
func closedByGORM(err error) bool {
	return err != nil && err.Error() == "sql: statement is closed"
}

// A cache of one statement, from which every other statement is evicted, causes neither a deadlock
// nor another error.
func TestAStatementThatTheCacheOfPreparedOnesDropsStillRuns(t *testing.T) {
	home := sql.OpenDB(slowConnector("file:" + filepath.Join(t.TempDir(), "home.db") + "?_pragma=busy_timeout(3600000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"))
	t.Cleanup(func() { _ = home.Close() })
	m, err := sharding.Spread([]string{"home"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		must(t, home, fmt.Sprintf(createOrders, target.Table))
	}
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(sqliteOn(home), &gorm.Config{Logger: logger.Discard, PrepareStmt: true, PrepareStmtMaxSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for g := range 16 {
		work.Go(func() {
			one := db.Where(fmt.Sprintf("note <> 'none of %d'", g)).Session(&gorm.Session{}) // a text of its own, which drives the others' out
			for range 40 {
				if err := one.Find(&[]Order{}, 1).Error; err != nil && !closedByGORM(err) {
					t.Error(err)
					return
				}
				if err := one.Model(&Order{}).Where("id = ?", 1).Update("note", "x").Error; err != nil && !closedByGORM(err) {
					t.Error(err)
					return
				}
				if err := one.Model(&Order{}).Where("id = ?", 1).Select("id").Row().Scan(new(int64)); !errors.Is(err, sql.ErrNoRows) && !closedByGORM(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}
