// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Sighting has columns of every kind of value that SQLite has.
type Sighting struct {
	ID     int64 `gorm:"autoIncrement:false"`
	UserID int64
	Note   string
	Weight float64
	Photo  []byte
	At     time.Time
	Until  *time.Time
}

// sightings are a database in shards, and one without a router.
func sightings(t *testing.T) (routed, whole *gorm.DB) {
	t.Helper()
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "sightings_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "sightings", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed, whole = openGORM(t, rec.open(t, "home")), openGORM(t, rec.open(t, "whole"))
	for db, c := range map[*gorm.DB]gormplugin.Config{routed: {Router: router}, whole: {}} {
		if err := db.Use(gormplugin.New(c)); err != nil {
			t.Fatal(err)
		}
		if err := gormplugin.Migrate(t.Context(), db, &Sighting{}); err != nil {
			t.Fatal(err)
		}
	}
	return routed, whole
}

// SQLite's driver tells the type of a column by the value in its first row, and gorm scans
// what is in others into that type: a time that follows a text is one.
func TestMapsHaveTheValuesThatTheyHaveOfOneTable(t *testing.T) {
	routed, whole := sightings(t)
	local := time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("here", 7200))
	for i, at := range []any{local, local.UTC(), nil, local.UTC().Add(time.Hour)} {
		for user := range 4 {
			for _, db := range []*gorm.DB{routed, whole} {
				row := map[string]any{"id": 10*i + (user+i)%4, "user_id": user, "note": "n", "at": at, "until": at, "weight": user, "photo": []byte{1}}
				if err := db.Model(&Sighting{}).Create(row).Error; err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, query := range []string{
		"SELECT * FROM sightings ORDER BY id",
		"SELECT * FROM sightings ORDER BY id DESC",
		"SELECT * FROM sightings WHERE id >= 20 ORDER BY id",
		"SELECT at, until FROM sightings WHERE user_id IN (1, 2) ORDER BY at DESC, id LIMIT 3",
		"SELECT DISTINCT at FROM sightings ORDER BY at DESC",
		"SELECT at, MAX(until) AS last, AVG(weight) AS mean, COUNT(*) AS n FROM sightings GROUP BY at ORDER BY at DESC",
		"SELECT * FROM sightings WHERE id < 0",
	} {
		if got, want := inMaps(t, routed, query), inMaps(t, whole, query); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", query, got, want)
		}
	}
}

// inMaps are the rows of a query as maps, all of them and the first one.
func inMaps(t *testing.T, db *gorm.DB, query string) (rows []string) {
	t.Helper()
	var all []map[string]any
	var one map[string]any
	if err := db.Raw(query).Scan(&all).Error; err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if err := db.Raw(query).Scan(&one).Error; err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, row := range append(all, one) {
		var line []string
		for column, value := range row {
			line = append(line, fmt.Sprintf("%s %T %v", column, value, value))
		}
		slices.Sort(line)
		rows = append(rows, strings.Join(line, ", "))
	}
	return rows
}

func TestACreateThatLeavesTheShardingKeyOutSaysHow(t *testing.T) {
	routed, _ := sightings(t)
	for name, err := range map[string]error{
		"Omit":            routed.Omit("user_id").Create(&Sighting{ID: 1, UserID: 5}).Error,
		"Omit of a field": routed.Omit("UserID").Create(&[]Sighting{{ID: 1, UserID: 5}}).Error,
		"Select":          routed.Select("ID", "Note").Create(&Sighting{ID: 1, UserID: 5}).Error,
		"Omit of a map":   routed.Model(&Sighting{}).Omit("user_id").Create(map[string]any{"id": 1, "user_id": 5}).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "name user_id in Select, or take it out of Omit") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := routed.Select("ID", "UserID").Create(&Sighting{ID: 1, UserID: 5}).Error; err != nil {
		t.Error(err)
	}
}
