// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// columnType is a driver's description of a column.
type columnType struct {
	scan             reflect.Type
	name             string
	length           int64
	precision, scale int64

	nullable, tellsLength, tellsNullable, tellsPrecision bool
}

// labelled are rows whose columns have the names that one table would have given them.
type labelled struct {
	described

	logical *strings.Replacer
}

func (l labelled) Columns() []string {
	columns := slices.Clone(l.Rows.Columns())
	for i, name := range columns {
		columns[i] = l.logical.Replace(name)
	}
	return columns
}

// columnTypes describe the columns of a result of several shards. They come from the driver's rows
// of the first shard. With SQLite, where each value has its own type, they also have the types of
// the first row of each shard.
type columnTypes struct {
	all   []columnType
	scans [][]reflect.Type // only for SQLite, and for rows that a write has returned
}

// read stores the driver's description of the columns of a shard's rows.
func (t *columnTypes) read(place int, r driver.Rows) {
	of := described{r}
	if t.scans != nil {
		for i := range r.Columns() {
			t.scans[place] = append(t.scans[place], of.ColumnTypeScanType(i))
		}
	}
	if place > 0 {
		return
	}
	for i := range r.Columns() {
		c := columnType{scan: of.ColumnTypeScanType(i), name: of.ColumnTypeDatabaseTypeName(i)}
		c.length, c.tellsLength = of.ColumnTypeLength(i)
		c.nullable, c.tellsNullable = of.ColumnTypeNullable(i)
		c.precision, c.scale, c.tellsPrecision = of.ColumnTypePrecisionScale(i)
		t.all = append(t.all, c)
	}
}

func (t *columnTypes) ColumnTypeDatabaseTypeName(i int) string { return t.all[i].name }
func (t *columnTypes) ColumnTypeLength(i int) (int64, bool) {
	return t.all[i].length, t.all[i].tellsLength
}
func (t *columnTypes) ColumnTypeNullable(i int) (nullable, ok bool) {
	return t.all[i].nullable, t.all[i].tellsNullable
}
func (t *columnTypes) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return t.all[i].precision, t.all[i].scale, t.all[i].tellsPrecision
}

// scan returns the scan type of a column for a value. It is a type that the driver reported for
// such a value, because a driver may scan a time as a text. A computed number may be of a type that no shard's own was.
func (t *columnTypes) scan(i int, v driver.Value) reflect.Type {
	of, other := reflect.TypeOf(v), reflect.Type(nil)
	for _, said := range t.scans {
		if said[i] == of {
			return cmp.Or(of, reflect.TypeFor[any]())
		}
		other = cmp.Or(other, said[i])
	}
	if slices.Contains(computable, of) && slices.Contains(computable, other) {
		return of
	}
	return cmp.Or(other, of, reflect.TypeFor[any]())
}

// typesOfCount describes the column of COUNT(*).
func typesOfCount(dialect string) columnTypes {
	one := columnType{scan: reflect.TypeFor[int64]()}
	switch dialect {
	case "mysql":
		one.name, one.tellsNullable = "BIGINT", true
	case "postgres":
		one.name = "INT8"
	case "sqlite": // its driver takes every column for nullable
		one.nullable, one.tellsNullable = true, true
		return columnTypes{all: []columnType{one}, scans: [][]reflect.Type{{one.scan}}}
	}
	return columnTypes{all: []columnType{one}}
}

// computable are the types of SQLite's numbers.
var computable = []reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[float64]()}

// described are rows of a driver. For optional methods that the driver lacks, they return what
// database/sql returns without them.
type described struct{ driver.Rows }

// rows are the rows of one inner connection, passed on.
type rows struct {
	described
	inner inner
	call  call[driver.Rows]
	tx    *transaction // in which they are read, or nil
}

var (
	_ driver.RowsNextResultSet = (*rows)(nil)
	_ describedRows            = (*rows)(nil)
)

// Close closes the rows and returns the connection to its pool.
func (r *rows) Close() error {
	in := r.inner
	if in.conn == nil {
		return nil // closed before
	}
	err := r.Rows.Close()
	r.tx.recordError(err)
	if r.call.own != nil {
		err = joinErrors(err, r.call.own.Close())
	}
	in.memory.keepRows(r)
	return joinErrors(err, in.release())
}

// Next returns the next row. Its error may be that of a deadlock, because servers send rows while they lock them.
func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil && r.tx != nil && !isEOF(err) {
		r.tx.recordError(err)
	}
	return err
}

func (r described) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

func (r described) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return n.NextResultSet()
	}
	return io.EOF
}

func (r described) ColumnTypeScanType(i int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

func (r described) ColumnTypeDatabaseTypeName(i int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

func (r described) ColumnTypeLength(i int) (length int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeLength); is {
		return c.ColumnTypeLength(i)
	}
	return 0, false
}

func (r described) ColumnTypeNullable(i int) (nullable, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeNullable); is {
		return c.ColumnTypeNullable(i)
	}
	return false, false
}

func (r described) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypePrecisionScale); is {
		return c.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}

// describedRows are rows with the optional methods about columns.
type describedRows interface {
	driver.RowsColumnTypeScanType
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
}

// heldRows are rows in memory.
type heldRows struct {
	columnTypes // of rows that a write has returned

	columns []string
	rows    [][]driver.Value
}

// ColumnTypeScanType is that of the next row, which matters with SQLite.
func (h *heldRows) ColumnTypeScanType(i int) reflect.Type {
	if len(h.rows) == 0 {
		return h.scan(i, nil)
	}
	return h.scan(i, h.rows[0][i])
}

// held reads rows into memory and closes them. memory is the number of bytes left.
func held(from merge.Rows, memory *int) (_ *heldRows, err error) {
	defer func() { err = joinErrors(err, from.Close()) }()
	h := &heldRows{columns: from.Columns()}
	for {
		row := make([]driver.Value, len(h.columns))
		switch err := from.Next(row); {
		case isEOF(err):
			return h, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			*memory -= valueSize
			switch v := v.(type) {
			case []byte: // the driver reuses it
				row[i] = bytes.Clone(v)
				*memory -= len(v)
			case string:
				*memory -= len(v)
			}
		}
		if *memory < 0 {
			return nil, &merge.MemoryError{Limit: answerMemory}
		}
		h.rows = append(h.rows, row)
	}
}

// valueSize is the size of a value without its bytes.
const valueSize = 32

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func (h *heldRows) Columns() []string { return h.columns }

func (h *heldRows) Next(dest []driver.Value) error {
	if len(h.rows) == 0 {
		return io.EOF
	}
	copy(dest, h.rows[0])
	h.rows = h.rows[1:]
	return nil
}

func (h *heldRows) Close() error { return nil }

// makeEqual is the hint for tables of shards with different columns.
const makeEqual = "give the tables of all shards the same columns in the same order; shardid ddl drift compares them"

// answer has the rows of several shards. Errors that the merge finds are errors of package
// sharding.
type answer struct {
	merge.Rows
	columnTypes

	end func() // cancels the queries' context

	row   []driver.Value // the row that was read last
	ahead bool           // row was read for its types, and is returned next
	err   error          // the error that reading row returned
}

var (
	_ describedRows = (*answer)(nil)
	_ describedRows = (*heldRows)(nil)
)

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
	err := a.next(dest)
	if err == nil || isEOF(err) {
		return err
	}
	var memory *merge.MemoryError
	hint := "add a condition on the sharding key, so that one shard answers"
	if errors.Is(err, merge.ErrColumns) {
		hint = "name the columns in the query, or " + makeEqual
	}
	for _, of := range []error{merge.ErrValue, merge.ErrOrder, merge.ErrColumns, merge.ErrUnsupported} {
		if errors.Is(err, of) || errors.As(err, &memory) {
			return &sharding.RouteError{Op: "query", Err: errors.Join(sharding.ErrUnmergeable, err), Hint: hint}
		}
	}
	return err
}

// inBinary converts the values of a row that a driver of MySQL and MariaDB has read as text to those that it reads
// in the binary protocol.
func inBinary(row []driver.Value) {
	for i, v := range row {
		n, isUnsigned := v.(uint64)
		switch {
		case !isUnsigned:
		case n <= math.MaxInt64:
			row[i] = int64(n)
		default:
			row[i] = strconv.AppendUint(nil, n, 10)
		}
	}
}

// textRows are rows of a prepared statement with the values that the driver would have read from a text.
type textRows struct{ described }

// Next is the other direction of inBinary.
func (r textRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	for i, v := range row {
		if err != nil || v == nil || r.ColumnTypeDatabaseTypeName(i) != "UNSIGNED BIGINT" {
			continue
		}
		switch v := v.(type) {
		case int64:
			row[i] = uint64(v) // which the driver had read
		case []byte:
			row[i], err = strconv.ParseUint(string(v), 10, 64)
		}
	}
	return err
}
