// SPDX-License-Identifier: Apache-2.0

package resultset_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/resultset"
	_ "modernc.org/sqlite"
)

// rows are rows of a driver that describes its columns by their first values, as SQLite's does.
type rows struct {
	names  []string
	values [][]driver.Value
	typed  string
	err    error // after the last row, instead of io.EOF
}

func (r *rows) Columns() []string { return r.names }

func (r *rows) Close() error { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.values) == 0 {
		if r.err != nil {
			return r.err
		}
		return io.EOF
	}
	copy(dest, r.values[0])
	r.values = r.values[1:]
	return nil
}

func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if len(r.values) == 0 || r.values[0][i] == nil {
		return reflect.TypeFor[any]()
	}
	return reflect.TypeOf(r.values[0][i])
}

func (r *rows) ColumnTypeDatabaseTypeName(int) string { return r.typed }

// bare are rows of a driver without optional methods.
type bare struct{ driver.Rows }

func next(t *testing.T, r driver.Rows) []driver.Value {
	t.Helper()
	row := make([]driver.Value, len(r.Columns()))
	if err := r.Next(row); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestADriverWithoutOptionalMethodsIsDescribedAsByDatabaseSQL(t *testing.T) {
	r := resultset.Described{Rows: bare{&rows{names: []string{"id"}}}}
	if of := r.ColumnTypeScanType(0); of != reflect.TypeFor[any]() {
		t.Error(of)
	}
	if name := r.ColumnTypeDatabaseTypeName(0); name != "" {
		t.Error(name)
	}
	_, length := r.ColumnTypeLength(0)
	_, nullable := r.ColumnTypeNullable(0)
	_, _, precision := r.ColumnTypePrecisionScale(0)
	if length || nullable || precision || r.HasNextResultSet() || !errors.Is(r.NextResultSet(), io.EOF) {
		t.Errorf("%t, %t, %t", length, nullable, precision)
	}
}

func TestTheTypeOfAValueIsOneThatADriverReportedForIt(t *testing.T) {
	first := &rows{names: []string{"paid"}, values: [][]driver.Value{{int64(1)}}, typed: "NUMERIC"}
	second := &rows{names: []string{"paid"}, values: [][]driver.Value{{"many"}}}
	types := resultset.NewTypes(2, true)
	types.Read(0, first)
	types.Read(1, second)
	merged := &rows{names: []string{"paid"}, values: [][]driver.Value{{"many"}, {int64(1)}, {2.5}, {nil}}}
	ended := 0
	r := resultset.NewAnswer(merged, types, func() { ended++ })
	typed := r.(driver.RowsColumnTypeScanType)
	for _, want := range []struct {
		of    reflect.Type
		value driver.Value
	}{{reflect.TypeFor[string](), "many"}, {reflect.TypeFor[int64](), int64(1)}, {reflect.TypeFor[float64](), 2.5}} {
		for range 2 { // to ask for a type reads no row twice
			if of := typed.ColumnTypeScanType(0); want.value == "many" && of != want.of {
				t.Errorf("%v of %v", of, want.value)
			}
		}
		if row := next(t, r); row[0] != want.value {
			t.Errorf("%v, want %v", row, want.value)
		}
		if of := typed.ColumnTypeScanType(0); of != want.of {
			t.Errorf("%v of %v", of, want.value)
		}
	}
	if name := r.(resultset.DescribedRows).ColumnTypeDatabaseTypeName(0); name != "NUMERIC" {
		t.Errorf("%s is not the first shard's", name)
	}
	if err := r.Close(); err != nil || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
}

func TestErrorsOfTheMergeAreRefusalsAndOthersAreTheDrivers(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		err   error
		hint  string
		other bool
	}{
		{err: merge.ErrColumns, hint: "same columns"},
		{err: merge.ErrOrder, hint: "sharding key"},
		{err: &merge.MemoryError{Limit: 5}, hint: "sharding key"},
		{err: broken, other: true},
	} {
		r := resultset.NewAnswer(&rows{names: []string{"id"}, err: c.err}, resultset.NewTypes(1, false), func() {})
		err := r.Next(make([]driver.Value, 1))
		var refusal *sharding.RouteError
		if !errors.Is(err, c.err) || errors.As(err, &refusal) == c.other || !c.other && (!errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(refusal.Hint, c.hint)) {
			t.Errorf("%v becomes %v", c.err, err)
		}
	}
}

func TestRowsOfAWriteHaveTheTypesOfTheirDriver(t *testing.T) {
	memory := merge.NewMemory(resultset.MostMemory)
	one, err := resultset.HoldWithTypes(&rows{names: []string{"n"}, values: [][]driver.Value{{int64(1)}}, typed: "INT"}, memory)
	if err != nil {
		t.Fatal(err)
	}
	other, err := resultset.HoldWithTypes(&rows{names: []string{"n"}, values: [][]driver.Value{{"x"}}}, memory)
	if err != nil {
		t.Fatal(err)
	}
	one.Rows = slices.Concat(one.Rows, other.Rows)
	one.AddTypes(other)
	for _, want := range []reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[string]()} {
		if of := one.ColumnTypeScanType(0); of != want {
			t.Errorf("%v, want %v", of, want)
		}
		next(t, one)
	}
	if name := one.ColumnTypeDatabaseTypeName(0); name != "INT" {
		t.Error(name)
	}
}

func TestColumnsHaveTheNamesOfOneTable(t *testing.T) {
	r := resultset.Relabel(&rows{names: []string{"orders_1.id", "note"}, typed: "TEXT"}, strings.NewReplacer("orders_1", "orders"))
	if names := r.Columns(); !slices.Equal(names, []string{"orders.id", "note"}) {
		t.Error(names)
	}
	if name := r.(resultset.DescribedRows).ColumnTypeDatabaseTypeName(0); name != "TEXT" {
		t.Errorf("the type is %q", name)
	}
}

func TestUnsignedNumbersHaveTheFormOfTheirProtocol(t *testing.T) {
	row := []driver.Value{uint64(7), uint64(1 << 63), int64(-1), nil, []byte("9")}
	resultset.AsBinary(row)
	if want := []driver.Value{int64(7), []byte("9223372036854775808"), int64(-1), nil, []byte("9")}; !reflect.DeepEqual(row, want) {
		t.Errorf("%v", row)
	}
	text := resultset.AsText(&rows{names: []string{"n"}, values: [][]driver.Value{{int64(7)}, {[]byte("9223372036854775808")}, {nil}, {[]byte("x")}}, typed: "UNSIGNED BIGINT"})
	for _, want := range []driver.Value{uint64(7), uint64(1 << 63), nil} {
		if row := next(t, text); row[0] != want {
			t.Errorf("%v, want %v", row, want)
		}
	}
	if err := text.Next(make([]driver.Value, 1)); err == nil {
		t.Error("x is a number")
	}
	signed := resultset.AsText(&rows{names: []string{"n"}, values: [][]driver.Value{{int64(7)}}, typed: "BIGINT"})
	if row := next(t, signed); row[0] != int64(7) {
		t.Errorf("%v", row)
	}
}

func TestRowsOfAPreparedStatementAreThoseOfADriver(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	asked, err := db.QueryContext(t.Context(), "SELECT 1 AS id, 'x' AS note UNION ALL SELECT 2, NULL") //nolint:rowserrcheck // the last Next returns it
	if err != nil {
		t.Fatal(err)
	}
	r, err := resultset.OfSQL(asked)
	if err != nil {
		t.Fatal(err)
	}
	if names := r.Columns(); !slices.Equal(names, []string{"id", "note"}) {
		t.Error(names)
	}
	for _, want := range [][]driver.Value{{int64(1), "x"}, {int64(2), nil}} {
		if row := next(t, r); !slices.Equal(row, want) {
			t.Errorf("%v, want %v", row, want)
		}
	}
	if err := r.Next(make([]driver.Value, 2)); !resultset.IsEOF(err) || r.(driver.RowsNextResultSet).HasNextResultSet() {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestCountHasTheTypeOfTheServersDriver(t *testing.T) {
	for dialect, want := range map[string]string{"mysql": "BIGINT", "postgres": "INT8", "sqlite": ""} {
		types := resultset.TypesOfCount(dialect)
		if name := types.ColumnTypeDatabaseTypeName(0); name != want {
			t.Errorf("%s: %q, want %q", dialect, name, want)
		}
	}
}
