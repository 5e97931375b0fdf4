// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"reflect"
	"time"
)

// CallValuer calls a driver.Valuer once. A Valuer that returns another value on each call would
// otherwise be routed by one value and stored with another. A nil pointer becomes NULL, as it does in
// database/sql, because a NULL has a route of its own.
func CallValuer(a *driver.NamedValue) (err error) {
	switch a.Value.(type) {
	case nil, int64, int, string, []byte, bool, float64, time.Time: // nearly all arguments
		return nil
	}
	v, isValuer := a.Value.(driver.Valuer)
	if of := reflect.ValueOf(a.Value); of.Kind() == reflect.Pointer && of.IsNil() && (!isValuer || of.Type().Elem().Implements(valuer)) {
		a.Value = nil
		return nil
	}
	if isValuer {
		a.Value, err = v.Value()
	}
	return err
}

var valuer = reflect.TypeFor[driver.Valuer]()

// arguments converts arguments to the inner driver's form.
type arguments struct {
	one driver.NamedValue
	own bool // only this execution has the list, so that an integer can be converted in it
}

// checked returns the arguments in the form that the inner driver requires. It uses the checker of
// the statement, otherwise that of the connection, otherwise database/sql's own conversion. It
// copies the arguments only if one of them becomes another value, because the statement may be routed
// again. A list is not used again: a driver may keep it, as it may keep those of database/sql.
func (m *arguments) checked(on driver.Conn, st driver.Stmt, args []driver.NamedValue) ([]driver.NamedValue, error) {
	checker, ok := st.(driver.NamedValueChecker)
	if !ok {
		checker, _ = on.(driver.NamedValueChecker)
	}
	columns, _ := st.(driver.ColumnConverter) //nolint:staticcheck // older drivers have it
	same, list := true, []driver.NamedValue(nil)
	for i := range args {
		arg := &args[i]
		if same && checker == nil && columns == nil && arg.Ordinal == i+1 && m.isValue(arg) {
			continue
		}
		number := i + 1
		if !same {
			number = len(list) + 1
		}
		m.one = *arg
		m.one.Ordinal = number
		err := convert(checker, columns, &m.one)
		removed := err != nil && errors.Is(err, driver.ErrRemoveArgument)
		switch {
		case err != nil && !removed:
			return nil, err
		case same && !removed && sameArgument(&m.one, arg):
			continue
		case same && !removed && m.own && widened(arg, &m.one):
			arg.Value = m.one.Value
			continue
		case same:
			same, list = false, append(make([]driver.NamedValue, 0, len(args)), args[:i]...)
		}
		if !removed {
			list = append(list, m.one)
		}
	}
	if same {
		return args, nil
	}
	return list, nil
}

// isValue reports whether a driver takes an argument as it is. An int, the most frequent other argument, becomes
// an int64 as in database/sql, if that is allowed.
func (m *arguments) isValue(arg *driver.NamedValue) bool {
	if n, ok := arg.Value.(int); ok && m.own {
		arg.Value = int64(n)
		return true
	}
	return driver.IsValue(arg.Value)
}

func convert(checker driver.NamedValueChecker, columns driver.ColumnConverter, a *driver.NamedValue) (err error) { //nolint:staticcheck // as above
	if checker != nil {
		if err := checker.CheckNamedValue(a); err == nil || !errors.Is(err, driver.ErrSkip) {
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

// widened reports whether an argument is an integer of Go that was converted to an int64 of the same
// value, as most drivers do. The statement has the same route with both.
func widened(from, to *driver.NamedValue) bool {
	now, ok := to.Value.(int64)
	if !ok || from.Ordinal != to.Ordinal || from.Name != to.Name {
		return false
	}
	switch was := from.Value.(type) {
	case int:
		return int64(was) == now
	case uint:
		return now >= 0 && uint64(was) == uint64(now)
	}
	return false
}

// sameArgument reports whether two arguments are the same. It reports false for types that a driver need
// not support.
func sameArgument(a, b *driver.NamedValue) bool {
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
