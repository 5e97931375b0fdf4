// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Without the plugin the database numbers the row: the INSERT has no id, and the result has it.
func Example_sqlmockAutoIncrement() {
	conn, mock, err := sqlmock.New()
	check(err)
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: conn, SkipInitializeWithVersion: true}), &gorm.Config{})
	check(err)

	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO `people` \\(`name`\\)").WithArgs("Ada").WillReturnResult(sqlmock.NewResult(41, 1))
	mock.ExpectCommit()

	person := Person{Name: "Ada"}
	check(db.Create(&person).Error)
	check(mock.ExpectationsWereMet())
	fmt.Println(person.ID)
	// Output:
	// 41
}

// In a test the generator counts, so every argument is known beforehand. The key is at its position
// in the model, and only the INSERT is sent.
func Example_sqlmock() {
	conn, mock, err := sqlmock.New()
	check(err)
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: conn, SkipInitializeWithVersion: true}), &gorm.Config{})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(41, 1)}})))

	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO `people` \\(`id`,`name`\\)").WithArgs(41, "Ada", 42, "Grace").WillReturnResult(sqlmock.NewResult(42, 2))
	mock.ExpectCommit()

	people := []Person{{Name: "Ada"}, {Name: "Grace"}}
	check(db.Create(&people).Error)
	check(mock.ExpectationsWereMet())
	fmt.Println(people[0].ID, people[1].ID)
	// Output:
	// 41 42
}

// With a router the databases are queried once for their version and for the settings on which the
// meaning of a statement depends. Here one mock is the home database and the shard.
func Example_sqlmockShards() {
	conn, mock, err := sqlmock.New()
	check(err)
	tables, err := sharding.Spread([]string{"shop"}, 4, "people_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"shop": conn}, sharding.Table{Name: "people", Key: "id", Rule: sharding.Mod(4), Map: tables})
	check(err)
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: conn, SkipInitializeWithVersion: true}), &gorm.Config{})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(41, 1)}, Router: router})))

	mock.ExpectQuery(`SELECT VERSION\(\)`).WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow("8.4.0"))
	mock.ExpectQuery("SELECT @@SESSION.sql_mode").WillReturnRows(sqlmock.NewRows([]string{"mode", "zone", "collation", "sort", "digits", "names", "week", "concat", "time", "limit", "place"}).
		AddRow("STRICT_TRANS_TABLES", "UTC", "utf8mb4_0900_ai_ci", 1024, 4, "en_US", 0, 1024, time.Time{}, "18446744073709551615", "db1:3306/shop"))
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO `people_1`").WithArgs(41, "Ada").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectQuery("SELECT \\* FROM `people_1` AS `people` WHERE id = \\?").WithArgs(41).WillReturnRows(sqlmock.NewRows([]string{"id", "name"}).AddRow(41, "Ada"))

	check(db.Create(&Person{Name: "Ada"}).Error)
	var person Person
	check(db.Where("id = ?", 41).Find(&person).Error)
	check(mock.ExpectationsWereMet())
	fmt.Println(person.Name)
	// Output:
	// Ada
}

// mocked returns a *gorm.DB with the plugin over a mock that expects no statement, so Use must send
// none.
func mocked(t *testing.T, c gormplugin.Config) (*gorm.DB, sqlmock.Sqlmock) {
	t.Helper()
	conn, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: conn, SkipInitializeWithVersion: true}),
		&gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Generators = keygen.Set{
		Default: keygen.Counting(41, 1),
		Text:    map[string]keygen.Generator[string]{"word": keygen.Func[string](nextWord())},
	}
	if err := db.Use(gormplugin.New(c)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	})
	return db, mock
}

// Word has a text for a key.
type Word struct {
	ID   string `keygen:"word"`
	Name string
}

func TestArgumentsAreIntegersOrStringsInTheModelsOrder(t *testing.T) {
	db, mock := mocked(t, gormplugin.Config{})
	mock.ExpectExec("INSERT INTO `people` (`id`,`name`) VALUES (?,?)").WithArgs(int64(41), "a").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec("INSERT INTO `words` (`id`,`name`) VALUES (?,?)").WithArgs("w1", "b").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec("INSERT INTO `people` (`id`,`name`) VALUES (?,?),(?,?)").WithArgs(int64(42), "c", int64(43), "d").WillReturnResult(sqlmock.NewResult(0, 2))
	maps := []map[string]any{{"name": "c"}, {"name": "d"}}
	for _, tx := range []*gorm.DB{db.Create(&Person{Name: "a"}), db.Create(&Word{Name: "b"}), db.Model(&Person{}).Create(maps)} {
		if tx.Error != nil {
			t.Error(tx.Error)
		}
	}
}

func TestAnUpsertSendsAtMostOneSelectWhichCanBeSwitchedOff(t *testing.T) {
	const (
		insert = "INSERT INTO `people` (`id`,`name`) VALUES (?,?),(?,?) ON DUPLICATE KEY UPDATE `id`=LAST_INSERT_ID(`id`),`name`=VALUES(`name`)"
		ask    = "SELECT `id` FROM `people` WHERE `id` IN (?,?)"
	)
	upsert := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"name"})}
	for _, c := range []struct {
		name   string
		lastID int64
		config gormplugin.Config
		ids    [2]int64
		asks   bool
	}{
		{"no row was there", 42, gormplugin.Config{}, [2]int64{41, 42}, false},
		{"a table without AUTO_INCREMENT", 0, gormplugin.Config{}, [2]int64{41, 42}, false},
		{"a row was there", 7, gormplugin.Config{}, [2]int64{41, 0}, true},
		{"switched off", 7, gormplugin.Config{NoVerify: true}, [2]int64{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, mock := mocked(t, c.config)
			mock.ExpectExec(insert).WithArgs(int64(41), "a", int64(42), "b").WillReturnResult(sqlmock.NewResult(c.lastID, 3))
			if c.asks {
				mock.ExpectQuery(ask).WithArgs(int64(41), int64(42)).WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(41))
			}
			people := []Person{{Name: "a"}, {Name: "b"}}
			if err := db.Clauses(upsert).Create(&people).Error; err != nil || people[0].ID != c.ids[0] || people[1].ID != c.ids[1] {
				t.Errorf("%+v, %v", people, err)
			}
		})
	}
}
