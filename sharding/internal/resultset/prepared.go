// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql"
	"database/sql/driver"
	"io"
	"reflect"
)

// preparedRows are rows of database/sql. They hold their connection until they are closed.
type preparedRows struct {
	*sql.Rows
	names []string
	types []*sql.ColumnType
	into  []any // pointers to row
	row   []any
}

// OfSQL returns rows of database/sql as those of a driver. After an error the caller closes them.
func OfSQL(rows *sql.Rows) (driver.Rows, error) {
	read := &preparedRows{Rows: rows}
	return read, read.describe()
}

func (r *preparedRows) describe() (err error) {
	if r.names, err = r.Rows.Columns(); err != nil {
		return err
	}
	if r.types, err = r.ColumnTypes(); err != nil {
		return err
	}
	r.row, r.into = make([]any, len(r.names)), make([]any, len(r.names))
	for i := range r.row {
		r.into[i] = &r.row[i]
	}
	return nil
}

func (r *preparedRows) Columns() []string { return r.names }

func (r *preparedRows) Next(dest []driver.Value) error {
	if !r.Rows.Next() {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	if err := r.Scan(r.into...); err != nil {
		return err
	}
	for i, v := range r.row {
		dest[i] = v
	}
	return nil
}

// HasNextResultSet is called after the last row. database/sql has then closed the rows unless there
// is another result set.
func (r *preparedRows) HasNextResultSet() bool {
	_, closed := r.Rows.Columns()
	return closed == nil
}

func (r *preparedRows) NextResultSet() error {
	if r.Rows.NextResultSet() {
		return r.describe()
	}
	if err := r.Err(); err != nil {
		return err
	}
	return io.EOF
}

func (r *preparedRows) ColumnTypeScanType(i int) reflect.Type { return r.types[i].ScanType() }

func (r *preparedRows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].DatabaseTypeName() }

func (r *preparedRows) ColumnTypeLength(i int) (length int64, ok bool) { return r.types[i].Length() }

func (r *preparedRows) ColumnTypeNullable(i int) (nullable, ok bool) { return r.types[i].Nullable() }

func (r *preparedRows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return r.types[i].DecimalSize()
}
