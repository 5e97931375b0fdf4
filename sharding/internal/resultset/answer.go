// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// MakeEqual is the hint for tables of shards with different columns.
const MakeEqual = "give the tables of all shards the same columns in the same order; shardid ddl drift compares them"

// answer has the rows of several shards. Errors that the merge finds are errors of package
// sharding.
type answer struct {
	merge.Rows
	Types

	end func() // cancels the queries' context

	row   []driver.Value // the row that was read last
	ahead bool           // row was read for its types, and is returned next
	err   error          // the error that reading row returned
}

var _ DescribedRows = (*answer)(nil)

// NewAnswer returns merged rows. end is called when they are closed.
func NewAnswer(merged merge.Rows, types Types, end func()) driver.Rows {
	return &answer{Rows: merged, Types: types, end: end}
}

// ColumnTypeScanType returns the type of a value with SQLite, as SQLite's drivers do.
func (a *answer) ColumnTypeScanType(i int) reflect.Type {
	if a.scans == nil {
		return a.all[i].scan
	}
	if a.row == nil {
		a.row, a.ahead = make([]driver.Value, len(a.Columns())), true
		a.err = a.Rows.Next(a.row)
	}
	return a.scan(i, a.row[i])
}

func (a *answer) Close() error {
	defer a.end()
	return a.Rows.Close()
}

// next returns the row that was read for its types, or the next one.
func (a *answer) next(dest []driver.Value) error {
	if a.ahead {
		a.ahead = false
		copy(dest, a.row)
		return a.err
	}
	a.row = dest
	return a.Rows.Next(dest)
}

func (a *answer) Next(dest []driver.Value) error {
	return Refused(a.next(dest))
}

// Refused returns errors of rows. Those that the merge finds become errors of package sharding.
func Refused(err error) error {
	if err == nil || IsEOF(err) {
		return err
	}
	var memory *merge.MemoryError
	hint := "add a condition on the sharding key, so that one shard answers"
	if errors.Is(err, merge.ErrColumns) {
		hint = "name the columns in the query (GORM: QueryFields), or " + MakeEqual
	}
	for _, of := range []error{merge.ErrValue, merge.ErrOrder, merge.ErrColumns, merge.ErrUnsupported} {
		if errors.Is(err, of) || errors.As(err, &memory) {
			return &sharding.RouteError{Op: "query", Err: errors.Join(sharding.ErrUnmergeable, err), Hint: hint}
		}
	}
	return err
}
