// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"database/sql"
	"database/sql/driver"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// model is the Go struct of a table that is known only at run time. For orders, a
// programmer would write it as
//
//	type OrderItem struct {
//		ID      int64  `gorm:"column:id;primaryKey" db:"id" keygen:"order_items"`
//		OrderID int64  `gorm:"column:order_id" db:"order_id"`
//		SKU     string `gorm:"column:sku" db:"sku"`
//		…
//	}
type model struct {
	table  *table
	typ    reflect.Type
	slices reflect.Type
}

func newModel(t *table) *model {
	var fields []reflect.StructField
	for i, c := range t.columns {
		f := reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeFor[cell]()}
		settings := "column:" + c.name
		tags := " db:" + strconv.Quote(c.name)
		switch i {
		case t.keyAt:
			f.Type = reflect.TypeFor[int64]()
			settings += ";primaryKey"
			tags += " keygen:" + strconv.Quote(t.name)
		case t.byAt:
			f.Type = reflect.TypeFor[int64]()
		}
		f.Tag = reflect.StructTag("gorm:" + strconv.Quote(settings) + tags)
		fields = append(fields, f)
	}
	typ := reflect.StructOf(fields)
	return &model{table: t, typ: typ, slices: reflect.SliceOf(typ)}
}

// row returns a pointer to a struct with the values of a stored row, and no key.
func (m *model) row(values []any) reflect.Value {
	p := reflect.New(m.typ)
	for i, v := range values {
		switch i {
		case m.table.keyAt:
		case m.table.byAt:
			p.Elem().Field(i).SetInt(integer(v))
		default:
			p.Elem().Field(i).Set(reflect.ValueOf(cell{v}))
		}
	}
	return p
}

// children returns a pointer to a slice of structs with the values of rows, no
// keys, and this parent.
func (m *model) children(rows []sample, parent int64) reflect.Value {
	list := reflect.MakeSlice(m.slices, 0, len(rows))
	for _, r := range rows {
		row := m.row(r.stored).Elem()
		row.Field(m.table.byAt).SetInt(parent)
		list = reflect.Append(list, row)
	}
	p := reflect.New(m.slices)
	p.Elem().Set(list)
	return p
}

func (m *model) key(row reflect.Value) int64 { return row.Field(m.table.keyAt).Int() }

// content lists the columns that are neither the key nor the sharding key, with their
// values in a row.
func (m *model) content(stored []any) (columns []string, values []any) {
	for i, c := range m.table.columns {
		if i != m.table.keyAt && i != m.table.byAt {
			columns, values = append(columns, c.name), append(values, stored[i])
		}
	}
	return columns, values
}

// values returns a struct as a row of values.
func (m *model) values(row reflect.Value) []any {
	values := make([]any, row.NumField())
	for i := range values {
		switch v := row.Field(i).Interface().(type) {
		case cell:
			values[i] = v.value
		default:
			values[i] = v
		}
	}
	return values
}

// cell is a value of any type that a SQLite column may hold.
type cell struct{ value any }

var (
	_ driver.Valuer = cell{}
	_ sql.Scanner   = (*cell)(nil)
)

// Value returns the value.
func (c cell) Value() (driver.Value, error) { return c.value, nil }

// Scan keeps the value.
func (c *cell) Scan(v any) error {
	if b, ok := v.([]byte); ok {
		v = slices.Clone(b)
	}
	c.value = v
	return nil
}

// GormDataType tells GORM that the column has a type, without naming it.
func (cell) GormDataType() string { return "any" }

// sameValues compares rows as a driver returns them to an application, where the
// text of a DATETIME column is a time.
func sameValues(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool {
		xt, ok := x.(time.Time)
		if !ok {
			_, time := y.(time.Time)
			return !time && sameRow([]any{x}, []any{y})
		}
		yt, ok := y.(time.Time)
		return ok && xt.Equal(yt)
	})
}
