package gormplugin

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// Errors of filling; test for them with errors.Is. Those about one field come
// in a [FieldError]. Refusals of the router are sharding.RouteErrors.
var (
	// ErrFieldType: a field with a keygen tag has a type that no id fits into.
	ErrFieldType = keyfield.ErrType

	// ErrOverflow: an id is too large for the field.
	ErrOverflow = keyfield.ErrOverflow

	// ErrUnknownSource: a tag names a generator that Config.Generators lacks. It
	// is keygen.ErrUnknownGenerator.
	ErrUnknownSource = keygen.ErrUnknownGenerator

	// ErrNotAddressable: Create was given a struct or an array by value, in which a
	// row has no key: one could be inserted but never be told. It wraps
	// gorm.ErrInvalidValue.
	ErrNotAddressable = fmt.Errorf("%w: pass a pointer, or the generated id cannot be stored in it", gorm.ErrInvalidValue)

	// ErrModelMismatch: the rows are of another type than the statement's model,
	// so that gorm would read them by the wrong offsets.
	ErrModelMismatch = errors.New("the rows are not of the model's type; create them without Model, or with a Model of their type")

	// ErrSkipped: a row that gorm saves for an association was left out, because
	// another one with the same unique value is there; the foreign key to it
	// would point nowhere. Find that row first, and associate it.
	ErrSkipped = errors.New("a row of an association was skipped because of one with the same unique value; find that one and associate it instead")

	// ErrInTransaction: a generator gave no key in time, inside a transaction. It
	// may have waited for the connection that the transaction holds.
	ErrInTransaction = errors.New("no key came inside the transaction; give a database-backed generator a *sql.DB of its own, or create before the transaction begins")

	// ErrAutoIncrement: Check found that the database numbers a column that a
	// generator fills. Numbers of both collide sooner or later.
	ErrAutoIncrement = errors.New("the column is still numbered by the database; change it to a plain BIGINT, or one INSERT without the key will collide")

	// ErrCollation: Check found that the column by which a table is sharded takes
	// texts for equal, in upper and lower case say, that the table's rule tells
	// apart. A statement would find fewer rows than in one table.
	ErrCollation = errors.New("the column's collation takes texts for equal that the table's rule tells apart")

	// ErrKeyColumn: Check found that the column by which a table is sharded does not keep
	// keys as the table's rule takes them: by its type, or by the precision and zone of
	// its times. Rows would be looked for where they are not.
	ErrKeyColumn = errors.New("the column does not keep keys as the table's rule takes them")

	// ErrNoBuckets: the field is one of sharding.Table.Also, by which rows are found,
	// and its generator cannot put a slot into a key.
	ErrNoBuckets = errors.New("the column leads to the row's shard, and its generator cannot put the slot into a key; give it a keygen.Bucketed, such as a snowflake generator whose layout has a bucket field")

	// ErrNotLoaded: Check was given a *gorm.DB that does not use the plugin, so
	// that the database numbers what it can and the tags say nothing.
	ErrNotLoaded = errors.New("gormplugin: the plugin is not loaded; call db.Use(gormplugin.New(…)) after gorm.Open")

	// ErrMigrating: Migrate was called while the source of a sharding.Migration
	// serves the table, or before Router.Load has found that out.
	ErrMigrating = errors.New("the table is being moved to its shards; change it before the migration or after the switch")

	// ErrUnmanaged: Check was given a model of which no field is filled.
	ErrUnmanaged = errors.New("no field is filled by a generator; tag one with `keygen:\"\"`, or register the model")
)

var errNoValuer = fmt.Errorf("a [16]byte that is no driver.Valuer reaches no database: %w", keyfield.ErrType)

// FieldError says which model's field could not be filled.
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
