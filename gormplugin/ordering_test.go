package gormplugin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Gauge has a float.
type Gauge struct {
	ID    int64 `gorm:"primaryKey;autoIncrement:false"`
	Value float64
}

func TestInfiniteFloatsAreOrderedAsNumbers(t *testing.T) {
	m, err := sharding.Spread([]string{"db"}, 4, "gauges_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db": memory(t)}, sharding.Table{Name: "gauges", Key: "id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, memory(t))
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if _, err := gormplugin.Migrate(t.Context(), db, &Gauge{}); err != nil {
		t.Fatal(err)
	}
	for i, value := range []float64{math.Inf(1), 5, math.Inf(-1), 7, -7, math.Inf(1)} {
		if err := db.Create(&Gauge{int64(i + 1), value}).Error; err != nil {
			t.Fatal(err)
		}
	}
	var ids []int64
	if err := db.Model(&Gauge{}).Order("value, id").Pluck("id", &ids).Error; err != nil || fmt.Sprint(ids) != "[3 5 2 4 1 6]" {
		t.Errorf("in order: %v, %v", ids, err)
	}
	var low, high float64
	if err := db.Model(&Gauge{}).Select("MIN(value), MAX(value)").Row().Scan(&low, &high); err != nil || !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("from %v to %v, %v", low, high, err)
	}
}
