// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"bytes"
	"errors"
	"log"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

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
	if err := gormplugin.Migrate(t.Context(), db, &Badge{}); err != nil {
		t.Fatal(err)
	}
	return db
}

// A row that was skipped because of an equal text has no id, and every other row has its id: the
// check reads where the router reads, not at home.
func TestSkippedRowsAreReadOnTheirShards(t *testing.T) {
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

// Account has an address that is unique over all shards.
type Account struct {
	ID     int64   `keygen:""`
	UserID int64   `gorm:"index"`
	Email  *string `gorm:"size:100;uniqueIndex"`
	Note   string
}

func newAccounts(t *testing.T) *gorm.DB {
	t.Helper()
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "accounts_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db0": memory(t), "db1": memory(t)},
		sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(4), Map: m, Lookups: []sharding.Lookup{{Column: "email", Table: "accounts_by_email", Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, memory(t))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds everything
		if err := gormplugin.Migrate(t.Context(), db, &Account{}); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// isDuplicate checks the text, because gorm's dialect knows the errors of another driver of SQLite.
// (The tests on servers check gorm.ErrDuplicatedKey.)
func isDuplicate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed: accounts_by_email.email")
}

func TestAModelIsFoundByALookupAndIsUniqueOverAllShards(t *testing.T) {
	db := newAccounts(t)
	email := func(text string) *string { return &text }
	one, two := Account{UserID: 1, Email: email("one@x")}, Account{UserID: 2, Email: email("two@x")}
	for _, a := range []*Account{&one, &two} {
		if err := db.Create(a).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Create(&[]Account{{UserID: 5}, {UserID: 9}}).Error; err != nil {
		t.Error("several rows without an address: ", err)
	}
	found := Account{}
	if err := db.Where("email = ?", "two@x").First(&found).Error; err != nil || found.UserID != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	if err := db.First(&found, "email = ?", "nobody").Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Error(err)
	}
	if err := db.Create(&Account{UserID: 3, Email: email("one@x")}).Error; !isDuplicate(err) {
		t.Errorf("a second owner: %v", err)
	}
	two.Email = email("one@x")
	if err := db.Save(&two).Error; !isDuplicate(err) {
		t.Errorf("a second owner by Save: %v", err)
	}
	one.Email, one.Note = email("uno@x"), "changed"
	if err := db.Save(&one).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Save(&two).Error; err != nil {
		t.Errorf("an address that is free again: %v", err)
	}
	if err := db.Delete(&one).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&Account{UserID: 7, Email: email("uno@x")}).Error; err != nil {
		t.Error(err)
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&Account{UserID: 4, Email: email("four@x")}).Error; err != nil {
			return err
		}
		return tx.First(&Account{}, "email = ?", "four@x").Error
	})
	if err != nil {
		t.Error(err)
	}
	var all []Account
	if err := db.Find(&all, "email IN ?", []string{"one@x", "uno@x", "two@x", "four@x"}).Error; err != nil || len(all) != 3 {
		t.Errorf("%d rows, %v", len(all), err)
	}
}

func TestTheModelOfADeleteIsFoundByItsShardingKey(t *testing.T) {
	db := newAccounts(t)
	a, b := Account{UserID: 1}, Account{UserID: 2}
	if err := errors.Join(db.Create(&a).Error, db.Create(&b).Error); err != nil {
		t.Fatal(err)
	}
	if tx := db.Model(&a).Delete(&Account{}); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("%d rows, %v", tx.RowsAffected, tx.Error)
	}
	if err := db.Model(&Account{ID: b.ID, UserID: 1}).Delete(&Account{}).Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("with another sharding key: %v", err)
	}
	var left []Account
	if err := db.Find(&left).Error; err != nil || len(left) != 1 || left[0].ID != b.ID {
		t.Errorf("%v, %v", left, err)
	}
}

func TestCheckFindsALookupThatWouldNotBeKept(t *testing.T) {
	m, err := sharding.Spread([]string{"db0", "db1"}, 2, "accounts_%d")
	if err != nil {
		t.Fatal(err)
	}
	dbs, home := sharding.DBs{"db0": memory(t), "db1": memory(t)}, memory(t)
	router, err := sharding.New(dbs,
		sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(2), Map: m, Lookups: []sharding.Lookup{{Column: "email", Table: "accounts_by_email", Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, home)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Account{}); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Check(db, &Account{}); err != nil {
		t.Error(err)
	}
	must(t, home, "ALTER TABLE accounts_by_email RENAME TO other")
	if err := gormplugin.Check(db, &Account{}); !errors.Is(err, gormplugin.ErrNoTable) || !strings.Contains(err.Error(), "the lookup table accounts_by_email of accounts") {
		t.Errorf("without the lookup table: %v", err)
	}
	must(t, home, "ALTER TABLE other RENAME TO accounts_by_email")
	var index string
	if err := dbs["db1"].QueryRowContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE 'CREATE UNIQUE%'").Scan(&index); err != nil {
		t.Fatal(err)
	}
	must(t, dbs["db1"], "DROP INDEX `"+index+"`")
	if err := gormplugin.Check(db, &Account{}); !errors.Is(err, sharding.ErrLookup) || !strings.Contains(err.Error(), "shard db1/accounts_1") || !strings.Contains(err.Error(), "column email has no unique index") {
		t.Errorf("without the index of one shard: %v", err)
	}
}

// gorm says of each table of a database that does not answer that it does not exist.
func TestCheckDoesNotTakeADatabaseThatIsAwayForOneWithoutTables(t *testing.T) {
	shard, home := memory(t), memory(t)
	m, err := sharding.MapOf(sharding.Target{DB: "db0", Table: "accounts_0"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db0": shard}, sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, home)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Account{}, &Badge{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(shard.Close(), home.Close()); err != nil {
		t.Fatal(err)
	}
	for _, model := range []any{&Account{}, &Badge{}} {
		if err := gormplugin.Check(db, model); err == nil || errors.Is(err, gormplugin.ErrNoTable) || strings.Count(err.Error(), "database is closed") != 1 {
			t.Errorf("%T: %v", model, err)
		}
	}
}

func TestCheckWarnsOfAUniqueKeyThatHoldsWithinEachShardOnly(t *testing.T) {
	for want, db := range map[string]*gorm.DB{
		"gormplugin: badges: the unique key on (text) holds within each shard, not across them; declare a unique lookup of text (docs/lookups.md), or add user_id to the key": newBadges(t, false),
		"": newAccounts(t),
	} {
		var model any = &Badge{}
		if want == "" {
			model = &Account{}
		}
		var out bytes.Buffer
		logged := db.Session(&gorm.Session{Logger: logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Warn})})
		if err := gormplugin.Check(logged, model); err != nil {
			t.Errorf("a warning is no error: %v", err)
		}
		if text := out.String(); strings.Count(text, "unique key") != strings.Count(want, "unique key") || !strings.Contains(text, want) {
			t.Errorf("logged %q, want %q", text, want)
		}
	}
}
