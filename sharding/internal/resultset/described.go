// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Described are rows of a driver. For optional methods that the driver lacks, they return what
// database/sql returns without them.
type Described struct{ driver.Rows }

// HasNextResultSet implements [driver.RowsNextResultSet].
func (r Described) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

// NextResultSet implements [driver.RowsNextResultSet].
func (r Described) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return n.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeScanType implements [driver.RowsColumnTypeScanType].
func (r Described) ColumnTypeScanType(i int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements [driver.RowsColumnTypeDatabaseTypeName].
func (r Described) ColumnTypeDatabaseTypeName(i int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength implements [driver.RowsColumnTypeLength].
func (r Described) ColumnTypeLength(i int) (length int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeLength); is {
		return c.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable implements [driver.RowsColumnTypeNullable].
func (r Described) ColumnTypeNullable(i int) (nullable, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeNullable); is {
		return c.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale implements [driver.RowsColumnTypePrecisionScale].
func (r Described) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypePrecisionScale); is {
		return c.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}

// DescribedRows are rows with the optional methods about columns.
type DescribedRows interface {
	driver.RowsColumnTypeScanType
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
}

type labelled struct {
	Described

	logical *strings.Replacer
}

// Columns implements [driver.Rows].
func (l labelled) Columns() []string {
	columns := slices.Clone(l.Rows.Columns())
	for i, name := range columns {
		columns[i] = l.logical.Replace(name)
	}
	return columns
}

// Relabel returns rows whose columns have the names that one table would have given them.
func Relabel(r driver.Rows, logical *strings.Replacer) driver.Rows {
	return labelled{Described{r}, logical}
}

// AsBinary converts the values of a row that a driver of MySQL and MariaDB has read as text to those that it reads
// in the binary protocol.
func AsBinary(row []driver.Value) {
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

type textRows struct{ Described }

// AsText returns rows of a prepared statement with the values that the driver would have read from a text.
func AsText(r driver.Rows) driver.Rows { return textRows{Described{r}} }

// Next is the other direction of AsBinary.
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
