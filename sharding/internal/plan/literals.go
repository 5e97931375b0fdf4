// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// How the values of an expression compare may depend on its arguments: GROUP BY DATE_FORMAT(created_at, ?). A query whose
// results cannot be combined for any arguments is planned again with its arguments as literals.

// replaceable are the parameters of a query that may become literals.
type replaceable struct {
	params []*sqlparse.Param
	same   map[int]literals // by arguments
	// shown are those that are in selected expressions of MySQL. It gives a parameter beside a decimal 30 digits after its point,
	// unless the argument of some parameter of the statement has another type than it expects.
	shown []*sqlparse.Param
	// unnamed are the selected expressions that have parameters and no alias, if the database names them by their text.
	unnamed []sqlparse.Item
}

// replaceableOf returns the parameters that may become literals: those of places where the literal is the same, unless they are in
// conditions, which lead to shards. A numbered parameter may be in several places, of which each has to allow it.
func replaceableOf(b *analysis.Analysis) replaceable {
	all := replaceable{same: map[int]literals{}}
	if splice.Named(b.Statement) {
		return all
	}
	places := placesOf(b)
	for _, p := range b.Statement.Params {
		same := places[p]
		if before, seen := all.same[p.Index]; seen {
			same = literals{before.whole && same.whole, before.text && same.text}
		}
		all.same[p.Index] = same
	}
	all.params = slices.DeleteFunc(slices.Clone(b.Statement.Params), func(p *sqlparse.Param) bool { return all.same[p.Index] == literals{} })
	if b.Postgres {
		return all
	}
	for core := range b.Scopes {
		for _, i := range core.Items {
			for _, p := range b.Statement.Params {
				if b.MySQL && !b.Options.Merge.IsMariaDB() && p.Span.In(i.Span) {
					all.shown = append(all.shown, p)
				}
			}
			if i.Alias.Name == "" && len(i.Span.Of(b.Statement.Text)) <= longestAlias && len(splice.ArgsIn(b.Statement, i.Span)) > 0 {
				all.unnamed = append(all.unnamed, i)
			}
		}
	}
	return all
}

// keepNames returns the aliases that keep the names of columns: MySQL, MariaDB and SQLite name a selected expression by its text.
func keepNames(p *binding, written []splice.Edit) (all []splice.Edit) {
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
		if same := p.replaceable.same[q.Index]; text != "" && (same.text && text[0] == '\'' || same.whole && text[0] != '\'') {
			edits = append(edits, splice.Edit{Span: q.Span, With: text})
		}
	}
	isLeft := func(q *sqlparse.Param) bool {
		return !slices.ContainsFunc(edits, func(e splice.Edit) bool { return e.Span == q.Span })
	}
	if len(edits) == 0 || slices.ContainsFunc(p.replaceable.shown, isLeft) {
		return nil, p.unmerged
	}
	edits = append(edits, keepNames(p, edits)...)
	text, args := rewritten(p.Plan, edits)
	next := planAgain(p.Plan, text)
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

// literal returns a signed whole number or a text as a literal that every database reads alike, whatever its settings are. It
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
