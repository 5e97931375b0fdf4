// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"fmt"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

// Check finds mistakes at the start that would fail at the first insert.
func Example_errorsOfCheck() {
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	type Order struct {
		ID int64 `keygen:""`
	}
	type Item struct {
		ID int64 `keygen:"item"`
	}
	type Tag struct {
		ID bool `keygen:""`
	}
	type Note struct{ Text string }
	err = gormplugin.Check(db, &Order{})
	fmt.Println(errors.Is(err, gormplugin.ErrNotLoaded), err)

	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1000, 1)}})))
	err = gormplugin.Check(db, &Item{})
	fmt.Println(errors.Is(err, gormplugin.ErrUnknownSource), err)
	err = gormplugin.Check(db, &Tag{})
	fmt.Println(errors.Is(err, gormplugin.ErrFieldType), err)
	err = gormplugin.Check(db, &Note{})
	fmt.Println(errors.Is(err, gormplugin.ErrUnmanaged), err)
	check(db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT)").Error)
	err = gormplugin.Check(db, &Order{})
	fmt.Println(errors.Is(err, gormplugin.ErrAutoIncrement), err)
	// Output:
	// true gormplugin: the plugin is not loaded; call db.Use(gormplugin.New(…)) after gorm.Open
	// true gormplugin: Item.ID: keygen: unknown generator "item"; the set names no generators; add it before the set is used
	// true gormplugin: Tag.ID: bool: type cannot hold a key of this generator; integers take int64 ids, strings texts or encoded ids, [16]byte takes binary keys, and types with Scan what they scan
	// true gormplugin: github.com/shardid/shardid/gormplugin_test.Note: no field is filled by a generator; tag one with `keygen:""`, or name the field in Config.Models
	// true gormplugin: Order.ID: the column is still numbered by the database, and one INSERT without the key will collide; change it to a plain BIGINT, and for AutoMigrate the field to keygen.ID, or give it the tag gorm:"autoIncrement:false"
}

// Create refuses rows that it cannot number. Nothing has been sent.
func Example_errorsOfCreate() {
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1000, 1)}})))
	type Order struct {
		ID int64 `keygen:""`
	}
	type Small struct {
		ID int8 `keygen:""`
	}
	err = db.Create(Order{}).Error
	fmt.Println(errors.Is(err, gormplugin.ErrNotAddressable), err)
	err = db.Create(&Small{}).Error
	fmt.Println(errors.Is(err, gormplugin.ErrOverflow), err)
	err = db.Model(&Order{}).Create(&Small{}).Error
	fmt.Println(errors.Is(err, gormplugin.ErrModelMismatch), err)
	// Output:
	// true gormplugin: gormplugin_test.Order by value: invalid value, should be pointer to struct or slice: pass a pointer, or the generated id cannot be stored in it
	// true gormplugin: Small.ID: 1000 into int8: id does not fit the field; widen the field and its column to 64 bits
	// true gormplugin: rows of type gormplugin_test.Small for model Order: the rows are not of the model's type; create them without Model, or with a Model of their type
}
