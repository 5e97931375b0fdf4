// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// How the values of an expression compare may depend on its arguments: GROUP BY DATE_FORMAT(created_at, ?). A query whose
// results cannot be combined for any arguments is planned again with its arguments as literals.

// replaceable are the parameters of a query that may become literals.
type replaceable struct {
	params []*sqlparse.Param
	// texts are the arguments that only become literals if they are texts: see inferredTexts.
	texts []int
	// unnamed are the selected expressions that have parameters and no alias, if the database names them by their text.
	unnamed []sqlparse.Item
}

// replaceableOf returns the parameters that may become literals. Those of conditions lead to shards, and that of a LIMIT is
// a number anyway. A number that is the whole expression of ORDER BY or GROUP BY would denote a column.
func replaceableOf(b *analysis.Analysis) (all replaceable) {
	params := splice.Parameters{Statement: b.Statement}
	if params.Named() {
		return all
	}
	kept := keptParameters(b)
	stays := func(p *sqlparse.Param) bool {
		return slices.ContainsFunc(kept, func(s sqlparse.Span) bool { return p.Span.In(s) })
	}
	var shared []int
	for _, p := range b.Statement.Params {
		if params.Numbered() && stays(p) { // its other occurrences have its type
			shared = append(shared, p.Index)
		}
	}
	all.params = slices.DeleteFunc(slices.Clone(b.Statement.Params), func(p *sqlparse.Param) bool { return stays(p) || slices.Contains(shared, p.Index) })
	if len(all.params) == 0 {
		return all
	}
	if b.Postgres {
		all.texts = inferredTexts(b)
		return all
	}
	for core := range b.Scopes {
		for _, i := range core.Items {
			if i.Alias.Name == "" && len(i.Span.Of(b.Statement.Text)) <= longestAlias && len(params.In(i.Span)) > 0 {
				all.unnamed = append(all.unnamed, i)
			}
		}
	}
	return all
}

// keptParameters returns the parts of the text whose parameters stay.
func keptParameters(b *analysis.Analysis) (all []sqlparse.Span) {
	for _, f := range b.Facts {
		all = append(all, f.Expr.Bytes())
	}
	for _, l := range b.Limits {
		if l.Query.Limit != nil {
			all = append(all, l.Query.Limit.Span)
		}
	}
	if limit := b.Statement.Query.Limit; limit != nil {
		all = append(all, limit.Span)
	}
	for core := range b.Scopes {
		for _, e := range slices.Concat(core.GroupBy, core.DistinctOn) {
			all = append(all, ifParameter(e)...)
		}
	}
	queriesIn(b.Statement.Query, func(q *sqlparse.Query) {
		for _, o := range q.OrderBy {
			all = append(all, ifParameter(o.Expr)...)
		}
	})
	eachOperand(b, func(s *analysis.Scope, _, e sqlparse.Expr) {
		if call, ok := e.(*sqlparse.Call); ok {
			for _, o := range positions(call) {
				all = append(all, ifParameter(o)...)
			}
		}
		if b.MySQL {
			all = append(all, otherwiseOfMySQL(b, s, e)...)
		}
	})
	return all
}

// otherwiseOfMySQL returns the part of an expression in which a literal has another result than a parameter with its number.
func otherwiseOfMySQL(b *analysis.Analysis, s *analysis.Scope, e sqlparse.Expr) []sqlparse.Span {
	derives := !b.Options.Merge.IsMariaDB() // the type of a parameter from a decimal beside it
	switch e := e.(type) {
	case *sqlparse.Call:
		if derives && e.Function() == "avg" && hasDecimal(s, e) {
			return []sqlparse.Span{e.Span}
		}
	case *sqlparse.Operation:
		if e.Op >= sqlparse.Equal && e.Op <= sqlparse.Like && slices.ContainsFunc(e.Operands, func(e sqlparse.Expr) bool { return isYear(s, e) }) {
			return []sqlparse.Span{e.Span}
		}
		if derives && e.Op == sqlparse.Div && hasDecimal(s, e) {
			return []sqlparse.Span{e.Operands[0].Bytes()}
		}
	}
	return nil
}

// hasDecimal reports whether a decimal is in an expression, from which MySQL derives that a parameter is a decimal of 30 digits
// after its point. A quotient has four digits more than its dividend, as an average has, so that it is rounded elsewhere.
func hasDecimal(s *analysis.Scope, e sqlparse.Expr) bool {
	return sqlparse.Any(e, func(e sqlparse.Expr) bool {
		switch e := e.(type) {
		case *sqlparse.Literal:
			return e.Kind == sqlparse.Decimal
		case *sqlparse.Call:
			name := e.Function()
			return name == "sum" || name == "avg"
		case *sqlparse.Column:
			of, ok := s.Column(e)
			return ok && of.Of.Known && of.Of.Schema.Columns[of.Name].Value.Type.Kind == merge.Decimal
		}
		return false
	})
}

// positions returns the expressions of a call that would denote a column if they were a number, such as those of ORDER BY in
// GROUP_CONCAT.
func positions(call *sqlparse.Call) []sqlparse.Expr {
	if call.Function() == "group_concat" {
		return sqlparse.Operands(call)
	}
	return call.Window
}

// isYear reports whether an expression is a YEAR or a BIT of MySQL or MariaDB. A YEAR compares with a literal as a number, and
// with a parameter as a year: 1 is 2001.
func isYear(s *analysis.Scope, e sqlparse.Expr) bool {
	of, ok := s.Column(e)
	if !ok || !of.Of.Known {
		return false
	}
	column := of.Of.Schema.Columns[of.Name]
	return column.Value.As == catalog.Number && column.Least.As == catalog.Number
}

func ifParameter(e sqlparse.Expr) []sqlparse.Span {
	if p, ok := sqlparse.Bare(e).(*sqlparse.Param); ok {
		return []sqlparse.Span{p.Span}
	}
	return nil
}

// names returns the aliases that keep the names of columns: MySQL, MariaDB and SQLite name a selected expression by its text.
func names(p *binding, written []splice.Edit) (all []splice.Edit) {
	for _, i := range p.replaceable.unnamed {
		if slices.ContainsFunc(written, func(e splice.Edit) bool { return e.Span.In(i.Span) }) {
			all = append(all, splice.Insert(i.To, " AS "+p.Options.Quote(i.Span.Of(p.Statement.Text))))
		}
	}
	return all
}

// longestAlias is the number of characters of the longest alias of MySQL and MariaDB.
const longestAlias = 256

// withLiterals returns the route of a query with literals in place of its replaceable parameters, or its refusal.
func withLiterals(p *binding) (*Route, error) {
	if len(p.args) != p.Statement.Args {
		return nil, p.unmerged
	}
	var edits []splice.Edit
	for _, q := range p.replaceable.params {
		text := literal(p.args[q.Index])
		if text != "" && (text[0] == '\'' || !slices.Contains(p.replaceable.texts, q.Index)) {
			edits = append(edits, splice.Edit{Span: q.Span, With: text})
		}
	}
	if len(edits) == 0 {
		return nil, p.unmerged
	}
	edits = append(edits, names(p, edits)...)
	params, reads := splice.Parameters{Statement: p.Statement}, p.Options.Reads
	args, with := params.Around(edits)
	next := Of(sqlparse.Parse(params.Written(edits, with, reads.Rules()), reads), p.Snapshot, p.Options)
	readsClock := len(next.Instants) > len(p.Instants) // the literal 'now'
	if next.combination == nil && next.flat == nil || readsClock {
		return nil, p.unmerged
	}
	to, err := next.Bind(Selected(p.args, args), p.hint)
	if err != nil {
		return nil, err
	}
	return withArguments(to, args), nil
}

// longestLiteral is the largest number of bytes of a text that becomes a literal: formats, units and words are short.
const longestLiteral = 128

// literal returns a whole number or a text as a literal that every database reads alike, whatever its settings are. It
// returns "" for any other value.
func literal(v any) string {
	plain, _ := proof.Plain(v)
	switch v := plain.(type) {
	case int64:
		if v == math.MinInt64 { // without its sign it is no int64
			return ""
		}
		if v < 0 {
			return "(" + strconv.FormatInt(v, 10) + ")" // x--1 is a comment
		}
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case string:
		odd := func(r rune) bool { return r < ' ' || r > '~' || r == '\'' || r == '\\' }
		if len(v) <= longestLiteral && !strings.ContainsFunc(v, odd) {
			return "'" + v + "'"
		}
	}
	return ""
}

// withArguments returns a route of a text for the statement of which the text takes these arguments.
func withArguments(to *Route, args []int) *Route {
	of := func(some []int) []int {
		all := make([]int, len(some))
		for i, arg := range some {
			all[i] = args[arg]
		}
		return all
	}
	made := *to
	if made.Shards == nil {
		made.Args = args
		if to.Args != nil {
			made.Args = of(to.Args)
		}
		return &made
	}
	shards := *to.Shards
	shards.Targets = make([]combine.Shard, len(to.Shards.Targets))
	for i, target := range to.Shards.Targets {
		target.Args = of(target.Args)
		shards.Targets[i] = target
	}
	made.Shards = &shards
	return &made
}
