package gormplugin

import (
	"database/sql/driver"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// bound reports whether gorm sends v as one bind variable and nothing else:
// then the database compares with the very value that is routed by. Expressions
// and subqueries, which gorm writes out as text, are not bound.
func bound(v any) bool {
	switch v.(type) {
	case int64, int, string, uint64, uint, int32, uint32, bool, float64, []byte, time.Time:
		return true
	case nil, gorm.Valuer, clause.Expression, clause.Column, clause.Table:
		return false
	case driver.Valuer:
		return true
	}
	return scalar(reflect.TypeOf(v))
}

func scalar(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	}
	return false
}

// listed returns the elements that clause.Eq writes as IN (…): gorm does so for
// these types and no others.
func listed(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case []string, []int, []int32, []int64, []uint, []uint32, []uint64:
		return elements(v), true
	}
	return nil, false
}

// elements returns the elements of a slice or an array, those of common slices
// without reflection.
func elements(v any) []any {
	switch v := v.(type) {
	case []int64:
		return boxed(v)
	case []int:
		return boxed(v)
	case []uint64:
		return boxed(v)
	case []string:
		return boxed(v)
	}
	rv := reflect.ValueOf(v)
	list := make([]any, rv.Len())
	for i := range list {
		list[i] = rv.Index(i).Interface()
	}
	return list
}

func boxed[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

// isList reports whether gorm writes v out as several values.
func isList(v any) bool {
	if _, one := v.(driver.Valuer); one || v == nil {
		return false
	}
	k := reflect.TypeOf(v).Kind()
	return k == reflect.Slice || k == reflect.Array
}
