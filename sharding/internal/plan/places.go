// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// A database may give a parameter another type than a literal of its value has. PostgreSQL infers the type from the values beside the
// parameter: CASE WHEN paid THEN $1 ELSE $2 END is a text, also for numbers. MySQL gives one beside a DECIMAL 30 digits after its
// point, and compares one with a YEAR as a year. So only those in the following places become literals, where both are the same.

// literals are the literals that are the same as an argument in a place.
type literals struct{ whole, text bool }

var (
	// formats have words and formats as arguments, and counts numbers behind their first one.
	formats = sqlfunc.Words("date_format date_trunc date_part to_char extract")
	counts  = sqlfunc.Words("left right substr substring")

	interval = regexp.MustCompile(`(?i)^interval\s`)
	wordy    = regexp.MustCompile(`(?i)\s+at\s+time\s+zone\s+\$\d+$|(->|#>)>?\s*\$\d+$`) // of PostgreSQL
	whole    = regexp.MustCompile(`(?i)\sdiv\s`)
)

// placesOf returns the literals that are the same as each parameter of what a query computes in its SELECTs, its subqueries
// included, and in its ORDER BY, but not in conditions.
func placesOf(b *analysis.Analysis) map[*sqlparse.Param]literals {
	all := map[*sqlparse.Param]literals{}
	for core, s := range b.Scopes {
		var order []sqlparse.Order
		if core == b.Statement.Query.Parts[0].Select {
			order = b.Statement.Query.OrderBy
		}
		for e := range sqlparse.All(analysis.Computed(core, order)...) {
			placesIn(b, s, e, all)
		}
	}
	return all
}

// placesIn adds the parameters that are operands of an expression.
func placesIn(b *analysis.Analysis, s *analysis.Scope, e sqlparse.Expr, to map[*sqlparse.Param]literals) {
	for _, operand := range sqlparse.Operands(e) {
		p, ok := sqlparse.Bare(operand).(*sqlparse.Param)
		if !ok || slices.ContainsFunc(b.Facts, func(f analysis.Fact) bool { return p.Span.In(f.Expr.Bytes()) }) {
			continue
		}
		if call, isCall := e.(*sqlparse.Call); isCall {
			to[p] = sameInCall(b, s, call, p)
		} else if o := e.(*sqlparse.Operation); o.Op != sqlparse.Parens {
			to[p] = sameInOperation(b, s, o, p)
		}
	}
}

func sameInCall(b *analysis.Analysis, s *analysis.Scope, call *sqlparse.Call, p *sqlparse.Param) literals {
	at := slices.IndexFunc(call.Args, func(e sqlparse.Expr) bool { return sqlparse.Bare(e) == p })
	switch name := call.Function(); {
	case at < 0:
	case b.SQLite:
		return literals{true, true}
	case formats[name], name == "convert_tz" && at > 0:
		return literals{text: true}
	case counts[name], b.Postgres && sqlfunc.Rounds[name]: // MySQL returns another number of digits
		return literals{whole: at > 0}
	case name == "coalesce", name == "ifnull", name == "nullif":
		return literals{!b.MySQL && areIntegers(b, s, call.Args), areTexts(s, call.Args)} // MySQL makes decimals of signed and unsigned numbers
	case name == "mod":
		return literals{whole: areIntegers(b, s, call.Args)}
	}
	return literals{}
}

func sameInOperation(b *analysis.Analysis, s *analysis.Scope, e *sqlparse.Operation, p *sqlparse.Param) literals {
	written := e.Of(b.Statement.Text)
	switch {
	case b.SQLite:
		return literals{true, true}
	case e.Op >= sqlparse.Equal && e.Op <= sqlparse.Between:
		return literals{areExact(b, s, e.Operands), areTexts(s, e.Operands)}
	case e.Op == sqlparse.Add, e.Op == sqlparse.Sub, e.Op == sqlparse.Mul, e.Op == sqlparse.Mod:
		return literals{whole: areIntegers(b, s, e.Operands)}
	case e.Op == sqlparse.Div: // the dividend decides the digits
		return literals{whole: sqlparse.Bare(e.Operands[0]) != p && areIntegers(b, s, e.Operands)}
	case e.Op == sqlparse.Cast:
		return literals{whole: b.Postgres}
	case e.Op != sqlparse.Opaque:
	case interval.MatchString(written):
		return literals{whole: true}
	case b.Postgres && wordy.MatchString(written):
		return literals{text: true}
	case b.MySQL && whole.MatchString(written):
		return literals{whole: areIntegers(b, s, e.Operands)}
	}
	return literals{}
}

// areOf reports whether all of some expressions but the parameters are of a kind, and one is there.
func areOf(list []sqlparse.Expr, is func(sqlparse.Expr) bool) bool {
	found := false
	for _, e := range list {
		e = sqlparse.Bare(e)
		if sqlparse.Is[*sqlparse.Param](e) {
			continue
		}
		if found = is(e); !found {
			return false
		}
	}
	return found
}

// areIntegers reports whether the operands beside parameters are whole numbers, and those below them, too.
func areIntegers(b *analysis.Analysis, s *analysis.Scope, list []sqlparse.Expr) bool {
	return areOf(list, func(e sqlparse.Expr) bool {
		switch e := e.(type) {
		case *sqlparse.Literal:
			return e.Kind == sqlparse.Integer
		case *sqlparse.Call:
			return e.Function() == "count" || sqlfunc.Integers[e.Function()] || b.Postgres && e.Function() == "sum" && areIntegers(b, s, e.Args)
		case *sqlparse.Operation:
			return (e.Op == sqlparse.Add || e.Op == sqlparse.Sub || e.Op == sqlparse.Mul || e.Op == sqlparse.Mod) && areIntegers(b, s, e.Operands)
		}
		return isColumnOf(s, e, merge.Integer)
	})
}

// areExact reports whether the operands beside parameters are whole numbers or columns of decimals.
func areExact(b *analysis.Analysis, s *analysis.Scope, list []sqlparse.Expr) bool {
	return areOf(list, func(e sqlparse.Expr) bool {
		return areIntegers(b, s, []sqlparse.Expr{e}) || isColumnOf(s, e, merge.Decimal)
	})
}

// areTexts reports whether the operands beside parameters are texts.
func areTexts(s *analysis.Scope, list []sqlparse.Expr) bool {
	return areOf(list, func(e sqlparse.Expr) bool {
		of, ok := columnOf(s, e)
		isMember := of.Value.As == catalog.Number && of.Least.As != catalog.Number // not a YEAR or a BIT
		return analysis.IsLiteral(e, sqlparse.Text) || ok && (of.Value.IsText() || isMember)
	})
}

func isColumnOf(s *analysis.Scope, e sqlparse.Expr, kind merge.Kind) bool {
	of, ok := columnOf(s, e)
	return ok && of.Value.As == catalog.Plain && of.Value.Type.Kind == kind
}

func columnOf(s *analysis.Scope, e sqlparse.Expr) (catalog.Column, bool) {
	of, ok := s.Column(e)
	if !ok || !of.Of.Known {
		return catalog.Column{}, false
	}
	return of.Of.Schema.Columns[of.Name], true
}
