// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"cmp"
	"database/sql/driver"
	"reflect"
	"slices"
)

// columnType is a driver's description of a column.
type columnType struct {
	scan             reflect.Type
	name             string
	length           int64
	precision, scale int64

	nullable, tellsLength, tellsNullable, tellsPrecision bool
}

// Types describe the columns of a result of several shards. They come from the driver's rows
// of the first shard. With SQLite, where each value has its own type, they also have the types of
// the first row of each shard.
type Types struct {
	all   []columnType
	scans [][]reflect.Type // only for SQLite, and for rows that a write has returned
}

// NewTypes returns the types of a result of some shards. byValue is for a driver that has a type for each value.
func NewTypes(shards int, byValue bool) (t Types) {
	if byValue {
		t.scans = make([][]reflect.Type, shards)
	}
	return t
}

// Read stores the driver's description of the columns of a shard's rows. Several goroutines may call it, each for
// another place.
func (t *Types) Read(place int, r driver.Rows) {
	of := Described{r}
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

// ColumnTypeDatabaseTypeName implements [driver.RowsColumnTypeDatabaseTypeName].
func (t *Types) ColumnTypeDatabaseTypeName(i int) string { return t.all[i].name }

// ColumnTypeLength implements [driver.RowsColumnTypeLength].
func (t *Types) ColumnTypeLength(i int) (int64, bool) {
	return t.all[i].length, t.all[i].tellsLength
}

// ColumnTypeNullable implements [driver.RowsColumnTypeNullable].
func (t *Types) ColumnTypeNullable(i int) (nullable, ok bool) {
	return t.all[i].nullable, t.all[i].tellsNullable
}

// ColumnTypePrecisionScale implements [driver.RowsColumnTypePrecisionScale].
func (t *Types) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return t.all[i].precision, t.all[i].scale, t.all[i].tellsPrecision
}

// scan returns the scan type of a column for a value. It is a type that the driver reported for
// such a value, because a driver may scan a time as a text. A computed number may be of a type that no shard's own was.
func (t *Types) scan(i int, v driver.Value) reflect.Type {
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

// TypesOfCount describes the column of COUNT(*), as the driver of a dialect does.
func TypesOfCount(dialect string) Types {
	one := columnType{scan: reflect.TypeFor[int64]()}
	switch dialect {
	case "mysql":
		one.name, one.tellsNullable = "BIGINT", true
	case "postgres":
		one.name = "INT8"
	case "sqlite": // its driver takes every column for nullable
		one.nullable, one.tellsNullable = true, true
		return Types{all: []columnType{one}, scans: [][]reflect.Type{{one.scan}}}
	}
	return Types{all: []columnType{one}}
}

// computable are the types of SQLite's numbers.
var computable = []reflect.Type{reflect.TypeFor[int64](), reflect.TypeFor[float64]()}
