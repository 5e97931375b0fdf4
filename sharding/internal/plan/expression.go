package plan

import (
	"github.com/shardid/shardid/sharding/internal/sqlparse"
)

func (b *builder) expressions(list []sqlparse.Expr, s *scope, seen *names) {
	for _, e := range list {
		b.expression(e, s, seen)
	}
}

// expression finds the subqueries of an expression, and the columns that are
// qualified with the name of a table.
func (b *builder) expression(e sqlparse.Expr, s *scope, seen *names) {
	b.steadily(e)
	switch e := e.(type) {
	case nil:
	case *sqlparse.Column:
		if len(e.Name.Parts) > 1 {
			b.qualifiers([]sqlparse.Name{{Span: e.Name.Span, Parts: e.Name.Parts[:len(e.Name.Parts)-1]}}, s)
		}
	case *sqlparse.Subquery:
		b.query(e.Query, s, seen)
	case *sqlparse.Exists:
		b.query(e.Query, s, seen)
	case *sqlparse.In:
		b.expression(e.X, s, seen)
		b.expressions(e.List, s, seen)
		b.query(e.Query, s, seen)
	default:
		b.expressions(operands(e), s, seen)
	}
}

// operands returns the expressions directly below one that is neither a column nor
// has a query of its own.
func operands(e sqlparse.Expr) []sqlparse.Expr {
	switch e := e.(type) {
	case *sqlparse.Operation:
		return e.Operands
	case *sqlparse.Not:
		return []sqlparse.Expr{e.X}
	case *sqlparse.Compare:
		return []sqlparse.Expr{e.Left, e.Right}
	case *sqlparse.Between:
		return []sqlparse.Expr{e.X, e.Low, e.High}
	case *sqlparse.IsNull:
		return []sqlparse.Expr{e.X}
	case *sqlparse.Like:
		return []sqlparse.Expr{e.X, e.Pattern, e.Escape}
	case *sqlparse.Call:
		return e.Args
	case *sqlparse.Tuple:
		return e.Items
	case *sqlparse.Parens:
		return []sqlparse.Expr{e.X}
	case *sqlparse.Case:
		return e.Operands
	case *sqlparse.Cast:
		return []sqlparse.Expr{e.X}
	case *sqlparse.Opaque:
		return e.Operands
	}
	return nil
}
