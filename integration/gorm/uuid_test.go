// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
)

// gormSeat is sharded by the UUID of its room.
type gormSeat struct {
	RoomID uuid.UUID `gorm:"primaryKey;type:uuid"`
	No     int       `gorm:"primaryKey;autoIncrement:false"`
}

// TestRowsAreGroupedByAUUIDThatIsTheShardingKey groups rows of two databases. MariaDB sorts UUIDs otherwise than by their bytes,
// but groups need no order.
func TestRowsAreGroupedByAUUIDThatIsTheShardingKey(t *testing.T) {
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.ShareMariaDB(t), "PostgreSQL": server.SharePostgres(t)} {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": s.Open(t, "uuids_a"), "b": s.Open(t, "uuids_b")}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "gorm_seats_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "gorm_seats", Key: "room_id", Rule: sharding.HashText(16), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			db := database.OpenGORM(t, dbs["a"], false)
			if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
				t.Fatal(err)
			}
			if err := gormplugin.Migrate(t.Context(), db, &gormSeat{}); err != nil {
				t.Fatal(err)
			}
			want := map[uuid.UUID]int64{}
			for room := range 9 {
				id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Append(nil, room))
				for no := range 1 + room%3 {
					if err := db.Create(&gormSeat{RoomID: id, No: no}).Error; err != nil {
						t.Fatal(err)
					}
					want[id]++
				}
			}
			seats := func() *gorm.DB { return db.Model(&gormSeat{}) }
			var groups []struct {
				RoomID uuid.UUID
				N      int64
			}
			if err := seats().Select("room_id, COUNT(*) AS n").Group("room_id").Find(&groups).Error; err != nil || len(groups) != len(want) {
				t.Fatalf("%d groups, %v", len(groups), err)
			}
			for _, g := range groups {
				if g.N != want[g.RoomID] {
					t.Errorf("%s: %d, want %d", g.RoomID, g.N, want[g.RoomID])
				}
			}
			var rooms int64
			if err := seats().Distinct("room_id").Count(&rooms).Error; err != nil || rooms != 9 {
				t.Errorf("COUNT(DISTINCT): %d, %v", rooms, err)
			}
			var ids []uuid.UUID
			if err := seats().Distinct().Pluck("room_id", &ids).Error; err != nil || len(ids) != 9 {
				t.Errorf("DISTINCT: %d, %v", len(ids), err)
			}
			var full int64
			if err := seats().Group("room_id").Having("COUNT(*) > 2").Count(&full).Error; err != nil || full != 3 {
				t.Errorf("HAVING: %d, %v", full, err)
			}
		})
	}
}
