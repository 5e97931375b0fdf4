// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// gormEvent is sharded by its day.
type gormEvent struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	CreatedAt time.Time
	Note      string
}

// openEvents opens a database with a table of events for each of two days.
func openEvents(t *testing.T, s database.DSNOpener, first time.Time) *gorm.DB {
	t.Helper()
	s.Open(t, "events") // creates it
	pool := parseTimes(t, s.DSN("events"))
	m, err := sharding.Spread([]string{"only"}, 2, "gorm_events_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"only": pool}, sharding.Table{
		Name: "gorm_events", Key: "created_at", Map: m, Rule: sharding.Interval(first, first.AddDate(0, 0, 2), 24*time.Hour).WithPrecision(time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router}))
	}
	if err == nil {
		err = gormplugin.Migrate(t.Context(), db, &gormEvent{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestARowIsFoundWhenItsTimeIsFinerThanItsColumn changes rows by structs whose times the column DATETIME(3) has
// rounded.
func TestARowIsFoundWhenItsTimeIsFinerThanItsColumn(t *testing.T) {
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			db := openEvents(t, s, first)
			fine := first.Add(30*time.Hour + 123_456_789)
			e := gormEvent{CreatedAt: fine, Note: "a"}
			again := []gormEvent{{CreatedAt: fine, Note: "new"}, {ID: 100, CreatedAt: fine, Note: "again"}}
			upsert := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})}
			for _, step := range []struct {
				what string
				run  func() *gorm.DB
			}{
				{"create", func() *gorm.DB { return db.Create(&e) }},
				{"update", func() *gorm.DB { return db.Model(&e).Update("note", "b") }},
				{"read", func() *gorm.DB { return db.First(&gormEvent{ID: e.ID, CreatedAt: fine}) }},
				{"save", func() *gorm.DB { e.Note = "c"; return db.Save(&e) }},
				{"upsert", func() *gorm.DB {
					db.Clauses(upsert).Create(&again)
					return db.First(&gormEvent{}, "id = ? AND note = 'new'", again[0].ID)
				}},
				{"delete", func() *gorm.DB { return db.Delete(&gormEvent{ID: e.ID, CreatedAt: fine}) }},
			} {
				if tx := step.run(); tx.Error != nil || tx.RowsAffected != 1 {
					t.Errorf("%s: %v, %d rows", step.what, tx.Error, tx.RowsAffected)
				}
			}
		})
	}
}
