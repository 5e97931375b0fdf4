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
	// ErrArgument: the argument holds no rows: it is no struct, map or slice of
	// them, its elements have different types, or it is empty.
	ErrArgument = errors.New("argument holds no rows; pass a struct pointer, a map, or a non-empty slice of either")

	// ErrNil: a row is nil, or an embedded pointer on the way to a field is.
	ErrNil = errors.New("nil where a value is needed")

	// ErrNotAddressable: an id would have to be stored in a struct that was
	// passed by value. Rows whose keys are set may be passed by value.
	ErrNotAddressable = errors.New("cannot store the id in a struct passed by value; pass a pointer")

	// ErrParameter: a named parameter has no field or no map key.
	ErrParameter = errors.New("no value for the parameter")

	// ErrKeyColumnMissing: rows need an id, but the INSERT does not store it. The
	// statement is never rewritten; add the column and its parameter.
	ErrKeyColumnMissing = errors.New("the INSERT does not store the generated key; add its column and parameter")

	// ErrNoKey: no field of the type carries a keygen tag. Returned by Fill.
	ErrNoKey = errors.New("no field has a keygen tag")

	// ErrTag: a keygen tag cannot be read, or a field's keygen, db and gorm tags
	// disagree.
	ErrTag = errors.New("bad keygen tag")

	// ErrStatement: the statement cannot be sent as it is asked for: a literal is
	// not closed, or several rows meet no VALUES group that could be repeated.
	ErrStatement = errors.New("statement cannot be used")

	// ErrTooManyRows: the rows do not fit into the one statement that NamedQuery
	// sends.
	ErrTooManyRows = errors.New("too many rows for one statement")

	// ErrDriver: the database family is needed and unknown; set
	// Config.DriverName.
	ErrDriver = errors.New("unknown database; set Config.DriverName to mysql, mariadb, sqlite or postgres")

	// ErrType: a tagged field cannot hold the keys of the generator it names.
	ErrType = keyfield.ErrType

	// ErrOverflow: an id is larger than the field it is meant for.
	ErrOverflow = keyfield.ErrOverflow
)

// RowError says which row, and which field of it, an error is about.
type RowError struct {
	Row   int    // index in the argument; 0 for a single row
	Field string // "Order.ID", or a parameter's name; "" when the whole row is meant
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

// PartialError says that a batch sent as several statements failed after some
// of them had succeeded. Rows before Done were written, in the caller's
// transaction if the handle is one. Whether the next rows were written depends
// on Err: a deadline leaves that open, a duplicate key rules it out.
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
