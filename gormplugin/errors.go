// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// Errors of filling keys; test for them with errors.Is. Those about one field come in a
// [FieldError]. Refusals of the router are sharding.RouteErrors.
var (
	// ErrFieldType: a field with a keygen tag has a type that cannot hold an id.
	ErrFieldType = keyfield.ErrType

	// ErrOverflow: an id is too large for the field.
	ErrOverflow = keyfield.ErrOverflow

	// ErrUnknownSource: a tag names a generator that Config.Generators lacks. It
	// is keygen.ErrUnknownGenerator.
	ErrUnknownSource = keygen.ErrUnknownGenerator

	// ErrNotAddressable: Create got a struct or an array by value, so the caller would never know
	// the generated key. It wraps gorm.ErrInvalidValue.
	ErrNotAddressable = fmt.Errorf("%w: pass a pointer, or the generated id cannot be stored in it", gorm.ErrInvalidValue)

	// ErrModelMismatch: the rows have another type than the statement's model, so gorm would
	// read their fields at wrong offsets.
	ErrModelMismatch = errors.New("the rows are not of the model's type; create them without Model, or with a Model of their type")

	// ErrSkipped: a row that gorm saves for an association was skipped, because another row has
	// the same unique value. The foreign key would refer to no row.
	ErrSkipped = errors.New("a row of an association was skipped because another row has the same unique value; find that row and associate it instead")

	// ErrInTransaction: inside a transaction, a generator gave no key in time. It may have
	// waited for the connection that the transaction holds.
	ErrInTransaction = errors.New("the generator gave no key in time inside the transaction; give a database-backed generator a *sql.DB of its own, or create before the transaction begins")

	// ErrAutoIncrement: Check found that the database numbers a column that a generator fills, or a
	// shard the primary key of a model without one. The numbers collide sooner or later. gorm's
	// AutoMigrate makes such a column of an int64 that is the primary key.
	ErrAutoIncrement = errors.New("the column is still numbered by the database, and one INSERT without the key will collide; change it to a plain BIGINT, and for AutoMigrate the field to keygen.ID, or give it the tag gorm:\"autoIncrement:false\"")

	// ErrNoTable: Check found no table of the model.
	ErrNoTable = errors.New("it does not exist; create it before Check, for example with Migrate")

	// ErrCollation: Check found that the collation of the sharding key's column treats texts as
	// equal that the table's rule distinguishes. A statement would find fewer rows than in an
	// unsharded table.
	ErrCollation = errors.New("the column's collation treats texts as equal that the table's rule distinguishes")

	// ErrKeyColumn: Check found that the type of the sharding key's column, or the precision or zone
	// of its times, is not the rule's. The router would look for rows in the wrong shard.
	ErrKeyColumn = errors.New("the column does not store keys as the table's rule expects them")

	// ErrNoBuckets: the field is one of sharding.Table.Also, by which rows are found, but its
	// generator cannot put a slot into a key.
	ErrNoBuckets = errors.New("the column leads to the row's shard, and its generator cannot put the slot into a key; give it a keygen.Bucketed, such as a snowflake generator whose layout has a bucket field")

	// ErrNotLoaded: Check got a *gorm.DB without the plugin, so the tags have no effect and the
	// database numbers the rows.
	ErrNotLoaded = errors.New("gormplugin: the plugin is not loaded; call db.Use(gormplugin.New(…)) after gorm.Open")

	// ErrMigrating: Migrate was called while the source of a sharding.Migration serves the
	// table, or before Router.Load has read its state.
	ErrMigrating = errors.New("the table is being moved to its shards; change it before the migration or after the switch")

	// ErrUnmanaged: Check got a model of which no field is filled, and whose table is neither sharded
	// nor broadcast.
	ErrUnmanaged = errors.New("no field is filled by a generator; tag one with `keygen:\"\"`, or name the field in Config.Models")
)

// fail stores an error in db before a text is made, and logs it: gorm logs the errors of texts only.
func fail(db *gorm.DB, err error) {
	_ = db.AddError(err)
	db.Logger.Error(db.Statement.Context, "%v", err)
}

// FieldError names the model's field that could not be filled.
type FieldError struct {
	Model string // the struct's name
	Field string // the field's name
	Err   error
}

// Error returns "gormplugin: Model.Field: …".
func (e *FieldError) Error() string {
	return "gormplugin: " + e.Model + "." + e.Field + ": " + e.Err.Error()
}

// Unwrap returns e.Err.
func (e *FieldError) Unwrap() error { return e.Err }
