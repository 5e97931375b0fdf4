// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Gauge has a float.
type Gauge struct {
	ID    int64 `gorm:"primaryKey;autoIncrement:false"`
	Value float64
}

// newGauges returns a sharded table of gauges with these values, ids from 1, and a
// whole one with the same.
func newGauges(t *testing.T, values ...float64) (sharded, whole *gorm.DB) {
	t.Helper()
	m, err := sharding.Spread([]string{"db"}, 4, "gauges_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db": memory(t)}, sharding.Table{Name: "gauges", Key: "id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	sharded, whole = openGORM(t, memory(t)), openGORM(t, memory(t))
	if err := sharded.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), sharded, &Gauge{}); err != nil {
		t.Fatal(err)
	}
	if err := whole.AutoMigrate(&Gauge{}); err != nil {
		t.Fatal(err)
	}
	for i, value := range values {
		for _, db := range []*gorm.DB{sharded, whole} {
			if err := db.Create(&Gauge{int64(i + 1), value}).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	return sharded, whole
}

func TestInfiniteFloatsAreOrderedAsNumbers(t *testing.T) {
	db, _ := newGauges(t, math.Inf(1), 5, math.Inf(-1), 7, -7, math.Inf(1))
	var ids []int64
	if err := db.Model(&Gauge{}).Order("value, id").Pluck("id", &ids).Error; err != nil || fmt.Sprint(ids) != "[3 5 2 4 1 6]" {
		t.Errorf("in order: %v, %v", ids, err)
	}
	var low, high float64
	if err := db.Model(&Gauge{}).Select("MIN(value), MAX(value)").Row().Scan(&low, &high); err != nil || !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("from %v to %v, %v", low, high, err)
	}
}

func TestSumsOfInfiniteFloatsAreThoseOfOneTable(t *testing.T) {
	sharded, whole := newGauges(t, math.Inf(1), 5, math.Inf(-1), 7, -7, math.Inf(1))
	for _, where := range []string{"id IN (1, 2)", "id IN (2, 3, 4)", "id IN (1, 6)", "id IN (1, 2, 3)", "id IN (4, 6)"} {
		var got, want struct{ Sum, Mean sql.NullFloat64 }
		sums := func(db *gorm.DB, into any) error {
			return db.Model(&Gauge{}).Where(where).Select("SUM(value) AS sum, AVG(value) AS mean").Take(into).Error
		}
		if err := errors.Join(sums(sharded, &got), sums(whole, &want)); err != nil || got != want {
			t.Errorf("%s: %v, not %v; %v", where, got, want, err)
		}
	}
}

func TestASumBeyond64BitsIsRefused(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads)
	for id := int64(1); id <= 2; id++ {
		if err := c.Create(&Order{ID: id, UserID: math.MaxInt64}).Error; err != nil {
			t.Fatal(err)
		}
	}
	var sum []int64
	err := c.Model(&Order{}).Select("SUM(user_id)").Find(&sum).Error
	if err == nil || !strings.Contains(err.Error(), "integer overflow") || len(sum) > 0 { // as SQLite says
		t.Errorf("%v, %v", sum, err)
	}
}
