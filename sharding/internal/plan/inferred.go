// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
)

// inferredTexts returns the arguments of which PostgreSQL may infer that they are texts: only the values beside a parameter
// decide its type, unlike that of a number in the text. Texts sort in another order, and x->>$1 takes the name of a member.
func inferredTexts(b *analysis.Analysis) (args []int) {
	eachOperand(b, func(_ *analysis.Scope, parent, e sqlparse.Expr) {
		if p, ok := e.(*sqlparse.Param); ok && isInferredText(parent, p, b.Statement.Text) {
			args = append(args, p.Index)
		}
	})
	return args
}

func isInferredText(parent sqlparse.Expr, p *sqlparse.Param, text string) bool {
	switch parent := parent.(type) {
	case nil:
		return true
	case *sqlparse.Call:
		switch parent.Function() {
		case "coalesce", "greatest", "least", "nullif":
			return untyped(parent.Args)
		case "min", "max", "array_agg":
			return true
		}
	case *sqlparse.Operation:
		switch parent.Op {
		case sqlparse.Like:
			return true
		case sqlparse.Case:
			results := resultsOf(parent, text)
			return slices.ContainsFunc(results, func(e sqlparse.Expr) bool { return sqlparse.Bare(e) == p }) && untyped(results)
		case sqlparse.Opaque:
			return textOperator(parent, text)
		}
	}
	return false
}

// textOperator reports whether an expression has ->, ->>, #>, #>> or ||, which have texts beside them.
func textOperator(e *sqlparse.Operation, text string) bool {
	written := e.Of(text)
	return strings.Contains(written, "->") || strings.Contains(written, "#>") || strings.Contains(written, "||")
}

// resultsOf returns the results of a CASE.
func resultsOf(e *sqlparse.Operation, text string) (all []sqlparse.Expr) {
	branches := e.Operands
	if len(branches) > 0 && strings.TrimSpace(text[e.From+len("case"):branches[0].Bytes().From]) == "" { // CASE x WHEN
		branches = branches[1:]
	}
	for i, branch := range branches {
		if i%2 == 1 || i == len(branches)-1 {
			all = append(all, branch)
		}
	}
	return all
}

// untyped reports whether none of some expressions has a type of its own.
func untyped(list []sqlparse.Expr) bool {
	return !slices.ContainsFunc(list, func(e sqlparse.Expr) bool {
		switch e := sqlparse.Bare(e).(type) {
		case *sqlparse.Param:
			return false
		case *sqlparse.Literal:
			return e.Kind != sqlparse.Text && e.Kind != sqlparse.Null
		}
		return true
	})
}

// eachOperand visits the expressions of a statement, each with the one that it is an operand of, or nil. Parentheses are left out.
func eachOperand(b *analysis.Analysis, visit func(s *analysis.Scope, parent, e sqlparse.Expr)) {
	for core, s := range b.Scopes {
		for _, e := range computed(core) {
			operands(nil, e, func(parent, e sqlparse.Expr) { visit(s, parent, e) })
		}
	}
	queriesIn(b.Statement.Query, func(q *sqlparse.Query) {
		for _, o := range q.OrderBy {
			operands(nil, o.Expr, func(parent, e sqlparse.Expr) { visit(b.Scopes[firstCore(q)], parent, e) })
		}
	})
}

// computed returns the expressions of a SELECT.
func computed(core *sqlparse.Core) []sqlparse.Expr {
	all := slices.Concat(core.GroupBy, core.DistinctOn, core.Windows, []sqlparse.Expr{core.Where, core.Having})
	for _, i := range core.Items {
		all = append(all, i.Expr)
	}
	for i := range core.From {
		all = append(all, conditions(&core.From[i])...)
	}
	return slices.DeleteFunc(all, func(e sqlparse.Expr) bool { return e == nil })
}

// conditions returns the conditions of joins, and functions in FROM.
func conditions(s *sqlparse.Source) (all []sqlparse.Expr) {
	if s.Function != nil {
		all = append(all, s.Function)
	}
	if s.Join != nil {
		all = append(slices.Concat(conditions(s.Join.Left), conditions(s.Join.Right)), s.Join.On)
	}
	return all
}

func operands(parent, e sqlparse.Expr, visit func(parent, e sqlparse.Expr)) {
	e = sqlparse.Bare(e)
	visit(parent, e)
	for _, operand := range sqlparse.Operands(e) {
		operands(e, operand, visit)
	}
}

func firstCore(q *sqlparse.Query) *sqlparse.Core { return q.Parts[0].Select }

// queriesIn visits a query and all queries in it.
func queriesIn(q *sqlparse.Query, visit func(*sqlparse.Query)) {
	visit(q)
	if q.With != nil {
		for _, t := range q.With.Tables {
			if t.Query != nil {
				queriesIn(t.Query, visit)
			}
		}
	}
	for _, part := range q.Parts {
		if part.Nested != nil {
			queriesIn(part.Nested, visit)
		}
		if part.Select == nil {
			continue
		}
		for i := range part.Select.From {
			queriesFrom(&part.Select.From[i], visit)
		}
		for _, e := range computed(part.Select) {
			subqueriesIn(e, visit)
		}
	}
	for _, o := range q.OrderBy {
		subqueriesIn(o.Expr, visit)
	}
}

func queriesFrom(s *sqlparse.Source, visit func(*sqlparse.Query)) {
	if s.Query != nil {
		queriesIn(s.Query, visit)
	}
	if s.Join != nil {
		queriesFrom(s.Join.Left, visit)
		queriesFrom(s.Join.Right, visit)
	}
}

func subqueriesIn(e sqlparse.Expr, visit func(*sqlparse.Query)) {
	operands(nil, e, func(_, e sqlparse.Expr) {
		if s, ok := e.(*sqlparse.Subquery); ok && s.Query != nil {
			queriesIn(s.Query, visit)
		}
	})
}
