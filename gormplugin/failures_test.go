// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

var errCable = errors.New("the cable is cut")

// trouble is the behaviour of a database for queries of one table.
type trouble struct {
	// begin runs before the query is sent; the query returns its error.
	begin func(ctx context.Context) error
	// after is how many rows come before errCable does, when begin is nil.
	after int
}

// troubles are those of some tables.
type troubles map[string]trouble

func (all troubles) of(query string) *trouble {
	for table, what := range all {
		if strings.Contains(strings.ReplaceAll(query, `"`, "`"), "FROM `"+table+"`") && !asksForSchema.MatchString(query) {
			return &what
		}
	}
	return nil
}

// troubled is a connection to a database with troubles.
type troubled struct {
	driver.Conn
	troubles troubles
}

func (c troubled) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c troubled) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c troubled) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	what := c.troubles.of(query)
	if what != nil && what.begin != nil {
		return nil, what.begin(ctx)
	}
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	if err == nil && what != nil {
		return &cutRows{rows, what.after}, nil
	}
	return rows, err
}

// cutRows end with an error after a few rows.
type cutRows struct {
	driver.Rows
	left int
}

func (r *cutRows) Next(into []driver.Value) error {
	if r.left == 0 {
		return errCable
	}
	r.left--
	if err := r.Rows.Next(into); err != io.EOF { //nolint:errorlint // drivers return it as it is
		return err
	}
	return errCable
}

type troubledConnector struct {
	dsn      string
	troubles troubles
}

func (c troubledConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c troubledConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := (&sqlite.Driver{}).Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return troubled{conn, c.troubles}, nil
}

// newTroubled has orders 1 to 16 in four tables of two databases, read by all.
func newTroubled(t *testing.T, what troubles) (*gorm.DB, sharding.DBs) {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"db0", "db1"} {
		db := sql.OpenDB(troubledConnector{"file:" + filepath.Join(t.TempDir(), name+".db") + "?_pragma=busy_timeout(3600000)", what})
		t.Cleanup(func() { _ = db.Close() })
		dbs[name] = db
	}
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads}, sharding.FanOut(8, 4))
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, memory(t))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	for _, target := range router.Targets("orders") {
		must(t, dbs[target.DB], strings.Replace(createOrders, "%s", target.Table, 1))
	}
	for id := int64(1); id <= 16; id++ {
		if err := db.Omit("Items").Create(&Order{UserID: id, Note: "n"}).Error; err != nil {
			t.Fatal(err)
		}
	}
	return db, dbs
}

// reads are queries for all shards. Each returns whether it had any result besides an error.
var reads = map[string]func(db *gorm.DB) (answered bool, err error){
	"Find": func(db *gorm.DB) (bool, error) {
		var orders []Order
		tx := db.Find(&orders)
		return len(orders) > 0 || tx.RowsAffected > 0, tx.Error
	},
	"Find of maps": func(db *gorm.DB) (bool, error) {
		var orders []map[string]any
		err := db.Table("orders").Order("id").Find(&orders).Error
		return len(orders) > 0, err
	},
	"Count": func(db *gorm.DB) (bool, error) {
		n := int64(-1)
		err := db.Model(&Order{}).Where("note <> ''").Count(&n).Error
		return n > 0, err
	},
	"Pluck": func(db *gorm.DB) (bool, error) {
		var ids []int64
		err := db.Model(&Order{}).Pluck("id", &ids).Error
		return len(ids) > 0, err
	},
	"First": func(db *gorm.DB) (bool, error) {
		var o Order
		err := db.First(&o).Error
		return o.ID != 0, err
	},
	"Scan of sums": func(db *gorm.DB) (bool, error) {
		var sum int64
		err := db.Model(&Order{}).Select("SUM(user_id)").Scan(&sum).Error
		return sum != 0, err
	},
	"Rows": func(db *gorm.DB) (bool, error) {
		rows, err := db.Model(&Order{}).Rows()
		if err != nil {
			return false, err
		}
		answered := false
		for rows.Next() {
			answered = true
		}
		return answered, errors.Join(rows.Err(), rows.Close())
	},
	"Row": func(db *gorm.DB) (bool, error) {
		var n int64
		err := db.Model(&Order{}).Select("COUNT(*)").Row().Scan(&n)
		return n != 0, err
	},
	"FindInBatches": func(db *gorm.DB) (bool, error) {
		called := false
		var orders []Order
		err := db.FindInBatches(&orders, 3, func(*gorm.DB, int) error { called = true; return nil }).Error
		return called, err
	},
	"generics": func(db *gorm.DB) (bool, error) {
		orders, err := gorm.G[Order](db).Find(db.Statement.Context)
		return len(orders) > 0, err
	},
	"in a read of one database": func(db *gorm.DB) (bool, error) {
		var orders []Order
		err := db.Transaction(func(tx *gorm.DB) error { return tx.Where("id IN ?", []int{1, 3}).Find(&orders).Error })
		return len(orders) > 0, err
	},
}

// settled waits until all connections are released and no more goroutines run than before.
func settled(t *testing.T, dbs sharding.DBs, goroutines int) {
	t.Helper()
	for t.Context().Err() == nil {
		if dbs["db0"].Stats().InUse+dbs["db1"].Stats().InUse == 0 && runtime.NumGoroutine() <= goroutines {
			return
		}
		runtime.Gosched()
	}
}

func cut(context.Context) error { return errCable }

// Rows that precede the error are returned, as with any database. A query that has read all its
// rows ends before the error.
func TestAReadThatOneShardFailsNamesIt(t *testing.T) {
	for how, what := range map[string]trouble{
		"at once":        {begin: cut},
		"instead of any": {},
		"after a row":    {after: 1},
		"at the end":     {after: 99},
	} {
		db, dbs := newTroubled(t, troubles{"orders_3": what})
		goroutines := runtime.NumGoroutine()
		for name, read := range reads {
			answered, err := read(db.WithContext(t.Context()))
			var shard *sharding.ShardError
			if complete := name == "First" && (how == "after a row" || how == "at the end"); complete {
				if !answered || err != nil {
					t.Errorf("%s, %s: answered %t, %v", name, how, answered, err)
				}
				continue
			}
			if answered && how == "at once" || !errors.Is(err, errCable) || !errors.As(err, &shard) || shard.Target.String() != "db1/orders_3" {
				t.Errorf("%s, %s: answered %t, %v", name, how, answered, err)
			}
		}
		settled(t, dbs, goroutines)
	}
}

// A driver may report an interrupted query with its own error.
func TestTheShardThatFailedIsNamedAndNotThoseThatWereStopped(t *testing.T) {
	waiting := make(chan bool, 1)
	db, dbs := newTroubled(t, troubles{
		"orders_1": {begin: func(ctx context.Context) error {
			waiting <- true
			<-ctx.Done()
			return errors.New("interrupted")
		}},
		"orders_3": {begin: func(context.Context) error {
			<-waiting
			return errCable
		}},
	})
	goroutines := runtime.NumGoroutine()
	for name, read := range reads {
		if name == "in a read of one database" {
			continue // whose queries come one after the other
		}
		answered, err := read(db.WithContext(t.Context()))
		var shard *sharding.ShardError
		if answered || !errors.Is(err, errCable) || !errors.As(err, &shard) || shard.Target.Table != "orders_3" {
			t.Errorf("%s: answered %t, %v", name, answered, err)
		}
	}
	settled(t, dbs, goroutines)
}

func TestAReadEndsWithItsContextThoughAShardDoesNotAnswer(t *testing.T) {
	waiting := make(chan bool, 1)
	db, dbs := newTroubled(t, troubles{"orders_2": {begin: func(ctx context.Context) error {
		waiting <- true
		<-ctx.Done()
		return ctx.Err()
	}}})
	goroutines := runtime.NumGoroutine()
	for name, read := range reads {
		if name == "in a read of one database" {
			continue // of another one
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			<-waiting
			cancel()
		}()
		answered, err := read(db.WithContext(ctx))
		<-stopped
		if answered || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: answered %t, %v", name, answered, err)
		}
	}
	settled(t, dbs, goroutines)
}

// gorm logs the errors of texts, and a create that is refused has none yet.
func TestGORMLogsACreateThatIsRefusedBeforeItsTextIsMade(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 4))
	for name, row := range map[string]*Sale{"the sharding key is missing": {Note: "a"}, "the id is that of another slot": {ID: 1000 + 16 + 3, UserID: 5}} {
		var out strings.Builder
		logged := db.Session(&gorm.Session{Logger: logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Error})})
		if err := logged.Create(row).Error; err == nil || strings.Count(out.String(), err.Error()) != 1 {
			t.Errorf("%s: %v is logged as %q", name, err, out.String())
		}
	}
}
