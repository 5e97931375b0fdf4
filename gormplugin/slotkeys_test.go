// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
)

// Sale is sharded by its user; its id carries the user's slot.
type Sale struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID int64
	Note   string
	hook   func(*Sale)
}

func (s *Sale) BeforeCreate(*gorm.DB) error {
	if s.hook != nil {
		s.hook(s)
	}
	return nil
}

// Buyer has sales.
type Buyer struct {
	ID    int64  `gorm:"primaryKey;autoIncrement:false"`
	Sales []Sale `gorm:"foreignKey:UserID"`
}

const createSales = "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)"

// bucketed returns a generator with a bucket field of this many bits at the end.
func bucketed(t testing.TB, bits int) *snowflake.Generator {
	t.Helper()
	layout := keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 6}, {Kind: keygen.Sequence, Bits: 16 - bits}, {Kind: keygen.Bucket, Bits: bits}},
	}
	if bits == 0 {
		layout.Fields = layout.Fields[:3]
	}
	g, err := snowflake.New(t.Context(), snowflake.Config{Worker: workerid.Static(1), Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// newShop has sales in two databases, whose ids from 1000 on lead to their shards.
func newShop(t testing.TB, gen keygen.Generator[int64]) (*gorm.DB, *sharding.Router) {
	t.Helper()
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 8, "sales_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		must(t, dbs[target.DB], fmt.Sprintf(createSales, target.Table))
	}
	router, err := sharding.New(dbs, sharding.Table{
		Name: "sales", Key: "user_id", Rule: sharding.Low(4), Map: m, OnMissing: sharding.FanOutReads,
		Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(4), From: 1000}},
	}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	home := rec.open(t, "home")
	must(t, home, "CREATE TABLE buyers (id INTEGER PRIMARY KEY)")
	db := openGORM(t, home)
	if err := db.Use(gormplugin.New(gormplugin.Config{
		Generators: keygen.Set{Default: gen}, Router: router, Models: []gormplugin.Model{{Struct: &Sale{}}},
	})); err != nil {
		t.Fatal(err)
	}
	return db, router
}

func TestGeneratedIDsCarryTheSlotOfTheirRow(t *testing.T) {
	gen := bucketed(t, 4)
	users := []int64{12, 3, 3, 7919, 5}
	many := func() []Sale {
		var list []Sale
		for _, u := range users {
			list = append(list, Sale{UserID: u})
		}
		return list
	}
	for name, create := range map[string]func(db *gorm.DB) ([]Sale, error){
		"struct": func(db *gorm.DB) ([]Sale, error) {
			s := Sale{UserID: 12}
			err := db.Create(&s).Error
			return []Sale{s}, err
		},
		"slice": func(db *gorm.DB) ([]Sale, error) {
			list := many()
			return list, db.Create(&list).Error
		},
		"slice of pointers with ids of its own": func(db *gorm.DB) ([]Sale, error) {
			list := []*Sale{{UserID: 12}, {UserID: 3, ID: 16003}, {UserID: 5}}
			err := db.Create(list).Error
			return []Sale{*list[0], *list[1], *list[2]}, err
		},
		"CreateInBatches": func(db *gorm.DB) ([]Sale, error) {
			list := many()
			return list, db.CreateInBatches(&list, 2).Error
		},
		"Save": func(db *gorm.DB) ([]Sale, error) {
			s := Sale{UserID: 12}
			err := db.Save(&s).Error
			return []Sale{s}, err
		},
		"Save of a slice": func(db *gorm.DB) ([]Sale, error) {
			list := many()
			return list, db.Save(&list).Error
		},
		"upsert": func(db *gorm.DB) ([]Sale, error) {
			list := many()
			return list, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&list).Error
		},
		"FirstOrCreate": func(db *gorm.DB) ([]Sale, error) {
			var s Sale
			err := db.Where(Sale{UserID: 12}).FirstOrCreate(&s).Error
			return []Sale{s}, err
		},
		"map": func(db *gorm.DB) ([]Sale, error) {
			m := map[string]any{"UserID": 12}
			err := db.Model(&Sale{}).Create(m).Error
			return []Sale{{ID: m["id"].(int64), UserID: 12}}, err
		},
		"maps without a model": func(db *gorm.DB) (list []Sale, err error) {
			var maps []map[string]any
			for _, u := range users {
				maps = append(maps, map[string]any{"user_id": u})
			}
			err = db.Table("sales").Create(maps).Error
			for i, m := range maps {
				list = append(list, Sale{ID: m["id"].(int64), UserID: users[i]})
			}
			return list, err
		},
		"association": func(db *gorm.DB) ([]Sale, error) {
			b := Buyer{ID: 21, Sales: []Sale{{Note: "a"}, {Note: "b"}}}
			err := db.Create(&b).Error
			return b.Sales, err
		},
		"a hook that sets the key": func(db *gorm.DB) ([]Sale, error) {
			list := []Sale{{UserID: 1, hook: func(s *Sale) { s.UserID = 13 }}, {UserID: 2}}
			return list, db.Create(&list).Error
		},
		"in a transaction": func(db *gorm.DB) (list []Sale, err error) {
			list = many()
			return list, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&list).Error })
		},
		"With": func(db *gorm.DB) ([]Sale, error) {
			list := many()
			return list, db.WithContext(gormplugin.With(t.Context(), gen)).Create(&list).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newShop(t, gen)
			list, err := create(db)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range list {
				if s.ID%16 != s.UserID%16 {
					t.Errorf("row %d: id %d of slot %d, user %d", i, s.ID, s.ID%16, s.UserID)
				}
				var found Sale
				if err := db.First(&found, s.ID).Error; err != nil || found.UserID != s.UserID {
					t.Errorf("row %d by its id: %v, %+v", i, err, found)
				}
			}
		})
	}
}

func TestIDsThatWouldNotLeadToTheirRowAreRefused(t *testing.T) {
	gen := bucketed(t, 4)
	for name, c := range map[string]struct {
		gen  keygen.Generator[int64]
		rows any
		is   error
		says string
	}{
		"preset id of another slot": {gen, &Sale{ID: 16007, UserID: 5}, sharding.ErrMisplaced, "id 16007 leads to slot 7, user_id to slot 5"},
		"one of several":            {gen, &[]Sale{{ID: 16005, UserID: 5}, {ID: 16006, UserID: 5}}, sharding.ErrMisplaced, "id 16006 leads to slot 6, user_id to slot 5"},
		"of two shards":             {gen, &[]Sale{{ID: 16005, UserID: 5}, {ID: 16007, UserID: 6}}, sharding.ErrMisplaced, "id 16007 leads to slot 7, user_id to slot 6"},
		"in a map":                  {gen, map[string]any{"id": 16007, "user_id": 5}, sharding.ErrMisplaced, "slot 7"},
		"no sharding key":           {gen, &[]Sale{{UserID: 5}, {}}, sharding.ErrMissingKey, "row 1: set the field UserID"},
		"counter":                   {keygen.Counting(1000, 1), &Sale{UserID: 5}, gormplugin.ErrNoBuckets, "Sale.ID"},
		"function":                  {keygen.Func[int64](gen.Next), &Sale{UserID: 5}, gormplugin.ErrNoBuckets, "Sale.ID"},
		"layout without buckets":    {bucketed(t, 0), &Sale{UserID: 5}, gormplugin.ErrNoBuckets, "it has no bucket field"},
		"too narrow buckets":        {bucketed(t, 3), &Sale{UserID: 13}, gormplugin.ErrNoBuckets, "bucket 13"},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newShop(t, c.gen)
			tx := db.Model(&Sale{}).Create(c.rows)
			if !errors.Is(tx.Error, c.is) || !strings.Contains(tx.Error.Error(), c.says) {
				t.Errorf("%v", tx.Error)
			}
			var n int64
			if err := db.Model(&Sale{}).Count(&n).Error; err != nil || n != 0 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

func TestOldIDsCarryNoSlotAndAreKept(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 4))
	if err := db.Create(&[]Sale{{ID: 7, UserID: 5}, {ID: 8, UserID: 6}}).Error; err != nil {
		t.Fatal(err)
	}
	var found Sale
	if err := db.First(&found, 8).Error; err != nil || found.UserID != 6 {
		t.Errorf("%v, %+v", err, found)
	}
}

func TestIDsThatTheDatabaseWouldNumberAreRefused(t *testing.T) {
	type numberedSale struct {
		ID     int64
		UserID int64
	}
	db, _ := newShop(t, bucketed(t, 4))
	err := db.Table("sales").Create(&numberedSale{UserID: 5}).Error
	if !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "keygen") {
		t.Error(err)
	}
	err = db.Table("sales").Create(&[]numberedSale{{UserID: 5}, {ID: 16005, UserID: 5}}).Error
	if !errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}

func TestUpdatesOfAnIDKeepItsSlot(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 4))
	if err := db.Create(&Sale{ID: 16005, UserID: 5}).Error; err != nil {
		t.Fatal(err)
	}
	of5 := func() *gorm.DB { return db.Model(&Sale{}).Where("user_id = ?", 5) }
	if err := of5().Update("id", 32005).Error; err != nil {
		t.Errorf("to another id of the slot: %v", err)
	}
	for _, value := range []any{16007, gorm.Expr("id + 1"), nil} {
		if err := of5().Update("id", value).Error; !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("to %v: %v", value, err)
		}
	}
}

func TestCheckTestsWhetherIDsCarrySlots(t *testing.T) {
	gen := bucketed(t, 4)
	for name, c := range map[string]struct {
		gen keygen.Generator[int64]
		is  error
	}{
		"buckets":                {gen, nil},
		"counter":                {keygen.Counting(1000, 1), gormplugin.ErrNoBuckets},
		"layout without buckets": {bucketed(t, 0), gormplugin.ErrNoBuckets},
		"too narrow":             {bucketed(t, 2), gormplugin.ErrNoBuckets},
		"at another place":       {shifted{gen}, sharding.ErrMisplaced},
	} {
		db, _ := newShop(t, c.gen)
		if err := gormplugin.Check(db, &Sale{}); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// shifted puts buckets one bit higher than the rule expects them.
type shifted struct{ *snowflake.Generator }

func (s shifted) NextIn(ctx context.Context, bucket int64) (int64, error) {
	id, err := s.Generator.NextIn(ctx, bucket)
	return id << 1, err
}

func (s shifted) FillIn(ctx context.Context, dst, buckets []int64) error {
	err := s.Generator.FillIn(ctx, dst, buckets)
	for i := range dst {
		dst[i] <<= 1
	}
	return err
}

func TestFailedCreatesLeaveNoIDsOfSlots(t *testing.T) {
	db, router := newShop(t, bucketed(t, 4))
	if _, err := router.DB("db0").Exec("CREATE UNIQUE INDEX one ON sales_4 (note)"); err != nil {
		t.Fatal(err)
	}
	one := Sale{UserID: 4, Note: "x"}
	if err := db.Create(&one).Error; err != nil {
		t.Fatal(err)
	}
	list := []Sale{{UserID: 5}, {UserID: 4, Note: "x"}}
	if err := db.Create(&list).Error; err == nil || list[0].ID != 0 || list[1].ID != 0 {
		t.Errorf("%v, %+v", err, list)
	}
	list[1].Note = "y"
	if err := db.Create(&list).Error; err != nil || !slices.ContainsFunc(list, func(s Sale) bool { return s.ID%16 == 5 }) {
		t.Errorf("again: %v, %+v", err, list)
	}
	var row sql.NullInt64
	if err := router.DB("db0").QueryRow("SELECT id FROM sales_4 WHERE note = 'y'").Scan(&row); err != nil || row.Int64 != list[1].ID {
		t.Errorf("%v, %d, want %d", err, row.Int64, list[1].ID)
	}
}

func TestUpdatesOfTheKeyKeepTheSlot(t *testing.T) {
	c := newCluster(t) // 16 slots
	if err := c.Create(&Item{ID: 1, OrderID: 5, SKU: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	of5 := func() *gorm.DB { return c.Model(&Item{}).Where("order_id = ?", 5) }
	for _, value := range []any{9, gorm.Expr("order_id + 16"), nil} {
		if err := of5().Update("order_id", value).Error; !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("to %v: %v", value, err)
		}
	}
	if err := of5().Update("order_id", 21).Error; err != nil {
		t.Errorf("to another key of the slot: %v", err)
	}
	if err := c.Where("order_id = ?", 21).First(&Item{}).Error; err != nil {
		t.Error(err)
	}
}

func TestARowIsNotLeftWithoutItsShardingKeyWhereItsIDLeadsToItsShard(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 4))
	if err := db.Create(&Sale{ID: 16005, UserID: 5}).Error; err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"id = 16005", "user_id = 5", "id = 16005 AND user_id = 5"} {
		if err := db.Model(&Sale{}).Where(by).Update("user_id", nil).Error; !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("%s: %v, although no condition on user_id would find the row", by, err)
		}
	}
}

func TestAGeneratorWithoutAKeyInATransactionSaysWhy(t *testing.T) {
	closed := keygen.Func[int64](func(context.Context) (int64, error) {
		return 0, fmt.Errorf("%w: %w", keygen.ErrStarved, sql.ErrConnDone)
	})
	db := openGORM(t, (&recorder{}).open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: closed}})); err != nil {
		t.Fatal(err)
	}
	err := db.CreateInBatches(&[]Sale{{}, {}}, 1).Error
	if !errors.Is(err, keygen.ErrStarved) || errors.Is(err, gormplugin.ErrInTransaction) {
		t.Error(err)
	}
}

func TestTheModelsIDLeadsToItsShard(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(db *gorm.DB) *gorm.DB
		left []int64
	}{
		"update":     {func(db *gorm.DB) *gorm.DB { return db.Model(&Sale{ID: 16003}).Update("note", "new") }, []int64{16003, 16007}},
		"updates":    {func(db *gorm.DB) *gorm.DB { return db.Updates(&Sale{ID: 16003, Note: "new"}) }, []int64{16003, 16007}},
		"first":      {func(db *gorm.DB) *gorm.DB { return db.First(&Sale{ID: 16003}) }, []int64{16003, 16007}},
		"take":       {func(db *gorm.DB) *gorm.DB { return db.Take(&Sale{ID: 16003}) }, []int64{16003, 16007}},
		"delete":     {func(db *gorm.DB) *gorm.DB { return db.Delete(&Sale{ID: 16003}) }, []int64{16007}},
		"of a model": {func(db *gorm.DB) *gorm.DB { return db.Model(&Sale{ID: 16003}).Delete(&Sale{}) }, []int64{16007}},
	} {
		t.Run(name, func(t *testing.T) {
			db, router := newShop(t, bucketed(t, 4))
			if err := db.Create(&[]Sale{{ID: 16003, UserID: 3}, {ID: 16007, UserID: 7}}).Error; err != nil {
				t.Fatal(err)
			}
			router = strictly(t, router)
			db = reopened(t, db, router)
			if tx := c.run(db); tx.Error != nil || tx.RowsAffected != 1 {
				t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
			}
			var ids []int64
			if err := db.WithContext(sharding.AllShards(t.Context())).Model(&Sale{}).Order("id").Pluck("id", &ids).Error; err != nil || !slices.Equal(ids, c.left) {
				t.Errorf("%v, %v", ids, err)
			}
		})
	}
}

func TestSeveralModelsAreDeletedByTheirIDs(t *testing.T) {
	db, router := newShop(t, bucketed(t, 4))
	if err := db.Create(&[]Sale{{ID: 16003, UserID: 3}, {ID: 16007, UserID: 7}, {ID: 16019, UserID: 3}}).Error; err != nil {
		t.Fatal(err)
	}
	db = reopened(t, db, strictly(t, router))
	if tx := db.Delete(&[]Sale{{ID: 16003}, {ID: 16007}}); tx.Error != nil || tx.RowsAffected != 2 {
		t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
	}
	var refused *sharding.RouteError
	for name, err := range map[string]error{
		"from before they carried slots": db.Delete(&Sale{ID: 5}).Error,
		"one of them":                    db.Delete(&[]Sale{{ID: 16019}, {ID: 5}}).Error,
		"without an id":                  db.Model(&Sale{}).Where("note = 'x'").Update("note", "y").Error,
	} {
		if !errors.Is(err, sharding.ErrMissingKey) || !errors.As(err, &refused) || !strings.Contains(refused.Hint, "condition on user_id") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strictly returns a router like the shop's, which refuses reads without a key.
func strictly(t *testing.T, r *sharding.Router) *sharding.Router {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range r.Databases() {
		dbs[name] = r.DB(name)
	}
	table, _ := r.Table("sales")
	table.OnMissing = sharding.Refuse
	strict, err := sharding.New(dbs, table, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	return strict
}

// reopened returns a *gorm.DB on the same home with another router.
func reopened(t *testing.T, db *gorm.DB, router *sharding.Router) *gorm.DB {
	t.Helper()
	home, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	again := openGORM(t, home)
	if err := again.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: bucketed(t, 4)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	return again
}

// SQLite stores no such number, which is not to say that the key is missing.
func TestAShardingKeyOfAMapAboveInt64IsNotMissing(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 3))
	err := db.Model(&Sale{}).Create(map[string]any{"UserID": uint64(1)<<63 + 4}).Error
	if err == nil || errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}

func TestAShardingKeyOfAMapThatIsAnExpressionIsRefusedAsNoKey(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 3))
	for _, key := range []any{gorm.Expr("1 + 4"), clause.Column{Name: "id"}, struct{ A int }{5}, 1.5} {
		row := map[string]any{"user_id": key}
		err := db.Model(&Sale{}).Create(row).Error
		if err == nil || !strings.Contains(err.Error(), "not a sharding key") || row["id"] != nil {
			t.Errorf("%T: %v, id %v", key, err, row["id"])
		}
	}
}
