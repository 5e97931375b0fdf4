package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	gormsharding "gorm.io/sharding"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Order has its sharding key beside its primary key, as go-gorm/sharding's
// examples have.
type Order struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID int64
	Note   string
}

const (
	shards = 4
	user   = int64(8)
)

// instant is a database that answers everything with nothing at once, so that a
// benchmark sees what stands before it.
type instant struct{}

func (instant) Connect(context.Context) (driver.Conn, error) { return instant{}, nil }
func (instant) Driver() driver.Driver                        { return nil }
func (instant) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (instant) Close() error                                 { return nil }
func (instant) Begin() (driver.Tx, error)                    { return instant{}, nil }
func (instant) Commit() error                                { return nil }
func (instant) Rollback() error                              { return nil }
func (instant) Columns() []string                            { return nil }
func (instant) Next([]driver.Value) error                    { return io.EOF }
func (instant) LastInsertId() (int64, error)                 { return 1, nil }
func (instant) RowsAffected() (int64, error)                 { return 1, nil }
func (instant) CheckNamedValue(*driver.NamedValue) error     { return nil }

func (instant) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return instant{}, nil
}

func (instant) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return instant{}, nil
}

// routings are gorm without sharding, ours, and go-gorm/sharding.
func routings(b *testing.B) map[string]*gorm.DB {
	b.Helper()
	home := sql.OpenDB(instant{})
	orders, err := sharding.Spread([]string{"home"}, shards, "orders_%d")
	check(b, err)
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	check(b, err)
	dbs := map[string]*gorm.DB{}
	for name, plugin := range map[string]gorm.Plugin{
		"plain":   nil,
		"shardid": gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router}),
		"go-gorm/sharding": gormsharding.Register(gormsharding.Config{
			ShardingKey: "user_id", NumberOfShards: shards, PrimaryKeyGenerator: gormsharding.PKCustom,
			PrimaryKeyGeneratorFn: func(int64) int64 { return 0 }, // the ids are in the rows
		}, "orders"),
	} {
		db, err := gorm.Open(mysql.New(mysql.Config{Conn: home, SkipInitializeWithVersion: true}), &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
		check(b, err)
		if plugin != nil {
			check(b, db.Use(plugin))
		}
		dbs[name] = db
	}
	return dbs
}

// BenchmarkRouting is what a statement costs before the database: without
// sharding, and with it. All rows of a batch have the same key.
func BenchmarkRouting(b *testing.B) {
	dbs := routings(b)
	many := make([]Order, 1000)
	in := make([]int64, 100)
	for i := range in {
		in[i] = int64(i)
	}
	id := int64(0)
	give := func(rows []Order) {
		for i := range rows {
			id++
			rows[i] = Order{ID: id, UserID: user, Note: "n"}
		}
	}
	for _, s := range []struct {
		name string
		run  func(*gorm.DB) error
	}{
		{"create", func(db *gorm.DB) error {
			id++
			return db.Create(&Order{ID: id, UserID: user, Note: "n"}).Error
		}},
		{"create of 1000", func(db *gorm.DB) error {
			give(many)
			return db.Create(&many).Error
		}},
		{"first by key", func(db *gorm.DB) error { return db.Where("user_id = ?", user).Find(&[]Order{}).Error }},
		{"key and IN of 100", func(db *gorm.DB) error {
			return db.Where("user_id = ? AND id IN ?", user, in).Find(&[]Order{}).Error
		}},
		{"update by key", func(db *gorm.DB) error {
			return db.Model(&Order{}).Where("user_id = ? AND id = ?", user, id).Update("note", "m").Error
		}},
	} {
		for _, who := range []string{"plain", "shardid", "go-gorm/sharding"} {
			b.Run(s.name+"/"+who, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					check(b, s.run(dbs[who]))
				}
			})
		}
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
