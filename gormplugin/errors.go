package gormplugin

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/keyfield"
)

// Errors of filling; test for them with errors.Is. Those about one field come
// in a [FieldError]. Refusals of the router are sharding.RouteErrors.
var (
	// ErrFieldType: a field with a keygen tag has a type that no id fits into.
	ErrFieldType = keyfield.ErrType

	// ErrOverflow: an id is too large for the field.
	ErrOverflow = keyfield.ErrOverflow

	// ErrNotAddressable: Create was given a struct or an array by value, so that
	// an id could be inserted but never be told. It wraps gorm.ErrInvalidValue.
	ErrNotAddressable = fmt.Errorf("%w: pass a pointer, or the generated id cannot be stored in it", gorm.ErrInvalidValue)

	// ErrModelMismatch: the rows are of another type than the statement's model,
	// so that gorm would read them by the wrong offsets.
	ErrModelMismatch = errors.New("the rows are not of the model's type; create them without Model, or with a Model of their type")

	// ErrMapSlice: maps without a key in a []map create. gorm numbers such maps
	// itself and writes its own guesses into them.
	ErrMapSlice = errors.New("a slice of maps cannot receive generated ids; give every map its id, or create structs or single maps")

	// ErrPrepareStmt: gorm's PrepareStmt is on together with a Router. Its cache
	// is for one database and would run statements on the wrong shard.
	ErrPrepareStmt = errors.New("PrepareStmt cannot be combined with a Router; turn it off, and let the driver prepare statements")
)

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
