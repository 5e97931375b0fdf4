// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sqlc-dev/marino/ast"
	"github.com/sqlc-dev/marino/mysql"
	"github.com/sqlc-dev/marino/opcode"
	"github.com/sqlc-dev/marino/parser"
)

// marino returns the facts that marino reads, nil if it refuses the text.
func marino(text string, mariaDB bool) *view {
	p := parser.New()
	p.SetMariaDB(mariaDB)
	statements, _, err := p.Parse(text, "", "")
	if err != nil || len(statements) != 1 {
		return nil
	}
	var places markers
	statements[0].Accept(&places)
	slices.Sort(places)
	m := &mySQL{newView(), places}
	switch st := statements[0].(type) {
	case *ast.SelectStmt, *ast.SetOprStmt, *ast.UpdateStmt, *ast.DeleteStmt:
	case *ast.InsertStmt:
		m.rows = len(st.Lists)
	default:
		return nil
	}
	statements[0].Accept(m)
	return m.view
}

// markers are where parameters stand in the text.
type markers []int

func (m *markers) Enter(n ast.Node) (ast.Node, bool) {
	if p, ok := n.(*ast.ParamMarkerExprBase); ok {
		*m = append(*m, p.Offset)
	}
	return n, false
}

func (m *markers) Leave(n ast.Node) (ast.Node, bool) { return n, true }

type mySQL struct {
	*view
	places markers // in the order of the text
}

func (m *mySQL) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func (m *mySQL) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.TableSource:
		if t, ok := n.Source.(*ast.TableName); ok {
			m.tables[t.Name.L]++
		}
	case *ast.ColumnNameExpr:
		m.name(n.Name)
	case *ast.ParamMarkerExprBase:
		m.params++
	case *ast.Join:
		if n.On != nil {
			m.condition(n.On.Expr)
		}
	case *ast.SelectStmt:
		m.condition(n.Where)
	case *ast.UpdateStmt:
		m.condition(n.Where)
	case *ast.DeleteStmt:
		m.condition(n.Where)
	}
	return n, false
}

func (m *mySQL) name(n *ast.ColumnName) string {
	var parts []string
	for _, part := range []string{n.Schema.L, n.Table.L, n.Name.L} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return m.column(parts...)
}

var opcodes = map[opcode.Op]string{
	opcode.EQ: "=", opcode.NE: "<>", opcode.LT: "<", opcode.LE: "<=", opcode.GT: ">", opcode.GE: ">=", opcode.NullEQ: "<=>",
}

func (m *mySQL) condition(e ast.ExprNode) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		m.condition(e.Expr)
	case *ast.BinaryOperationExpr:
		switch op := opcodes[e.Op]; {
		case e.Op == opcode.LogicAnd:
			m.condition(e.L)
			m.condition(e.R)
		case op != "":
			m.fact(m.operand(e.L), op, m.operand(e.R))
		}
	case *ast.PatternInExpr:
		if e.Sel == nil {
			m.fact(append([]string{m.operand(e.Expr), not(e.Not) + "in"}, m.operands(e.List)...)...)
		}
	case *ast.BetweenExpr:
		m.fact(m.operand(e.Expr), not(e.Not)+"between", m.operand(e.Left), m.operand(e.Right))
	case *ast.IsNullExpr:
		m.fact(m.operand(e.Expr), not(e.Not)+"null")
	}
}

func (m *mySQL) operands(list []ast.ExprNode) []string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = m.operand(e)
	}
	return texts
}

func (m *mySQL) operand(e ast.ExprNode) string {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return m.operand(e.Expr)
	case *ast.ColumnNameExpr:
		return m.name(e.Name)
	case *ast.ParamMarkerExprBase:
		return fmt.Sprintf("?%d", slices.Index(m.places, e.Offset))
	case *ast.UnaryOperationExpr:
		if v, ok := e.V.(*ast.ValueExprBase); ok && e.Op == opcode.Minus {
			return negative(v)
		}
	case *ast.ValueExprBase:
		return literal(e)
	case *ast.RowExpr:
		return tuple(m.operands(e.Values))
	}
	return ""
}

func literal(v *ast.ValueExprBase) string {
	switch {
	case v.Kind() == ast.KindNull:
		return "NULL"
	case v.Kind() == ast.KindInt64 && v.Type.GetFlag()&mysql.IsBooleanFlag == 0:
		return strconv.FormatInt(v.GetInt64(), 10)
	case v.Kind() == ast.KindString:
		return strconv.Quote(v.GetString())
	}
	return ""
}

func negative(v *ast.ValueExprBase) string {
	switch v.Kind() {
	case ast.KindInt64:
		return strconv.FormatInt(-v.GetInt64(), 10)
	case ast.KindUint64: // 9223372036854775808
		return strconv.FormatInt(-int64(v.GetUint64()), 10) // it wraps to the least
	}
	return ""
}
