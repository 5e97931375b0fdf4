package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
)

// resultSet is what a query returned, held in memory.
type resultSet struct {
	columns []string
	types   []*sql.ColumnType // nil elements for columns that were computed here
	rows    [][]any
}

// readAll reads rows to their end and closes them.
func readAll(rows *sql.Rows) (set *resultSet, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	set = &resultSet{}
	if set.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	for rows.Next() {
		if set.types == nil { // a driver may know them only now
			if set.types, err = rows.ColumnTypes(); err != nil {
				return nil, err
			}
		}
		row := make([]any, len(set.columns))
		places := make([]any, len(row))
		for i := range row {
			places[i] = &row[i]
		}
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		set.rows = append(set.rows, row)
	}
	return set, rows.Err()
}

// open returns the set as rows, which database/sql makes only from a query: so
// one is made to a driver that answers with the set. Closing the pool at once
// leaves the rows as they are.
func (set *resultSet) open(ctx context.Context) (*sql.Rows, error) {
	db := sql.OpenDB(replay{set})
	defer func() { _ = db.Close() }()
	return db.QueryContext(ctx, "") //nolint:sqlclosecheck // the caller's to close
}

// openRow is open for a single row.
func (set *resultSet) openRow(ctx context.Context) *sql.Row {
	db := sql.OpenDB(replay{set})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, "")
}

// replay is a driver with one connection and one answer.
type replay struct{ set *resultSet }

var (
	_ driver.Connector      = replay{}
	_ driver.Driver         = replay{}
	_ driver.Conn           = replay{}
	_ driver.QueryerContext = replay{}
)

var errReplay = errors.New("bug: a replayed result takes no statements")

func (r replay) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r replay) Driver() driver.Driver                        { return r }
func (r replay) Open(string) (driver.Conn, error)             { return r, nil }
func (replay) Prepare(string) (driver.Stmt, error)            { return nil, errReplay }
func (replay) Begin() (driver.Tx, error)                      { return nil, errReplay }
func (replay) Close() error                                   { return nil }

func (r replay) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &replayed{set: r.set}, nil
}

// replayed walks over the set. The column types are those the databases told.
type replayed struct {
	set  *resultSet
	next int
}

var (
	_ driver.RowsColumnTypeScanType         = (*replayed)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*replayed)(nil)
	_ driver.RowsColumnTypeLength           = (*replayed)(nil)
	_ driver.RowsColumnTypeNullable         = (*replayed)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*replayed)(nil)
)

func (r *replayed) Columns() []string { return r.set.columns }
func (r *replayed) Close() error      { return nil }

func (r *replayed) Next(dest []driver.Value) error {
	if r.next == len(r.set.rows) {
		return io.EOF
	}
	for i, v := range r.set.rows[r.next] {
		dest[i] = v
	}
	r.next++
	return nil
}

func (r *replayed) kind(i int) *sql.ColumnType {
	if i < len(r.set.types) && r.set.types[i] != nil {
		return r.set.types[i]
	}
	return nil
}

func (r *replayed) ColumnTypeScanType(i int) reflect.Type {
	if t := r.kind(i); t != nil && t.ScanType() != nil {
		return t.ScanType()
	}
	return reflect.TypeFor[any]()
}

func (r *replayed) ColumnTypeDatabaseTypeName(i int) string {
	if t := r.kind(i); t != nil {
		return t.DatabaseTypeName()
	}
	return ""
}

func (r *replayed) ColumnTypeLength(i int) (int64, bool) {
	if t := r.kind(i); t != nil {
		return t.Length()
	}
	return 0, false
}

func (r *replayed) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t := r.kind(i); t != nil {
		return t.Nullable()
	}
	return false, false
}

func (r *replayed) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t := r.kind(i); t != nil {
		return t.DecimalSize()
	}
	return 0, 0, false
}
