// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// exampleDB opens a database in memory with the plugin and tables for models.
func exampleDB(c gormplugin.Config, models ...any) *gorm.DB {
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	pool, err := db.DB()
	check(err)
	pool.SetMaxOpenConns(1) // each connection has a memory of its own
	check(db.AutoMigrate(models...))
	check(db.Use(gormplugin.New(c)))
	return db
}

// sequence counts from 100, so that the examples' output is always the same.
func sequence() keygen.Set { return keygen.Set{Default: keygen.Counting(100, 1)} }

// readme is the example of the README, without the last line.
func readme(ctx context.Context, idDB *sql.DB, db *gorm.DB) string {
	type Order struct {
		ID     keygen.ID `gorm:"primaryKey" keygen:"order"`
		UserID int64
	}

	store, err := sqlstore.New(ctx, idDB) // a *sql.DB of its own; the reason is below
	check(err)
	orders, err := segment.New(ctx, segment.Config{Source: store.Tag("order")})
	check(err)
	defer func() { check(orders.Close()) }()
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": orders},
	}})))
	check(gormplugin.Check(db, &Order{})) // finds at start what would fail at the first insert

	order := Order{UserID: 7}
	check(db.Create(&order).Error) // the plugin fills order.ID, as in every other form of create
	return order.ID.String()
}

// A model with a tag, and ids from segments of a counter in the application's
// database.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	sqlDB, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)")
	check(err)
	defer func() { check(sqlDB.Close()) }()
	check(schema.Apply(ctx, sqlDB))
	_, err = schema.Seed(ctx, sqlDB, "order", 1001, 100)
	check(err)
	_, err = sqlDB.ExecContext(ctx, "CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT)")
	check(err)
	db, err := gorm.Open(sqlite.Dialector{Conn: sqlDB}, &gorm.Config{Logger: logger.Discard})
	check(err)

	fmt.Println(readme(ctx, sqlDB, db))
	// Output:
	// 1001
}

// LegacyInvoice is a struct that cannot be edited.
type LegacyInvoice struct {
	ID    int64
	Total int64
}

// A struct without tags is registered, and with it its table, for maps.
func ExampleModel() {
	db := exampleDB(gormplugin.Config{
		Generators: sequence(),
		Models:     []gormplugin.Model{{Struct: &LegacyInvoice{}, Tags: map[string]string{"ID": ""}}},
	}, &LegacyInvoice{})

	invoice := LegacyInvoice{Total: 20}
	check(db.Create(&invoice).Error)
	row := map[string]any{"total": 30}
	check(db.Table("legacy_invoices").Create(row).Error)
	fmt.Println(invoice.ID, row["id"])
	// Output:
	// 100 101
}

func ExampleBase() {
	type Ticket struct {
		gormplugin.Base

		Title string
	}
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Ticket{})

	ticket := Ticket{Title: "first"}
	check(db.Create(&ticket).Error)
	text, err := ticket.ID.MarshalJSON()
	check(err)
	fmt.Println(ticket.ID, string(text))
	// Output:
	// 100 "100"
}

// One reservation fills a batch; present values are kept.
func Example_batch() {
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Person{}, &Pet{})

	people := []Person{{Name: "Ada"}, {ID: 7, Name: "Grace"}, {Name: "Edsger"}}
	check(db.Create(&people).Error)
	more := make([]Person, 5)
	check(db.CreateInBatches(&more, 2).Error)
	fmt.Println(people[0].ID, people[1].ID, people[2].ID, more[4].ID)
	// Output:
	// 100 7 101 106
}

// Rows of associations are filled by their own models' tags.
func Example_association() {
	set := sequence()
	set.Named = map[string]keygen.Generator[int64]{"pet": keygen.Counting(9000, 1)}
	db := exampleDB(gormplugin.Config{Generators: set}, &Person{}, &Pet{})

	ada := Person{Name: "Ada", Pets: []Pet{{Name: "Rex"}, {Name: "Tom"}}}
	check(db.Create(&ada).Error)
	fmt.Println(ada.ID, *ada.Pets[1].ID, ada.Pets[1].PersonID)
	// Output:
	// 100 9001 100
}

// After an upsert the struct has the id of the row in the table.
func Example_upsert() {
	type Account struct {
		ID    int64  `keygen:""`
		Email string `gorm:"unique"`
		Name  string
	}
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Account{})
	upsert := db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "email"}},
		DoUpdates: clause.AssignmentColumns([]string{"name"}),
	}).Session(&gorm.Session{})

	first, again := Account{Email: "ada@example.org", Name: "A."}, Account{Email: "ada@example.org", Name: "Ada"}
	check(errors.Join(upsert.Create(&first).Error, upsert.Create(&again).Error))
	fmt.Println(first.ID, again.ID)
	// Output:
	// 100 100
}

func Example_map() {
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Person{}, &Pet{})

	rows := []map[string]any{{"name": "Ada"}, {"name": "Grace"}}
	check(db.Model(&Person{}).Create(&rows).Error)
	for _, row := range rows {
		fmt.Println(slices.Sorted(maps.Keys(row)), row["id"])
	}
	// Output:
	// [id name] 100
	// [id name] 101
}

func Example_generics() {
	ctx := context.Background()
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Person{}, &Pet{})

	ada := Person{Name: "Ada"}
	check(gorm.G[Person](db).Create(ctx, &ada))
	found, err := gorm.G[Person](db).Where("id = ?", ada.ID).First(ctx)
	check(err)
	fmt.Println(found.ID, found.Name)
	// Output:
	// 100 Ada
}

// Rows of a transaction that gorm rolls back have no ids afterwards, so that a search with the same
// struct does not use them.
func Example_transaction() {
	type Seat struct {
		ID     int64 `keygen:""`
		Number int   `gorm:"unique"`
	}
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Seat{})
	check(db.Transaction(func(tx *gorm.DB) error {
		return tx.Create(&[]Seat{{Number: 1}, {Number: 2}}).Error
	}))

	seats := []Seat{{Number: 3}, {Number: 2}}
	err := db.Create(&seats).Error // the number 2 is taken: both rows are rolled back
	fmt.Println(err != nil, seats[0].ID, seats[1].ID)
	check(db.First(&seats[1], "number = ?", 2).Error)
	fmt.Println(seats[1].ID)
	// Output:
	// true 0 0
	// 101
}

// One import uses its own generator, another leaves the ids unchanged.
func ExampleWith() {
	ctx := context.Background()
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &LegacyInvoice{})

	imported := db.WithContext(gormplugin.With(ctx, keygen.Counting(5_000_000, 1)))
	a, b := LegacyInvoice{Total: 1}, LegacyInvoice{Total: 2}
	check(errors.Join(imported.Create(&a).Error, db.WithContext(gormplugin.Off(ctx)).Create(&b).Error))
	fmt.Println(a.ID, b.ID) // the database goes on at the largest number
	// Output:
	// 5000000 5000001
}

// Check, at the start of a program, finds mistakes that would fail at the first insert.
func ExampleCheck() {
	type Label struct {
		ID   int8   `keygen:""`
		Name string `gorm:"unique"`
	}
	db := exampleDB(gormplugin.Config{Generators: sequence()}, &Person{}, &Pet{})

	fmt.Println(gormplugin.Check(db, &Label{}))
	fmt.Println(errors.Is(gormplugin.Check(db, &LegacyInvoice{}), gormplugin.ErrUnmanaged))
	// Output:
	// gormplugin: Label.ID: int8: id does not fit the field; widen the field and its column to 64 bits
	// gormplugin: Label: table labels: it does not exist; create it before Check, for example with Migrate
	// true
}
