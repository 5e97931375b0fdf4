// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"math"
	"strconv"
)

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

// textRows are rows of a prepared statement with the values that the driver would have read from a text.
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
