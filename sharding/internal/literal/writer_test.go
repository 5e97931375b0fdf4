// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"database/sql/driver"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/literal"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// column is a result whose driver names a type.
type column struct {
	driver.Rows
	name  string
	scale int64 // -1 if the driver does not tell it
}

func (c column) ColumnTypeDatabaseTypeName(int) string { return c.name }

func (c column) ColumnTypePrecisionScale(int) (precision, scale int64, ok bool) {
	return 65, c.scale, c.scale >= 0
}

func writer(engine, typeName string, of plan.Subquery) *literal.Writer {
	return literal.NewWriter(engine, resultset.Described{Rows: column{name: typeName, scale: -1}}, of)
}

func TestALiteralHasTheTypeOfItsColumn(t *testing.T) {
	for _, c := range []struct {
		engine, typeName string
		value            driver.Value
		want             string
	}{
		{"postgres", "INT8", int64(5), "CAST(5 AS INT8)"},
		{"postgres", "numeric", "2.50", "2.50"},
		{"postgres", "NUMERIC", "2", "CAST('2' AS NUMERIC)"},
		{"postgres", "FLOAT8", 2.5, "CAST('2.5e+00' AS FLOAT8)"},
		{"postgres", "INT8", nil, "CAST(NULL AS INT8)"},
		{"mysql", "BIGINT", int64(5), "SELECT v FROM (SELECT CAST(5 AS SIGNED) AS v) AS t"},
		{"mysql", "UNSIGNED BIGINT", uint64(math.MaxUint64), "SELECT v FROM (SELECT CAST(18446744073709551615 AS UNSIGNED) AS v) AS t"},
		{"mysql", "DECIMAL", []byte("2"), "SELECT v FROM (SELECT 2. AS v) AS t"},
		{"mysql", "DOUBLE", "2.5", "SELECT v FROM (SELECT 2.5e0 AS v) AS t"},
		{"mysql", "DOUBLE", nil, "SELECT v FROM (SELECT NULL + 0E0 AS v) AS t"},
		{"sqlite", "INTEGER", int64(5), "CAST(5 AS INTEGER)"},
		{"sqlite", "REAL", 2.5, "CAST(2.5e+00 AS REAL)"},
	} {
		if got := writer(c.engine, c.typeName, plan.Subquery{}).Literals([]driver.Value{c.value}); got != c.want {
			t.Errorf("%s %s %v: %s, want %s", c.engine, c.typeName, c.value, got, c.want)
		}
	}
}

func TestAValueThatNoLiteralStandsForIsNotWritten(t *testing.T) {
	for _, c := range []struct {
		engine, typeName string
		of               plan.Subquery
		value            driver.Value
	}{
		{"mysql", "VARCHAR", plan.Subquery{}, "x"},
		{"mysql", "FLOAT", plan.Subquery{}, float32(2.5)},
		{"postgres", "FLOAT4", plan.Subquery{}, 2.5},
		{"postgres", "FLOAT8", plan.Subquery{}, math.NaN()},
		{"postgres", "NUMERIC", plan.Subquery{}, "NaN"},
		{"sqlite", "", plan.Subquery{}, int64(5)}, // a column without a type
		{"sqlite", "INTEGER", plan.Subquery{}, "five"},
		{"mysql", "DOUBLE", plan.Subquery{List: true}, "2.5"},
		{"mysql", "BIGINT", plan.Subquery{List: true, Compared: true}, int64(1 << 60)},
	} {
		if got := writer(c.engine, c.typeName, c.of).Literals([]driver.Value{c.value}); got != "" {
			t.Errorf("%s %s %v: %s", c.engine, c.typeName, c.value, got)
		}
	}
}

func TestAListHasEachValueOnce(t *testing.T) {
	values := []driver.Value{int64(7), int64(5), int64(7), nil}
	list := plan.Subquery{List: true, Compared: true, Exact: true}
	for engine, want := range map[string]string{
		"mysql":    "5, 7, NULL",
		"postgres": "VALUES (5), (7), (CAST(NULL AS INT8))",
		"sqlite":   "SELECT CAST(column1 AS NUMERIC) FROM (VALUES (5), (7), (NULL))",
	} {
		typeName := map[string]string{"postgres": "INT8", "sqlite": "INTEGER", "mysql": "BIGINT"}[engine]
		if got := writer(engine, typeName, list).Literals(values); got != want {
			t.Errorf("%s: %s, want %s", engine, got, want)
		}
	}
}

func TestAnEmptyListKeepsItsType(t *testing.T) {
	list := plan.Subquery{List: true}
	if got := writer("postgres", "INT4", list).Literals(nil); got != "SELECT CAST(NULL AS INT4) WHERE FALSE" {
		t.Error(got)
	}
	if got := writer("mysql", "INT", list).Literals(nil); got != "SELECT NULL HAVING FALSE" {
		t.Error(got)
	}
	if got, args := writer("postgres", "UUID", list).Arguments(nil); got != "SELECT CAST(NULL AS UUID) WHERE FALSE" || args != nil {
		t.Error(got, args)
	}
}

func TestAScalarOfNoRowIsNullAndOneOfSeveralIsNotWritten(t *testing.T) {
	w := writer("postgres", "INT4", plan.Subquery{})
	if got := w.Literals(nil); got != "CAST(NULL AS INT4)" {
		t.Error(got)
	}
	if got := w.Literals([]driver.Value{int64(1), int64(2)}); got != "" {
		t.Error(got)
	}
	if got, _ := w.Arguments([]driver.Value{"a", "b"}); got != "" {
		t.Error(got)
	}
}

func TestTextsBytesAndTimesAreArguments(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		engine, typeName string
		of               plan.Subquery
		values, args     []driver.Value
		text             string
	}{
		{"mysql", "VARCHAR", plan.Subquery{List: true}, []driver.Value{[]byte("a"), "a", "b", nil}, []driver.Value{"a", "b"}, "?, ?, NULL"},
		{"mysql", "VARBINARY", plan.Subquery{Collation: catalog.AsBytes}, []driver.Value{[]byte("a")}, []driver.Value{[]byte("a")}, "?"},
		{"mysql", "DATETIME", plan.Subquery{}, []driver.Value{noon.Add(time.Microsecond)}, []driver.Value{"2026-03-04 12:00:00.000001"}, "?"}, // the driver may truncate a time
		{"mysql", "DATE", plan.Subquery{}, []driver.Value{noon}, []driver.Value{"2026-03-04"}, "?"},
		{"mysql", "DATE", plan.Subquery{List: true}, []driver.Value{noon, time.Time{}}, nil, ""},                                     // 0000-00-00 or 0001-01-01
		{"postgres", "BYTEA", plan.Subquery{Collation: catalog.AsBytes}, []driver.Value{[]byte(nil)}, []driver.Value{[]byte{}}, "?"}, // lib/pq would send NULL
		{"postgres", "DATE", plan.Subquery{}, []driver.Value{time.Time{}}, []driver.Value{time.Time{}}, "?"},
		{"mysql", "DATETIME", plan.Subquery{}, []driver.Value{noon.In(time.FixedZone("x", 3600))}, nil, ""},
		{"postgres", "TIME", plan.Subquery{}, []driver.Value{time.Date(0, 1, 2, 0, 0, 0, 0, time.UTC)}, []driver.Value{"24:00:00"}, "?"},
		{"postgres", "TEXT", plan.Subquery{}, nil, nil, "NULL"},
		{"sqlite", "TEXT", plan.Subquery{}, []driver.Value{2.5}, nil, ""},
	} {
		text, args := writer(c.engine, c.typeName, c.of).Arguments(c.values)
		if text != c.text || len(args) != len(c.args) || len(args) > 0 && !reflect.DeepEqual(args, c.args) {
			t.Errorf("%s %s %v: %s, %v", c.engine, c.typeName, c.values, text, args)
		}
	}
}

func TestANumberWithoutALiteralOfItsTypeIsNarrow(t *testing.T) {
	for _, c := range []struct {
		typeName       string
		of             plan.Subquery
		mysql, onMaria bool
	}{
		{"BIGINT", plan.Subquery{}, false, false},
		{"SMALLINT", plan.Subquery{}, false, true},
		{"SMALLINT", plan.Subquery{Compared: true}, false, false},
		{"SMALLINT", plan.Subquery{Constant: true}, false, false},
		{"UNSIGNED TINYINT", plan.Subquery{}, true, true}, // the driver returns an int64, and a uint64 for a wider one
		{"UNSIGNED INT", plan.Subquery{Constant: true}, true, true},
		{"UNSIGNED INT", plan.Subquery{Compared: true}, false, false},
		{"UNSIGNED BIGINT", plan.Subquery{}, false, false},
	} {
		w := writer("mysql", c.typeName, c.of)
		if w.IsNarrow(false) != c.mysql || w.IsNarrow(true) != c.onMaria {
			t.Errorf("%s %+v: %v, %v", c.typeName, c.of, w.IsNarrow(false), w.IsNarrow(true))
		}
	}
}

func TestAFloatOfFixedDigitsIsNotWritten(t *testing.T) {
	w := literal.NewWriter("mysql", resultset.Described{Rows: column{name: "DOUBLE", scale: 2}}, plan.Subquery{})
	if got := w.Literals([]driver.Value{"2.50"}); got != "" {
		t.Error(got)
	}
}
