package gormplugin_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Badge has a text that is unique in its shard.
type Badge struct {
	ID     int64 `keygen:""`
	UserID int64
	Text   string `gorm:"uniqueIndex"`
}

// newBadges has badges on two databases, and in the table badges at home, which
// nobody asks, the rows 100 and 101. Copied has the same badges in each database, home
// among them.
func newBadges(t *testing.T, copied bool) *gorm.DB {
	t.Helper()
	dbs := sharding.DBs{"db0": memory(t), "db1": memory(t)}
	sharded, options := "badges", []sharding.Option{sharding.Transactions(sharding.BestEffort)}
	if copied {
		sharded, options = "users", append(options, sharding.Broadcast("badges"))
	}
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, sharded+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, append(options, sharding.Table{Name: sharded, Key: "user_id", Rule: sharding.Mod(4), Map: m})...)
	if err != nil {
		t.Fatal(err)
	}
	home := memory(t)
	if !copied {
		must(t, home, "CREATE TABLE badges (id INTEGER PRIMARY KEY, user_id INTEGER, text TEXT)")
		must(t, home, "INSERT INTO badges VALUES (100, 1, 'left'), (101, 1, 'over')")
	}
	db := openGORM(t, home)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	if _, err := gormplugin.Migrate(t.Context(), db, &Badge{}); err != nil {
		t.Fatal(err)
	}
	return db
}

// A row that was skipped for an equal text has no id, and every other one the id
// that its row has: where the router reads, not at home.
func TestWhichRowsWereSkippedIsReadWhereTheyAre(t *testing.T) {
	for name, copied := range map[string]bool{"sharded": false, "broadcast": true} {
		for _, inTransaction := range []bool{false, true} {
			db := newBadges(t, copied)
			if err := db.Create(&Badge{UserID: 1, Text: "taken"}).Error; err != nil {
				t.Fatal(err)
			}
			rows := []Badge{{UserID: 1, Text: "taken"}, {UserID: 1, Text: "free"}, {UserID: 1, Text: "new"}}
			create := func(tx *gorm.DB) error {
				return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error
			}
			err := create
			if inTransaction {
				err = func(db *gorm.DB) error { return db.Transaction(create) }
			}
			if err := err(db); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if rows[0].ID != 0 || rows[1].ID != 102 || rows[2].ID != 103 {
				t.Errorf("%s: the rows are %v", name, rows)
			}
			var stored []Badge
			if err := db.Where("user_id = ? AND id IN ?", 1, []int64{102, 103}).Find(&stored).Error; err != nil || len(stored) != 2 {
				t.Errorf("%s: %v, %v", name, stored, err)
			}
		}
	}
}
