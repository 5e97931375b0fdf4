package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// preparer is a database without rows that lets others run while it prepares a
// statement.
type preparer struct{}

func (preparer) Connect(context.Context) (driver.Conn, error) { return preparer{}, nil }
func (preparer) Driver() driver.Driver                        { return nil }
func (preparer) Close() error                                 { return nil }
func (preparer) Begin() (driver.Tx, error)                    { return preparer{}, nil }
func (preparer) Commit() error                                { return nil }
func (preparer) Rollback() error                              { return nil }
func (preparer) NumInput() int                                { return -1 }
func (preparer) Columns() []string                            { return []string{"id"} }
func (preparer) Next([]driver.Value) error                    { return io.EOF }
func (preparer) Exec([]driver.Value) (driver.Result, error)   { return driver.RowsAffected(1), nil }
func (preparer) Query([]driver.Value) (driver.Rows, error)    { return preparer{}, nil }

func (preparer) Prepare(string) (driver.Stmt, error) {
	for range 10 {
		runtime.Gosched()
	}
	return preparer{}, nil
}

func TestAStatementThatTheCacheOfPreparedOnesDropsStillRuns(t *testing.T) {
	home := sql.OpenDB(preparer{})
	m, err := sharding.Spread([]string{"home"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: home, SkipInitializeWithVersion: true}),
		&gorm.Config{Logger: logger.Discard, PrepareStmt: true, PrepareStmtMaxSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for g := range 32 {
		work.Go(func() {
			one := db.Where(fmt.Sprintf("note <> 'none of %d'", g)).Session(&gorm.Session{}) // a text of its own, which drives the others' out
			for range 300 {
				if err := one.Find(&[]Order{}, 1).Error; err != nil {
					t.Error(err)
					return
				}
				if err := one.Model(&Order{}).Where("id = ?", 1).Update("note", "x").Error; err != nil {
					t.Error(err)
					return
				}
				if err := one.Model(&Order{}).Where("id = ?", 1).Select("id").Row().Scan(new(int64)); !errors.Is(err, sql.ErrNoRows) {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}
