package shardsql

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// columnType is what a driver tells of a column.
type columnType struct {
	scan             reflect.Type
	name             string
	length           int64
	precision, scale int64

	nullable, tellsLength, tellsNullable, tellsPrecision bool
}

// columnTypes are those of an answer of several shards. With SQLite each value has a type
// of its own, and the column that of the first row: it would not fit other shards' rows.
type columnTypes struct {
	all     []columnType
	byValue bool
}

// read takes what the driver tells of the columns of one shard's rows.
func (t *columnTypes) read(r driver.Rows) {
	of := &rows{Rows: r}
	for i := range r.Columns() {
		c := columnType{scan: reflect.TypeFor[any](), name: of.ColumnTypeDatabaseTypeName(i)}
		if !t.byValue {
			c.scan = of.ColumnTypeScanType(i)
		}
		c.length, c.tellsLength = of.ColumnTypeLength(i)
		c.nullable, c.tellsNullable = of.ColumnTypeNullable(i)
		c.precision, c.scale, c.tellsPrecision = of.ColumnTypePrecisionScale(i)
		t.all = append(t.all, c)
	}
}

// rows are those of one inner connection, handed through. What the inner driver
// does not tell of columns, it answers as database/sql does without it.
type rows struct {
	driver.Rows
	inner     inner
	statement driver.Stmt // closed after the rows, where there is one
	arguments arguments   // of the query: its driver may keep them
}

var (
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

// Close closes the rows and gives the connection back.
func (r *rows) Close() error {
	err := r.Rows.Close()
	if r.statement != nil {
		err = both(err, r.statement.Close())
	}
	return both(err, r.inner.release())
}

func (r *rows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

func (r *rows) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return n.NextResultSet()
	}
	return io.EOF
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeLength); is {
		return c.ColumnTypeLength(i)
	}
	return 0, false
}

func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypeNullable); is {
		return c.ColumnTypeNullable(i)
	}
	return false, false
}

func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if c, is := r.Rows.(driver.RowsColumnTypePrecisionScale); is {
		return c.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}

// heldRows are rows in memory.
type heldRows struct {
	columns []string
	rows    [][]driver.Value
}

// held reads rows into memory and closes them. memory is how many bytes are left.
func held(from merge.Rows, memory *int) (_ *heldRows, err error) {
	defer func() { err = both(err, from.Close()) }()
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
			case []byte: // the driver uses it again
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

// valueSize is what a value takes besides its bytes.
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
