// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"reflect"
	"time"

	"github.com/shardid/shardid/sharding/internal/plan"
)

// value calls a driver.Valuer once. A Valuer that returns another value on each call would
// otherwise be routed by one value and stored with another.
func value(a *driver.NamedValue) (err error) {
	v, ok := a.Value.(driver.Valuer)
	if !ok {
		return nil
	}
	if of := reflect.ValueOf(v); of.Kind() == reflect.Pointer && of.IsNil() && of.Type().Elem().Implements(valuer) {
		a.Value = nil // as database/sql does
		return nil
	}
	a.Value, err = v.Value()
	return err
}

var valuer = reflect.TypeFor[driver.Valuer]()

// textArgs returns the arguments of a text that goes to one database.
func textArgs(to plan.Route, args []driver.NamedValue) []driver.NamedValue {
	if to.Args == nil {
		return args
	}
	return chosen(args, to.Args)
}

// arguments is reusable memory for the arguments of one statement, in the inner driver's form.
type arguments struct {
	one driver.NamedValue
	few [4]driver.NamedValue
}

// checked returns the arguments in the form that the inner driver requires. It uses the checker of
// the statement, otherwise that of the connection, otherwise database/sql's own conversion. It
// copies the arguments only if one of them changes.
func (m *arguments) checked(on driver.Conn, st driver.Stmt, args []driver.NamedValue) ([]driver.NamedValue, error) {
	checker, ok := st.(driver.NamedValueChecker)
	if !ok {
		checker, _ = on.(driver.NamedValueChecker)
	}
	columns, _ := st.(driver.ColumnConverter) //nolint:staticcheck // older drivers have it
	same, list := true, m.few[:0]
	for i, arg := range args {
		if same && checker == nil && columns == nil && arg.Ordinal == i+1 && driver.IsValue(arg.Value) {
			continue
		}
		m.one = arg
		if m.one.Ordinal = i + 1; !same {
			m.one.Ordinal = len(list) + 1
		}
		err := convert(checker, columns, &m.one)
		removed := errors.Is(err, driver.ErrRemoveArgument)
		if err != nil && !removed {
			return nil, err
		}
		if same && (removed || !sameArgument(m.one, arg)) {
			if same = false; len(args) > len(m.few) {
				list = make([]driver.NamedValue, 0, len(args))
			}
			list = append(list, args[:i]...)
		}
		if !same && !removed {
			list = append(list, m.one)
		}
	}
	if same {
		return args, nil
	}
	return list, nil
}

func convert(checker driver.NamedValueChecker, columns driver.ColumnConverter, a *driver.NamedValue) (err error) { //nolint:staticcheck // as above
	if checker != nil {
		if err := checker.CheckNamedValue(a); !errors.Is(err, driver.ErrSkip) {
			return err
		}
	}
	var converter driver.ValueConverter = driver.DefaultParameterConverter
	if columns != nil {
		converter = columns.ColumnConverter(a.Ordinal - 1)
	}
	a.Value, err = converter.ConvertValue(a.Value)
	return err
}

// sameArgument reports whether two arguments are the same. It reports false for types that a driver need
// not support.
func sameArgument(a, b driver.NamedValue) bool {
	if a.Ordinal != b.Ordinal || a.Name != b.Name {
		return false
	}
	switch x := a.Value.(type) {
	case nil, int64, float64, bool, string, time.Time:
		return a.Value == b.Value
	case []byte:
		y, ok := b.Value.([]byte)
		return ok && (x == nil) == (y == nil) && bytes.Equal(x, y)
	}
	return false
}
