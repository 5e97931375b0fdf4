package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
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

func benchDB(b *testing.B, config *gormplugin.Config) *gorm.DB {
	b.Helper()
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: sql.OpenDB(instant{}), SkipInitializeWithVersion: true}),
		&gorm.Config{Logger: logger.Default.LogMode(logger.Silent), SkipDefaultTransaction: true})
	if err != nil {
		b.Fatal(err)
	}
	if config != nil {
		if err := db.Use(gormplugin.New(*config)); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

func BenchmarkStatements(b *testing.B) {
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "orders_%d")
	if err != nil {
		b.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db0": sql.OpenDB(instant{}), "db1": sql.OpenDB(instant{})},
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: m})
	if err != nil {
		b.Fatal(err)
	}
	set := keygen.Set{Default: keygen.Counting(4, 4), Named: map[string]keygen.Generator[int64]{"item": keygen.Counting(1, 1)}}
	in := make([]int64, 100)
	for i := range in {
		in[i] = int64(4 * i)
	}
	for _, kind := range []struct {
		name   string
		config *gormplugin.Config
	}{{"plain", nil}, {"filled", &gormplugin.Config{Generators: set}}, {"routed", &gormplugin.Config{Generators: set, Router: router}}} {
		db := benchDB(b, kind.config)
		id := int64(0)
		for _, s := range []struct {
			name string
			run  func() error
		}{
			{"create", func() error {
				o := Order{Note: "n"}
				if kind.config == nil {
					id += 4
					o.ID = id
				}
				return db.Create(&o).Error
			}},
			{"create1000", func() error {
				rows := make([]Order, 1000)
				if kind.config == nil {
					for i := range rows {
						id += 4
						rows[i].ID = id
					}
				}
				return db.Create(&rows).Error
			}},
			{"find", func() error { return db.Find(&[]Order{}, 4).Error }},
			{"find100", func() error { return db.Where("id IN ?", in).Find(&[]Order{}).Error }},
			{"other", func() error { return db.Find(&[]User{}, 4).Error }},
		} {
			b.Run(s.name+"/"+kind.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := s.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkBatch inserts 1000 rows: into one table without the plugin, into one
// shard, and into eight of one database.
func BenchmarkBatch(b *testing.B) {
	m, err := sharding.Spread([]string{"db"}, 8, "orders_%d")
	if err != nil {
		b.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db": sql.OpenDB(instant{})}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: m})
	if err != nil {
		b.Fatal(err)
	}
	routed := &gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1), Named: map[string]keygen.Generator[int64]{"item": keygen.Counting(1, 1)}}, Router: router}
	for _, kind := range []struct {
		name   string
		config *gormplugin.Config
		shards int64
	}{{"plain", nil, 8}, {"one", routed, 1}, {"eight", routed, 8}} {
		b.Run(kind.name, func(b *testing.B) {
			db := benchDB(b, kind.config)
			rows := make([]Order, 1000)
			for i := range rows {
				rows[i] = Order{ID: int64(i + 1), UserID: 8 + int64(i)%kind.shards, Note: "n"}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := db.Create(&rows).Error; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
