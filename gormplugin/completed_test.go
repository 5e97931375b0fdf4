// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// Postcard is a row that moves to shards to which its primary key does not lead.
type Postcard struct {
	ID     int64 `keygen:""`
	UserID int64
	Note   string
	Gone   gorm.DeletedAt
}

// Envelope is a Postcard without the soft delete.
type Envelope struct {
	ID     int64 `keygen:""`
	UserID int64
	Note   string
}

func (Envelope) TableName() string { return "postcards" }

// movePostcards returns a program that has planned a statement on postcards 1 to 9, which then moved from their
// source to shards. The program does not know this yet. The postcards with ids 1, 3, 5, 7 and 9 are those of user 1.
func movePostcards(t *testing.T) (db *gorm.DB, dbs sharding.DBs) {
	t.Helper()
	dbs = sharding.DBs{"source": openShared(t, "source"), "a": openShared(t, "a"), "b": openShared(t, "b")}
	must(t, dbs["source"], "CREATE TABLE postcards (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, note TEXT NOT NULL, gone DATETIME)")
	must(t, dbs["source"], "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 9) INSERT INTO postcards (user_id, note) SELECT i % 2, 'old' FROM n")
	m, err := sharding.Spread([]string{"a", "b"}, 4, "postcards_%d")
	if err != nil {
		t.Fatal(err)
	}
	postcards := sharding.Table{Name: "postcards", Key: "user_id", Rule: sharding.Low(2), Map: m, OnMissing: sharding.Refuse}
	router, err := sharding.New(dbs, postcards, sharding.Migration{Source: "source", Tables: map[string]string{"postcards": "id"}, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	db = openGORM(t, dbs["source"])
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: (&removal{}).generators(0), Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := db.First(&Postcard{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	job, err := migrate.New(migrate.Config{Source: dbs["source"], Shards: dbs, Tables: []migrate.Table{{Table: postcards}}, ChunkRows: 50})
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return db, dbs
}

func TestAStatementOnAModelThatTheSwitchOvertakesGetsTheModelsShardingKey(t *testing.T) {
	mine := func(id int64) *Postcard { return &Postcard{ID: id, UserID: 1} }
	const kept, noted = "SELECT COUNT(*) FROM postcards_1 WHERE id = 3 AND gone IS NULL", "SELECT COUNT(*) FROM postcards_1 WHERE id = 3 AND note = 'new'"
	for what, late := range map[string]struct {
		send func(db *gorm.DB) *gorm.DB
		sql  string
		want int
	}{
		"an update":      {func(db *gorm.DB) *gorm.DB { return db.Model(mine(3)).Update("note", "new") }, noted, 1},
		"updates":        {func(db *gorm.DB) *gorm.DB { return db.Model(mine(3)).Updates(Postcard{Note: "new"}) }, noted, 1},
		"an expression":  {func(db *gorm.DB) *gorm.DB { return db.Model(mine(3)).UpdateColumn("note", gorm.Expr("'new'")) }, noted, 1},
		"a save":         {func(db *gorm.DB) *gorm.DB { return db.Save(&Postcard{ID: 3, UserID: 1, Note: "new"}) }, noted, 1},
		"a soft delete":  {func(db *gorm.DB) *gorm.DB { return db.Delete(mine(3)) }, kept, 0},
		"a delete":       {func(db *gorm.DB) *gorm.DB { return db.Delete(&Envelope{ID: 3, UserID: 1}) }, kept, 0},
		"a query":        {func(db *gorm.DB) *gorm.DB { return db.First(mine(3)) }, kept, 1},
		"one of several": {func(db *gorm.DB) *gorm.DB { return db.Model([]*Postcard{mine(3)}).Update("note", "new") }, noted, 1},
	} {
		for _, skip := range []bool{false, true} {
			db, dbs := movePostcards(t)
			tx := late.send(db.Session(&gorm.Session{SkipDefaultTransaction: skip}))
			if tx.Error != nil || tx.RowsAffected != 1 {
				t.Errorf("%s: %d rows, %v", what, tx.RowsAffected, tx.Error)
			}
			if got := countOf(t, dbs["b"], late.sql); got != late.want {
				t.Errorf("%s: %d rows are as expected, want %d", what, got, late.want)
			}
		}
	}
}

func TestAStatementWithoutAShardingKeyThatTheSwitchOvertakesIsRefused(t *testing.T) {
	db, _ := movePostcards(t)
	if err := db.Model(&Postcard{ID: 3}).Update("note", "new").Error; err == nil {
		t.Error("was accepted")
	}
}

func countOf(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
