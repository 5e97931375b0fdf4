// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
)

// A broadcast table has the same rows in every database. Every copy is written by the same text, so
// values that each database would compute itself are refused: numbers, times, and the choice of
// rows by LIMIT.

// uncopied returns why a write of a broadcast table would not leave all copies equal, nil if it would, and whether the
// only reason is that the columns of the table are unknown.
func uncopied(b *analysis.Analysis, written *analysis.Reference) (refused *sharding.RouteError, unknown bool) {
	st := b.Statement
	of, why := written, b.Differs(b.Windows)
	for _, r := range b.Refs {
		if r.Role == analysis.Home {
			of, why = r, "it is a table of the home database, and broadcast tables are written in every database; read it first"
			break
		}
	}
	switch {
	case why != "":
	case !written.Known && (st.Insert != nil || len(st.Change.Set) > 0):
		unknown = true
		why = "the columns of the table are not known, so each database may compute other values; create the table in the home database and in all others"
	case b.Limited:
		why = "the rows that a LIMIT chooses may differ from copy to copy; name the rows by their keys"
	case slices.ContainsFunc(b.Limits, func(l analysis.Limit) bool { return !combine.IsFullyOrdered(&b.Knowledge, l.Query) }):
		why = "the rows that DISTINCT ON chooses may differ from copy to copy; order them by a unique key of the table whose columns are NOT NULL, or read them first and pass them as arguments"
	case b.Chosen != "":
		why = "if several rows of " + b.Chosen + " match one row, the row whose values are set may differ from copy to copy; join " + b.Chosen + " by a unique key whose columns are NOT NULL, or read its rows first and pass them as arguments"
	case b.Gathers:
		why = "the order of an ARRAY (SELECT …) may differ from copy to copy; read it first, and pass it as an argument"
	case st.Insert != nil:
		why = ownOfRows(b, st.Insert, written)
	default:
		why = touched(written, st.Change.Set)
	}
	if why == "" {
		return nil, false
	}
	return b.Refusal(of.Label(), sharding.ErrCopies, why), unknown
}

// ownOfRows refuses omitted columns for which each database would compute its own value.
func ownOfRows(b *analysis.Analysis, in *sqlparse.Input, r *analysis.Reference) string {
	if in.Overridden {
		return analysis.Overriding
	}
	if in.Default {
		return "each database computes the defaults itself; insert VALUES"
	}
	isWhole := in.Columns == nil && givesAll(b, in, len(r.Schema.Visible()))
	for _, name := range slices.Sorted(maps.Keys(r.Schema.Columns)) {
		c := r.Schema.Columns[name]
		given := isWhole && !c.Invisible || slices.ContainsFunc(in.Columns, func(i sqlparse.Ident) bool { return strings.EqualFold(i.Name, name) })
		switch {
		case c.Numbered && in.Columns == nil:
			return "name the columns, because each database numbers " + name + " itself"
		case c.Numbered && in.Query != nil:
			return "each database would number " + name + " itself; insert VALUES with it"
		case c.Varies && !given && in.Columns == nil:
			return "name the columns, because each database would compute " + name + " itself if it were left out"
		case (c.Numbered || c.Varies) && !given:
			return "each database would compute " + name + " itself; give it a value"
		}
	}
	for _, row := range in.Rows {
		if row.FirstParam == 0 && slices.ContainsFunc(row.Values, analysis.IsDefault) {
			return "each database computes DEFAULT itself; give a value"
		}
	}
	for _, c := range in.Conflicts {
		if len(c.Set) > 0 {
			return touched(r, c.Set)
		}
	}
	return ""
}

// givesAll reports whether an INSERT without a list of columns certainly has values for so many: MySQL and MariaDB also accept VALUES (),
// and PostgreSQL accepts values for the first columns alone. A table whose columns are unknown
// counts for none.
func givesAll(b *analysis.Analysis, in *sqlparse.Input, columns int) bool {
	if in.Query == nil {
		return !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool {
			return len(row.Values) == 0 || !b.SQLite && len(row.Values) < columns
		})
	}
	if !b.Postgres {
		return true
	}
	q := in.Query
	for q.Parts[0].Nested != nil {
		q = q.Parts[0].Nested
	}
	core := q.Parts[0].Select
	if core == nil {
		return false
	}
	for _, item := range core.Items {
		switch {
		case !item.Star:
			columns--
		case len(item.Of.Parts) == 0 && slices.ContainsFunc(core.From, func(s sqlparse.Source) bool { return s.Join != nil }):
			return false // USING and NATURAL return some columns once
		}
		for _, of := range b.Scopes[core].Starred(item) {
			if of != nil {
				columns -= len(of.Schema.Visible())
			}
		}
	}
	return columns <= 0
}

// touched refuses an update of a table with a column that the database sets to the time of the
// change, unless the update sets that column.
func touched(r *analysis.Reference, set []sqlparse.Assignment) string {
	if len(set) == 0 {
		return ""
	}
	sets := r.Settings(set)
	for _, name := range slices.Sorted(maps.Keys(r.Schema.Columns)) {
		if r.Schema.Columns[name].Touched && !slices.ContainsFunc(sets, func(set analysis.Setting) bool { return set.Column == name }) {
			return "each database would set " + name + " to its own time; set it to a value"
		}
	}
	if slices.ContainsFunc(set, func(a sqlparse.Assignment) bool { return sqlparse.Any(a.Value, analysis.IsDefault) }) {
		return "each database computes DEFAULT itself; give a value"
	}
	return ""
}

// copies routes a statement that names only broadcast tables and tables of the home database.
func (p *binding) copies() (*Route, error) {
	written := p.written
	switch {
	case written == nil || p.Options.Alone:
		return p.home, nil
	case p.uncopied != nil:
		return nil, p.uncopied
	}
	if err := p.refuseClockArguments(sharding.ErrCopies); err != nil {
		return nil, err
	}
	if in := p.Statement.Insert; in != nil {
		if column := numbered(in, written, p.args); column != "" {
			return nil, p.Refusal(written.Label(), sharding.ErrCopies, "each database would number "+column+" itself; give it a generator, or a value that is not 0")
		}
	}
	return &Route{Kind: Copies, Target: sharding.Target{Table: written.Label()}, Text: p.Statement.Text, Pooled: p.Stateless}, nil
}

// numbered returns a column that each database would number itself, because a row gives it 0 or no
// whole number.
func numbered(in *sqlparse.Input, r *analysis.Reference, args []any) string {
	for at, column := range in.Columns {
		if !r.Schema.Columns[strings.ToLower(column.Name)].Numbered {
			continue
		}
		for i := range in.Rows {
			if at >= len(in.Rows[i].Values) {
				return column.Name
			}
			v, _ := analysis.ValueOf(&in.Rows[i], at, args)
			if n, ok := analysis.NumberOf(v); !ok || n == 0 || n != math.Trunc(n) {
				return column.Name
			}
		}
	}
	return ""
}
