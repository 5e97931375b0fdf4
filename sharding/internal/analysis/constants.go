// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Programs change many rows by one statement that joins a list of values: UPDATE orders SET note = v.note FROM (VALUES (1, 'a'),
// (2, 'b')) AS v (id, note) WHERE orders.id = v.id, or FROM unnest($1::bigint[], $2::text[]). A column that equals a column of
// such a list has one of the values of the list, which are called its constants here.

// IsList reports whether a query returns the same rows in every database, because it reads no table: VALUES, for example.
// Subqueries in its expressions are not considered.
func IsList(q *sqlparse.Query) bool {
	return q != nil && q.With == nil && q.Limit == nil && !slices.ContainsFunc(q.Parts, func(p *sqlparse.Part) bool {
		return p.Nested != nil || p.Table != nil || p.Select != nil && len(p.Select.From) > 0
	})
}

// constantsAt returns the values of the column of a query at an index, false if the query reads a table, or computes the column.
func constantsAt(q *sqlparse.Query, at int) (all proof.Values, ok bool) {
	for _, p := range q.Parts {
		var list []sqlparse.Expr
		switch {
		case p.Select != nil && len(p.Select.From) == 0:
			if at >= len(p.Select.Items) || HasStar(p.Select) {
				return proof.Values{}, false
			}
			list = []sqlparse.Expr{p.Select.Items[at].Expr}
		case p.Select != nil, p.Nested != nil, p.Table != nil:
			return proof.Values{}, false
		}
		for _, row := range p.Values {
			if at >= len(row.Values) {
				return proof.Values{}, false
			}
			list = append(list, row.Values[at])
		}
		if array, isArray := elements(list[0]); isArray && len(q.Parts) == 1 && len(list) == 1 {
			return proof.Values{Array: &array}, true
		}
		values, known := proof.Constants(list)
		if !known {
			return proof.Values{}, false
		}
		all.List = append(all.List, values...)
	}
	return all, true
}

// elements returns the argument of unnest($1::bigint[]).
func elements(e sqlparse.Expr) (proof.Operand, bool) {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	if !ok || !IsUnnest(call) || len(call.Args) != 1 {
		return proof.Operand{}, false
	}
	return arrayOf(call.Args[0])
}

// IsUnnest reports whether a call is unnest(…), which returns the elements of arrays as rows.
func IsUnnest(c *sqlparse.Call) bool {
	return c.Function() == "unnest" && len(c.Args) > 0 && !c.Odd && !c.Over && !c.Distinct
}

// takeList gives a derived table or a CTE the columns of its query, if that reads no table.
func takeList(r *Reference, q *sqlparse.Query, listed []sqlparse.Ident, mysql bool) {
	names := namesOf(q.Parts[0], listed, mysql)
	list, some := make([]proof.Values, len(names)), false
	for at := range names {
		c, ok := constantsAt(q, at)
		list[at], some = c, some || ok
	}
	if some {
		r.takeConstants(names, list)
	}
}

// namesOf returns the names of the columns of VALUES, or of a SELECT. It returns nil if one is unknown.
func namesOf(first *sqlparse.Part, listed []sqlparse.Ident, mysql bool) (names []string) {
	n := 0
	switch {
	case first.Select != nil:
		n = len(first.Select.Items)
	case len(first.Values) > 0:
		n = len(first.Values[0].Values)
	}
	for at := range n {
		name := "column" + strconv.Itoa(at+1) // of VALUES on PostgreSQL and SQLite; MySQL and MariaDB have other names
		switch {
		case at < len(listed):
			name = listed[at].Name
		case first.Select != nil:
			name = first.Select.Items[at].Alias.Name
		case mysql:
			return nil
		}
		if name == "" {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// takeElements gives FROM unnest($1::bigint[], $2::text[]) AS alias (a, b) its columns.
func takeElements(r *Reference, s *sqlparse.Source) {
	if s.Function == nil || !IsUnnest(s.Function) {
		return
	}
	if r.Name == "" {
		r.Name = "unnest"
	}
	var names []string
	for _, c := range s.Columns {
		names = append(names, c.Name)
	}
	if len(names) == 0 && len(s.Function.Args) == 1 {
		names = []string{r.Name}
	}
	list := make([]proof.Values, len(names))
	for at := range min(len(names), len(s.Function.Args)) {
		array, ok := arrayOf(s.Function.Args[at])
		if name := strings.ToLower(names[at]); ok && name != "ordinality" && (name != "unnest" || len(s.Columns) == 0) { // other columns may have these names
			list[at].Array = &array
		}
	}
	r.takeConstants(names, list)
	if n := len(s.Function.Args); s.Ordinal && len(list) == n+1 && !slices.ContainsFunc(list[:n], func(c proof.Values) bool { return c.Array == nil }) {
		r.Known = true // an array of rows would have more columns
		r.Schema.Columns[strings.ToLower(names[n])] = catalog.Column{Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}, Wide: true}}
	}
}

// takeConstants gives a derived table the columns of a list; those that are computed have no values.
func (r *Reference) takeConstants(names []string, list []proof.Values) {
	r.constants, r.Schema.Columns = map[string]proof.Values{}, map[string]catalog.Column{}
	for at, c := range list {
		name := strings.ToLower(names[at])
		if _, twice := r.constants[name]; twice { // names of PostgreSQL in quotes may differ in their case only
			c = proof.Values{}
		}
		r.constants[name], r.Schema.Columns[name] = c, catalog.Column{}
	}
}

// constantsOf returns the values one of which an expression has: a column of a list, or a subquery that selects one. at is the
// index in the tuple that a subquery returns.
func (k *Knowledge) constantsOf(e sqlparse.Expr, s *Scope, at int) proof.Values {
	if call, ok := sqlparse.Bare(e).(*sqlparse.Call); ok && sqlfunc.Quantified(call) && !isAll(call) {
		e = call.Args[0]
	}
	c, ok := s.Column(e)
	if sub, isQuery := e.(*sqlparse.Subquery); isQuery {
		if values, listed := constantsAt(sub.Query, at); listed {
			return values
		}
		c, ok = k.picked(sub.Query, at)
	}
	if !ok {
		return proof.Values{}
	}
	return c.Of.constants[c.Name]
}

// hasConstant returns the proof of a column that has one of these constants, or nil. PostgreSQL compares it as the types of both
// sides demand, or refuses the text. The other databases compare whole numbers exactly, and other values in ways of their own.
func (k *Knowledge) hasConstant(l *proof.Lead, of proof.Values) proof.Proof {
	if k.typed {
		return hasOneOf(l, of)
	}
	if l.Holds != catalog.Integers {
		return nil
	}
	of.List = slices.Clone(of.List)
	for i := range of.List {
		of.List[i].Whole = true
	}
	return hasOneOf(l, of)
}
