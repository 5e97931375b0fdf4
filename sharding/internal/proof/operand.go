// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// Operand is a value that a statement compares with: a parameter or a literal.
type Operand struct {
	Param   int // index of the argument, -1 for a literal
	Literal any
	// Whole: only a whole number or the literal NULL proves anything. MySQL takes the parameter of an argument NULL for a text.
	Whole bool
}

// Value returns the literal or the argument. It returns Unbound for a missing one, and inexact for one that is not whole.
func (o Operand) Value(args []any) any {
	v := o.Literal
	switch {
	case o.Param >= len(args):
		return Unbound{}
	case o.Param >= 0:
		v = args[o.Param]
	}
	if o.Whole && !o.isWhole(v) {
		return inexact{}
	}
	return v
}

// isWhole reports whether a value is a whole number or the literal NULL.
func (o Operand) isWhole(v any) bool {
	v, err := Plain(v)
	switch v.(type) {
	case nil:
		return o.Param < 0
	case int64, uint64:
		return err == nil
	}
	return false
}

// Unbound is an argument that the caller has not passed. No rule accepts it.
type Unbound struct{}

// inexact is a value that a database may compare as a float. No rule accepts it.
type inexact struct{}

// Constant returns the operand if an expression is one.
func Constant(e sqlparse.Expr) (Operand, bool) {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Param:
		return Operand{Param: e.Index}, true
	case *sqlparse.Literal:
		switch e.Kind {
		case sqlparse.Integer:
			if n, err := strconv.ParseInt(e.Value, 10, 64); err == nil {
				return Operand{Param: -1, Literal: n}, true
			}
			n, err := strconv.ParseUint(e.Value, 10, 64)
			return Operand{Param: -1, Literal: n}, err == nil
		case sqlparse.Text:
			return Operand{Param: -1, Literal: e.Value}, true
		case sqlparse.Null:
			return Operand{Param: -1}, true
		}
	case *sqlparse.Operation:
		if e.Keeps {
			return Constant(e.Operands[0])
		}
	}
	return Operand{}, false
}

// Constants returns the operands if all expressions of a list are operands.
func Constants(list []sqlparse.Expr) (all []Operand, ok bool) {
	for _, e := range list {
		v, ok := Constant(e)
		if !ok {
			return nil, false
		}
		all = append(all, v)
	}
	return all, len(all) > 0
}

// Plain returns an argument in the form in which a driver gets it, without the Go types around it. An unsigned number of
// any Go type is a uint64, as MySQL's drivers send it: database/sql's own conversion makes a negative number of a large uint.
// With an error it returns nil.
func Plain(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case nil, int64, uint64, string, []byte, time.Time, float64, bool:
		return v, nil
	}
	valuer, isValuer := v.(driver.Valuer)
	if of := reflect.ValueOf(v); !isValuer && of.CanUint() {
		return of.Uint(), nil
	} else if !isValuer && of.Kind() == reflect.Pointer && !of.IsNil() {
		return Plain(of.Elem().Interface())
	}
	plain, err := driver.DefaultParameterConverter.ConvertValue(v)
	if err != nil && isValuer {
		if n, again := valuer.Value(); again == nil {
			if n, ok := n.(uint64); ok {
				return n, nil
			}
		}
	}
	return plain, err
}

// Keeps returns an error for a value that a column would not store unchanged.
func Keeps(t catalog.Table, column string, value any, ignoring bool) error {
	c := t.Columns[strings.ToLower(column)]
	return ColumnKeeps(&c, column, value, ignoring)
}

// ColumnKeeps is keeps for a column with a name.
func ColumnKeeps(c *catalog.Column, name string, value any, ignoring bool) error {
	if c.Storage == nil || value == nil || value == (Unbound{}) || !c.Storage.Cuts(value, ignoring) {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, which stores another value than %v without an error", sharding.ErrKeyType, name, c.Type, value)
}

// Text returns a text that is equal for equal keys, whatever types a driver uses for them.
func Text(key []driver.Value) string {
	texts := make([]string, len(key))
	for i, v := range key {
		if plainly, err := Plain(v); err == nil {
			v = plainly
		}
		switch v := v.(type) {
		case []byte:
			texts[i] = string(v)
		case time.Time:
			texts[i] = v.UTC().Format(time.RFC3339Nano)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%q", texts)
}
