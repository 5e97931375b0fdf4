// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"
)

// meyer returns the facts that meyer reads, nil if it refuses the text.
func meyer(text string) *view {
	statements, err := parser.ParseString(text)
	if err != nil || len(statements) != 1 {
		return nil
	}
	m := &liteView{newView()}
	if in, ok := statements[0].(*ast.InsertStmt); ok && in.Select != nil {
		if values, ok := in.Select.Cores[0].(*ast.ValuesClause); ok && len(in.Select.Cores) == 1 {
			m.rows = len(values.Rows)
		}
	}
	m.visit(reflect.ValueOf(statements[0]), false)
	return m.view
}

type liteView struct{ *view }

// visit walks over all nodes. A bare name is a column where it is an expression.
func (m *liteView) visit(node reflect.Value, expression bool) {
	switch node.Kind() {
	case reflect.Pointer:
		if node.IsNil() {
			return
		}
		m.node(node.Interface(), expression)
		m.visit(node.Elem(), false)
	case reflect.Interface:
		if !node.IsNil() {
			m.visit(node.Elem(), node.Type() == reflect.TypeFor[ast.Expr]())
		}
	case reflect.Slice:
		for i := range node.Len() {
			m.visit(node.Index(i), false)
		}
	case reflect.Struct:
		for _, field := range node.Fields() {
			m.visit(field, false)
		}
	}
}

func (m *liteView) node(node any, expression bool) {
	switch n := node.(type) {
	case *ast.Ident:
		if expression {
			m.column(n.Name)
		}
	case *ast.QualifiedRef:
		m.ref(n)
	case *ast.BindParam:
		m.params = max(m.params, n.Number)
	case *ast.TableRef:
		if n.Name != nil && !n.HasArgs {
			m.table(n.Name)
		}
		m.condition(n.On)
	case *ast.InExpr:
		if n.Table != nil {
			m.table(n.Table)
		}
	case *ast.InsertStmt:
		m.table(n.Table)
	case *ast.UpdateStmt:
		m.table(n.Table)
		m.condition(n.Where)
	case *ast.DeleteStmt:
		m.table(n.Table)
		m.condition(n.Where)
	case *ast.SelectQuery:
		m.condition(n.Where)
	}
}

func (m *liteView) table(n *ast.QualifiedName) { m.tables[strings.ToLower(n.Name.Name)]++ }

func (m *liteView) ref(n *ast.QualifiedRef) string {
	parts := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		parts[i] = p.Name
	}
	return m.column(parts...)
}

var comparisons = map[ast.Operator]string{ast.OpEq: "=", ast.OpNe: "<>", ast.OpLt: "<", ast.OpLe: "<=", ast.OpGt: ">", ast.OpGe: ">="}

func (m *liteView) condition(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		m.condition(e.X)
	case *ast.BinaryExpr:
		switch op := comparisons[e.Op]; {
		case e.Op == ast.OpAnd:
			m.condition(e.X)
			m.condition(e.Y)
		case op != "":
			m.fact(m.operand(e.X), op, m.operand(e.Y))
		}
	case *ast.InExpr:
		if e.Select == nil && e.Table == nil {
			m.fact(append([]string{m.operand(e.X), not(e.Not) + "in"}, m.operands(e.List)...)...)
		}
	case *ast.BetweenExpr:
		m.fact(m.operand(e.X), not(e.Not)+"between", m.operand(e.Lo), m.operand(e.Hi))
	case *ast.NullCheckExpr:
		m.fact(m.operand(e.X), not(e.Test != ast.TestIsNull)+"null")
	case *ast.IsExpr:
		m.is(e)
	}
}

// is tells IS NULL from IS of a value. IS DISTINCT FROM is the contrary of IS.
func (m *liteView) is(e *ast.IsExpr) {
	y := m.operand(e.Y)
	switch {
	case y == "NULL" && !e.Distinct:
		m.fact(m.operand(e.X), not(e.Not)+"null")
	case e.Not == e.Distinct:
		m.fact(m.operand(e.X), "<=>", y)
	}
}

func (m *liteView) operands(list []ast.Expr) []string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = m.operand(e)
	}
	return texts
}

func (m *liteView) operand(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return m.operand(e.X)
	case *ast.Ident:
		return m.column(e.Name)
	case *ast.QualifiedRef:
		return m.ref(e)
	case *ast.BindParam:
		return fmt.Sprintf("?%d", e.Number-1)
	case *ast.VectorExpr:
		return tuple(m.operands(e.List))
	case *ast.UnaryExpr:
		if l, ok := e.X.(*ast.Literal); ok && e.Op == ast.OpMinus && l.Kind == ast.LitInteger {
			return m.integer("-" + l.Value)
		}
	case *ast.Literal:
		switch e.Kind {
		case ast.LitNull:
			return "NULL"
		case ast.LitInteger:
			return m.integer(e.Value)
		case ast.LitString:
			return strconv.Quote(e.Value)
		}
	}
	return ""
}

func (m *liteView) integer(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	return ""
}
