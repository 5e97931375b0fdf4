// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// event is sharded by its day.
type event struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	CreatedAt time.Time
	Note      string
}

func newEvents(t *testing.T, first time.Time) *gorm.DB {
	t.Helper()
	m, err := sharding.Spread([]string{"only"}, 2, "events_%d")
	if err != nil {
		t.Fatal(err)
	}
	rule := sharding.Interval(first, first.AddDate(0, 0, 2), 24*time.Hour)
	router, err := sharding.New(sharding.DBs{"only": memory(t)}, sharding.Table{Name: "events", Key: "created_at", Map: m, Rule: rule})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, memory(t))
	db.NowFunc = func() time.Time { return first.Add(30 * time.Hour) }
	err = db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router}))
	if err == nil {
		err = gormplugin.Migrate(t.Context(), db, &event{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestATimeThatGormSetsLeadsToTheShard(t *testing.T) {
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	db := newEvents(t, first)
	one, several := event{Note: "a"}, []event{{Note: "b"}, {Note: "c", CreatedAt: first}}
	for name, run := range map[string]func() *gorm.DB{
		"Create":  func() *gorm.DB { return db.Create(&one) },
		"a slice": func() *gorm.DB { return db.Create(&several) },
		"Save":    func() *gorm.DB { return db.Save(&event{Note: "d"}) },
	} {
		if err := run().Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for table, want := range map[string]int64{"events_0": 1, "events_1": 3} {
		var n int64
		at := sharding.On(t.Context(), sharding.Target{DB: "only", Table: table})
		if err := db.WithContext(at).Model(&event{}).Count(&n).Error; err != nil || n != want {
			t.Errorf("%s: %d rows, want %d: %v", table, n, want, err)
		}
	}
	if !one.CreatedAt.Equal(first.Add(30 * time.Hour)) {
		t.Errorf("CreatedAt: %v", one.CreatedAt)
	}
}

// SQLite compares times as texts, so no condition on them leads to a shard.
func TestOnSQLiteAStructWithATimeAsKeyIsFoundByItsID(t *testing.T) {
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	db := newEvents(t, first)
	e := event{CreatedAt: first, Note: "a"}
	for _, run := range []func() *gorm.DB{
		func() *gorm.DB { return db.Create(&e) },
		func() *gorm.DB { return db.Model(&e).Update("note", "b") },
		func() *gorm.DB { return db.Delete(&e) },
	} {
		if tx := run(); tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%v, %d rows", tx.Error, tx.RowsAffected)
		}
	}
}
