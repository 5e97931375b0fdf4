// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/keyfield"
)

// Errors that the methods of Hook wrap; test for them with errors.Is. All of
// them are found before anything is sent to the database.
var (
	// ErrArgument: the argument holds no rows. It is empty, its elements have different
	// types, its maps have different keys, or it is no struct, no map and no slice of these.
	ErrArgument = errors.New("argument holds no rows of one form; pass a struct pointer, a map, or a non-empty slice of either, in which maps have equal keys")

	// ErrNil: a row is nil, or an embedded pointer that leads to a field is nil.
	ErrNil = errors.New("nil where a value is needed")

	// ErrNotAddressable: the id cannot be stored, because the struct was passed by value.
	// Rows whose keys are set may be passed by value.
	ErrNotAddressable = errors.New("cannot store the id in a struct passed by value; pass a pointer")

	// ErrParameter: the row has no field and no map key with the name of a parameter. Only structs
	// get ids from a generator; a map must contain its own.
	ErrParameter = errors.New("no value for the parameter")

	// ErrKeyColumnMissing: rows need an id, but the INSERT does not store it. This package
	// never rewrites a statement; add the column and its parameter.
	ErrKeyColumnMissing = errors.New("the INSERT does not store the generated key; add its column and parameter")

	// ErrNoKey: no field of the type has a keygen tag. Fill returns it.
	ErrNoKey = errors.New("no field has a keygen tag")

	// ErrTag: a keygen tag cannot be read, or a field's keygen, db and gorm tags
	// disagree.
	ErrTag = errors.New("bad keygen tag")

	// ErrStatement: the statement cannot be sent in this form. For example, a literal is not
	// closed, or there are several rows but no VALUES group to repeat.
	ErrStatement = errors.New("statement cannot be used")

	// ErrTooManyRows: the rows do not fit into the one statement that NamedQuery
	// sends.
	ErrTooManyRows = errors.New("too many rows for one statement")

	// ErrDriver: the call depends on the kind of database, and the kind is unknown; set
	// Config.DriverName.
	ErrDriver = errors.New("unknown database; set Config.DriverName to mysql, mariadb, sqlite or postgres")

	// ErrType: a tagged field cannot hold the keys of the generator it names.
	ErrType = keyfield.ErrType

	// ErrOverflow: an id does not fit into its field.
	ErrOverflow = keyfield.ErrOverflow
)

// RowError names the row, and the field of the row, that caused an error.
type RowError struct {
	Row   int    // index in the argument; 0 for a single row
	Field string // "Order.ID", or a parameter's name; "" when the error is about the whole row
	Err   error
}

// Error names the row and the field.
func (e *RowError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("row %d: %v", e.Row, e.Err)
	}
	return fmt.Sprintf("row %d: %s: %v", e.Row, e.Field, e.Err)
}

// Unwrap returns e.Err.
func (e *RowError) Unwrap() error { return e.Err }

// PartialError is returned when a batch was sent as several statements and one of them
// failed after others had succeeded. The first Done rows were written; if the handle is a
// transaction, they were written in that transaction. Whether the next rows were written
// depends on Err: after a deadline it is unknown, after a duplicate key they were not.
type PartialError struct {
	Done int // rows written for certain, counted from the first
	Err  error
}

// Error says how many rows were written.
func (e *PartialError) Error() string {
	return fmt.Sprintf("the first %d rows were written, then: %v; roll back, or go on behind them", e.Done, e.Err)
}

// Unwrap returns e.Err.
func (e *PartialError) Unwrap() error { return e.Err }
