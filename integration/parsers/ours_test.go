// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

// ours returns the facts that sqlparse reads, nil if it refuses the text.
func ours(text string, family sqlparse.Family) *view {
	st := sqlparse.Parse(text, sqlparse.Dialect{Family: family})
	if st.Verb == sqlparse.Unknown || st.Executable {
		return nil
	}
	v := newView()
	v.params = st.Args
	if st.Insert != nil {
		v.rows = len(st.Insert.Rows)
	}
	for _, part := range []any{st.Query, st.Insert, st.Change} {
		v.visit(reflect.ValueOf(part))
	}
	if c := st.Change; c != nil && c.Multi { // a DELETE names again what it reads
		for _, t := range c.Targets {
			if name := strings.ToLower(t.Name.Last().Name); v.tables[name] > 1 {
				v.tables[name]--
			} else {
				delete(v.tables, name)
			}
		}
	}
	return v
}

// visit walks over all nodes, whatever the planner looks at.
func (v *view) visit(node reflect.Value) {
	switch node.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !node.IsNil() {
			v.visit(node.Elem())
		}
	case reflect.Slice:
		for i := range node.Len() {
			v.visit(node.Index(i))
		}
	case reflect.Struct:
		v.node(node.Interface())
		for _, field := range node.Fields() {
			v.visit(field)
		}
	}
}

func (v *view) node(node any) {
	switch n := node.(type) {
	case sqlparse.Table:
		if len(n.Name.Parts) > 0 {
			v.tables[strings.ToLower(n.Name.Last().Name)]++
		}
	case sqlparse.Column:
		v.ourColumn(&n)
	case sqlparse.Core:
		v.condition(n.Where)
	case sqlparse.Join:
		v.condition(n.On)
	case sqlparse.Change:
		v.condition(n.Where)
	}
}

func (v *view) ourColumn(c *sqlparse.Column) string {
	parts := make([]string, len(c.Name.Parts))
	for i, p := range c.Name.Parts {
		parts[i] = p.Name
	}
	return v.column(parts...)
}

// condition notes the facts that a condition consists of.
func (v *view) condition(e sqlparse.Expr) {
	o, ok := e.(*sqlparse.Operation)
	if !ok {
		return
	}
	switch o.Op {
	case sqlparse.Parens, sqlparse.And:
		for _, operand := range o.Operands {
			v.condition(operand)
		}
	case sqlparse.In:
		v.fact(slices.Insert(v.operands(o.Operands), 1, not(o.Not)+"in")...)
	case sqlparse.Between:
		v.fact(slices.Insert(v.operands(o.Operands), 1, not(o.Not)+"between")...)
	case sqlparse.IsNull:
		v.fact(v.operand(o.Operands[0]), not(o.Not)+"null")
	default:
		if op := comparing[o.Op]; op != "" {
			v.fact(v.operand(o.Operands[0]), op, v.operand(o.Operands[1]))
		}
	}
}

var comparing = map[sqlparse.Operator]string{
	sqlparse.Equal: "=", sqlparse.NotEqual: "<>", sqlparse.Less: "<", sqlparse.LessEqual: "<=",
	sqlparse.Greater: ">", sqlparse.GreaterEqual: ">=", sqlparse.NullSafeEqual: "<=>",
}

func not(is bool) string {
	if is {
		return "not "
	}
	return ""
}

func (v *view) operands(list []sqlparse.Expr) []string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = v.operand(e)
	}
	return texts
}

// operand returns how an operand is called in a fact, "" where it has no part in one.
func (v *view) operand(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.Operation:
		switch e.Op {
		case sqlparse.Parens:
			return v.operand(e.Operands[0])
		case sqlparse.Tuple:
			return tuple(v.operands(e.Operands))
		}
	case *sqlparse.Column:
		return v.ourColumn(e)
	case *sqlparse.Param:
		return fmt.Sprintf("?%d", e.Index)
	case *sqlparse.Literal:
		switch e.Kind {
		case sqlparse.Integer:
			if n, err := strconv.ParseInt(e.Value, 10, 64); err == nil {
				return strconv.FormatInt(n, 10)
			}
		case sqlparse.Text:
			return strconv.Quote(e.Value)
		case sqlparse.Null:
			return "NULL"
		}
	}
	return ""
}
