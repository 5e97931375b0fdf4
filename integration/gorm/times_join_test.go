// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
)

// gormVisit is sharded by its day, as are its hits and clicks. The times of clicks are of another type, which PostgreSQL
// compares with that of visits in the zone of the session.
type gormVisit struct {
	ID        int64     `gorm:"primaryKey;autoIncrement:false"`
	CreatedAt time.Time `gorm:"precision:3"`
	Who       string    `gorm:"size:20"`
}

type gormHit struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false"`
	VisitID   int64
	CreatedAt time.Time  `gorm:"precision:3"`
	Visit     *gormVisit `gorm:"foreignKey:VisitID,CreatedAt;references:ID,CreatedAt"`
}

type gormClick struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false"`
	VisitID   int64
	CreatedAt time.Time  `gorm:"type:timestamp(3)"`
	Visit     *gormVisit `gorm:"foreignKey:VisitID,CreatedAt;references:ID,CreatedAt"`
}

// openVisits opens GORM on a database with three tables for each of three days.
func openVisits(t *testing.T, on gorm.Dialector, pool *sql.DB, first time.Time) *gorm.DB {
	t.Helper()
	var options []sharding.Option
	for _, name := range []string{"gorm_visits", "gorm_hits", "gorm_clicks"} {
		m, err := sharding.Spread([]string{"only"}, 3, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		rule := sharding.Interval(first, first.AddDate(0, 0, 3), 24*time.Hour).WithPrecision(time.Millisecond)
		options = append(options, sharding.Table{Name: name, Key: "created_at", Map: m, Rule: rule, Group: "visits"})
	}
	router, err := sharding.New(sharding.DBs{"only": pool}, options...)
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(on, &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormplugin.New(gormplugin.Config{Router: router}))
	}
	if err == nil {
		err = gormplugin.Migrate(t.Context(), db, &gormVisit{}, &gormHit{}, &gormClick{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestRowsOfOneTimeAreJoinedIfTheirColumnsAreOfOneType(t *testing.T) {
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t), "PostgreSQL": server.SharePostgres(t)} {
		t.Run(name, func(t *testing.T) {
			pool := s.Open(t, "visits")
			on := postgres.New(postgres.Config{Conn: pool})
			if name != "PostgreSQL" {
				pool = parseTimes(t, s.DSN("visits"))
				on = mysql.New(mysql.Config{Conn: pool})
			}
			db := openVisits(t, on, pool, first)
			for day := range 3 {
				id, at := int64(day), first.AddDate(0, 0, day).Add(time.Hour)
				err := errors.Join(db.Create(&gormVisit{ID: 10 + id, CreatedAt: at, Who: "ann"}).Error, db.Create(&gormHit{ID: 20 + id, VisitID: 10 + id, CreatedAt: at}).Error,
					db.Create(&gormHit{ID: 30 + id, VisitID: 10 + id, CreatedAt: at.Add(time.Minute)}).Error)
				if err != nil {
					t.Fatal(err)
				}
			}
			var hits []gormHit
			if err := db.Joins("Visit").Order("gorm_hits.id").Find(&hits).Error; err != nil || len(hits) != 6 {
				t.Fatalf("%d hits, %v", len(hits), err)
			}
			for _, h := range hits {
				if found := h.Visit != nil && h.Visit.ID == h.VisitID; found != (h.ID < 30) {
					t.Errorf("hit %d: visit %+v", h.ID, h.Visit)
				}
			}
			var one []gormHit
			if err := db.InnerJoins("Visit").Where("gorm_hits.created_at = ?", first.AddDate(0, 0, 1).Add(time.Hour)).Find(&one).Error; err != nil || len(one) != 1 || one[0].ID != 21 {
				t.Errorf("%+v, %v", one, err)
			}
			if err := db.Joins("Visit").Find(&[]gormClick{}).Error; name == "PostgreSQL" && !errors.Is(err, sharding.ErrUnmergeable) {
				t.Errorf("a timestamp and a timestamptz that are equal in the zone of the session may be of two days: %v", err)
			}
		})
	}
}
