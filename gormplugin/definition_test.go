// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/sharding"
)

// Tag is sharded and has texts of several collations.
type Tag struct {
	ID    int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	Name  string
	Label string
	Bytes string
	N     int64
}

// newTags has tags whose names are compared without regard to case.
func newTags(t *testing.T, ddl string) (*gorm.DB, *recorder) {
	t.Helper()
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 2, "tags_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		must(t, dbs[target.DB], fmt.Sprintf(ddl, target.Table))
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "tags", Key: "id", Rule: sharding.Low(1), Map: m, OnMissing: sharding.FanOutReads}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, rec.open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	return db, rec
}

const createTags = "CREATE TABLE %s (id INTEGER PRIMARY KEY, \"Name\" TEXT COLLATE NOCASE, label TEXT DEFAULT ('COLLATE (x'), bytes TEXT COLLATE BINARY, n INTEGER)"

func TestTextsOfSQLiteAreMergedOnlyByTheirBytes(t *testing.T) {
	db, _ := newTags(t, createTags)
	for i, name := range []string{"b", "A", "B", "a"} {
		if err := db.Create(&Tag{ID: int64(i), Name: name, Label: name, Bytes: name, N: int64(i)}).Error; err != nil {
			t.Fatal(err)
		}
	}
	var rows []map[string]any
	for name, run := range map[string]func() *gorm.DB{
		"ORDER BY":         func() *gorm.DB { return db.Model(&Tag{}).Order("name").Find(&rows) },
		"without a model":  func() *gorm.DB { return db.Table("tags").Order("name").Find(&rows) },
		"GROUP BY":         func() *gorm.DB { return db.Model(&Tag{}).Select("name, count(*)").Group("name").Find(&rows) },
		"hidden group":     func() *gorm.DB { return db.Model(&Tag{}).Select("count(*)").Group("name").Find(&rows) },
		"DISTINCT":         func() *gorm.DB { return db.Model(&Tag{}).Distinct("name").Find(&rows) },
		"MIN":              func() *gorm.DB { return db.Model(&Tag{}).Select("min(name)").Find(&rows) },
		"alias":            func() *gorm.DB { return db.Model(&Tag{}).Select("(name) AS x").Order("x").Find(&rows) },
		"COLLATE":          func() *gorm.DB { return db.Model(&Tag{}).Select("label COLLATE german AS x").Order("x").Find(&rows) },
		"DISTINCT of more": func() *gorm.DB { return db.Model(&Tag{}).Distinct("(name) AS x").Find(&rows) },
	} {
		if err := run().Error; !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "are compared") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, column := range []string{"label", "bytes"} {
		var names []string
		if err := db.Model(&Tag{}).Order(column).Pluck(column, &names).Error; err != nil || !slices.Equal(names, []string{"A", "B", "a", "b"}) {
			t.Errorf("%s: %v, %q", column, err, names)
		}
	}
	if err := db.Order("n").Find(&[]Tag{}).Error; err != nil {
		t.Error(err)
	}
}

func TestADefinitionIsReadOnce(t *testing.T) {
	db, rec := newTags(t, createTags)
	for range 2 {
		rec.take()
		if err := db.Order("label").Find(&[]Tag{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	if events := rec.take(); len(events) != 2 {
		t.Errorf("sent %q", events)
	}
}

func TestMaxOfSeveralArgumentsIsNoAggregate(t *testing.T) {
	db, _ := newTags(t, createTags)
	if err := db.Create(&[]Tag{{ID: 1, N: 0}, {ID: 2, N: 7}}).Error; err != nil {
		t.Fatal(err)
	}
	var n []int64
	if err := db.Model(&Tag{}).Select("max(n, 1)").Find(&n).Error; err == nil && len(n) != 2 || err != nil && !errors.Is(err, sharding.ErrUnmergeable) {
		t.Errorf("%v, %v", err, n)
	}
	if err := db.Model(&Tag{}).Select("max(n)").Find(&n).Error; err != nil || !slices.Equal(n, []int64{7}) {
		t.Errorf("%v, %v", err, n)
	}
}

func TestCheckFindsAUTOINCREMENTOfSQLite(t *testing.T) {
	numbered := "CREATE TABLE %s (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, label TEXT, bytes TEXT, n INTEGER)"
	db, _ := newTags(t, numbered)
	err := gormplugin.Check(db, &Tag{})
	if !errors.Is(err, gormplugin.ErrAutoIncrement) || !strings.Contains(err.Error(), "tags_0") {
		t.Errorf("in the shards: %v", err)
	}
	plain := openGORM(t, (&recorder{}).open(t, "plain"))
	if err := plain.Exec(fmt.Sprintf(numbered, "tags")).Error; err != nil {
		t.Fatal(err)
	}
	if err := plain.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Check(plain, &Tag{}); !errors.Is(err, gormplugin.ErrAutoIncrement) {
		t.Errorf("at home: %v", err)
	}
}

func TestModelsWithoutTheShardingKeyAreRefused(t *testing.T) {
	db, _ := newTags(t, createTags)
	if err := gormplugin.Check(db, &Untagged{}); !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "(id)") {
		t.Errorf("Check: %v", err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Untagged{}); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("Migrate: %v", err)
	}
}

// Untagged is a model of tags that lacks their key.
type Untagged struct {
	No int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
}

// TableName returns the table of Tag.
func (Untagged) TableName() string { return "tags" }

func TestInvalidGeneratorsFailAtOnce(t *testing.T) {
	for says, c := range map[string]gormplugin.Config{
		"Config.Auto": {Auto: true},
		`Config.Generators: keygen: unknown generator: Named["order"]`: {Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": nil}}},
		"Default is a nil *snowflake.Generator":                        {Generators: keygen.Set{Default: (*snowflake.Generator)(nil)}},
		`Text["no"]`:                                                   {Generators: keygen.Set{Text: map[string]keygen.Generator[string]{"no": nil}}},
	} {
		db := openGORM(t, (&recorder{}).open(t, "home"))
		if err := db.Use(gormplugin.New(c)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestRefusalsSayWhatToDoInstead(t *testing.T) {
	c := newCluster(t)
	for name, s := range map[string]struct {
		err  error
		says []string
	}{
		"AutoMigrate":         {c.AutoMigrate(&Order{}), []string{"gormplugin.Migrate", "Router.DB"}},
		"DropTable":           {c.Migrator().DropTable(&Order{}), []string{"DROP of orders", "Router.DB"}},
		"TRUNCATE":            {c.Exec("TRUNCATE TABLE orders").Error, []string{"TRUNCATE of orders", "Router.DB"}},
		"raw":                 {c.Exec("DELETE FROM orders").Error, []string{"sharding.OnKey", "sharding.On"}},
		"no key":              {c.Find(&[]Order{}).Error, []string{"sharding.AllShards", "Table.OnMissing", "Table.Also"}},
		"subquery":            {c.Where("EXISTS (?)", c.Model(&Order{}).Select("1").Where("orders.user_id = users.id AND orders.id = ?", 5)).Find(&[]User{}).Error, []string{"subquery"}},
		"subquery on a shard": {c.Where("id = ? AND EXISTS (?)", 5, c.Model(&User{}).Select("1").Where("users.id = orders.user_id")).Find(&[]Order{}).Error, []string{"subquery"}},
	} {
		for _, says := range s.says {
			if s.err == nil || !strings.Contains(s.err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, s.err, says)
			}
		}
	}
}
