// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"fmt"
	"strings"
)

// meaning prints a tree as the generator does.
func meaning(s *Statement) string {
	switch s.Verb {
	case Select:
		return queryMeaning(s.Query)
	case Insert:
		var rows strings.Builder
		for _, r := range s.Insert.Rows {
			rows.WriteString(" (" + meanings(r.Values, r.FirstParam) + ")")
		}
		return "(insert " + nameMeaning(s.Insert.Table.Name) + rows.String() + ")"
	case Update:
		return "(update " + nameMeaning(s.Change.Targets[0].Name) + " " + exprMeaning(s.Change.Set[0].Value, 0) + " " + exprMeaning(s.Change.Where, 0) + ")"
	case Delete:
		return "(delete " + nameMeaning(s.Change.Targets[0].Name) + " " + exprMeaning(s.Change.Where, 0) + ")"
	}
	return "unknown"
}

func meanings(list []Expr, shift int) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = exprMeaning(x, shift)
	}
	return strings.Join(texts, " ")
}

func nameMeaning(n Name) string {
	parts := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		parts[i] = p.Name
	}
	return strings.Join(parts, ".")
}

func queryMeaning(q *Query) string {
	var out strings.Builder
	out.WriteString("(query")
	for _, p := range q.Parts {
		out.WriteString(" (select")
		for _, i := range p.Select.Items {
			if i.Star {
				out.WriteString(" *")
				continue
			}
			out.WriteString(" " + exprMeaning(i.Expr, 0))
		}
		for i, s := range p.Select.From {
			if i == 0 {
				out.WriteString(" from")
			}
			out.WriteString(" " + sourceMeaning(s))
		}
		if p.Select.Where != nil {
			out.WriteString(" where " + exprMeaning(p.Select.Where, 0))
		}
		if p.Select.GroupBy != nil {
			out.WriteString(" group " + meanings(p.Select.GroupBy, 0) + " having " + exprMeaning(p.Select.Having, 0))
		}
		out.WriteString(")")
	}
	for _, o := range q.OrderBy {
		out.WriteString(" order " + exprMeaning(o.Expr, 0))
	}
	if q.Limit != nil {
		out.WriteString(" limit " + exprMeaning(q.Limit.Count, 0) + " " + exprMeaning(q.Limit.Offset, 0))
	}
	return out.String() + ")"
}

func sourceMeaning(s Source) string {
	switch {
	case s.Table != nil:
		return nameMeaning(s.Table.Name)
	case s.Query != nil:
		return "(derived " + queryMeaning(s.Query) + ")"
	}
	return "(join " + sourceMeaning(*s.Join.Left) + " " + sourceMeaning(*s.Join.Right) + " " + exprMeaning(s.Join.On, 0) + ")"
}

var operatorNames = map[Operator]string{
	Or: "OR", And: "AND", Not: "not", Equal: "=", NotEqual: "<>", Less: "<", LessEqual: "<=", Greater: ">", GreaterEqual: ">=",
	In: "in", Between: "between", IsNull: "null", Like: "like", Add: "+", Sub: "-", Mul: "*", Exists: "exists", Parens: "parens", Case: "case",
}

func exprMeaning(x Expr, shift int) string {
	switch x := x.(type) {
	case *Column:
		return nameMeaning(x.Name)
	case *Literal:
		if x.Kind == Text {
			return "'" + strings.ReplaceAll(x.Value, "'", "''") + "'"
		}
		return x.Value
	case *Param:
		return fmt.Sprintf("?%d", x.Index+shift)
	case *Operation:
		return operationMeaning(x, shift)
	case *Subquery:
		if nested := x.Query.Parts[0].Nested; nested != nil { // ((SELECT …))
			return "(parens " + exprMeaning(&Subquery{Query: nested}, shift) + ")"
		}
		return "(subquery " + queryMeaning(x.Query) + ")"
	case *Call:
		return "(" + nameMeaning(x.Name) + " " + meanings(Operands(x), shift) + ")"
	}
	return fmt.Sprintf("%T", x)
}

func operationMeaning(o *Operation, shift int) string {
	name := operatorNames[o.Op]
	if o.Not {
		name = "not-" + name
	}
	switch o.Op {
	case Opaque:
		return "(opaque)"
	case Exists:
		return "(exists " + queryMeaning(o.Operands[0].(*Subquery).Query) + ")"
	case In:
		if q, ok := o.Operands[1].(*Subquery); ok {
			return "(" + name + " " + exprMeaning(o.Operands[0], shift) + " " + queryMeaning(q.Query) + ")"
		}
	}
	return "(" + name + " " + meanings(o.Operands, shift) + ")"
}
