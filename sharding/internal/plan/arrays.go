// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Programs on PostgreSQL insert many rows by one statement whose arguments are arrays, the columns of the rows:
// INSERT INTO orders (id, user_id) SELECT unnest($1::bigint[]), unnest($2::bigint[]). Its rows may belong to several shards, so
// it is executed as INSERT … VALUES with the elements as arguments.

// arrays are the selected expressions of such an INSERT, with the arrays that they read.
type arrays struct {
	query sqlparse.Span
	items []arrayItem
	all   []array
}

// arrayItem is a selected expression, with the elements that it reads in the order of the text.
type arrayItem struct {
	sqlparse.Span

	reads []element
}

// element is a part of an expression in the place of which an element of an array is written.
type element struct {
	sqlparse.Span

	of int // the array, a position in arrays.all
}

// array is a parameter with elements of a type.
type array struct {
	param int
	typ   string
}

// Unnested returns the text of an INSERT … SELECT of the elements of arrays as an INSERT … VALUES, and its arguments. It
// returns false for other statements, for arrays that it cannot read, and if there are no rows: see [Plan.Bind].
func Unnested(p *Plan, args []any) (text string, left []any, ok bool) {
	if p.arrays == nil || len(args) != p.Statement.Args {
		return "", nil, false
	}
	rows, ok := p.arrays.rows(args)
	if !ok || len(rows) == 0 {
		return "", nil, false
	}
	left = append(left, args...)
	edit := splice.Edit{Span: p.arrays.query}
	var values strings.Builder
	separator := "VALUES ("
	for _, row := range rows {
		values.WriteString(separator)
		p.arrays.write(&values, p.Statement, len(left))
		separator = "), ("
		left = append(left, row...)
	}
	edit.With = values.String() + ")"
	edit.Args = p.arrays.copied(p.Statement)
	for i := len(args); i < len(left); i++ {
		edit.Args = append(edit.Args, i)
	}
	text, which := rewritten(p, []splice.Edit{edit})
	return text, Selected(left, which), true
}

// copied returns the arguments of the parameters that each row has.
func (a *arrays) copied(of *sqlparse.Statement) (args []int) {
	for _, item := range a.items {
		at := item.From
		for _, e := range item.reads {
			args = append(args, splice.ArgsIn(of, sqlparse.Span{From: at, To: e.From})...)
			at = e.To
		}
		args = append(args, splice.ArgsIn(of, sqlparse.Span{From: at, To: item.To})...)
	}
	return args
}

// write writes the values of a row, whose elements are the arguments from a number on.
func (a *arrays) write(out *strings.Builder, of *sqlparse.Statement, from int) {
	for i, item := range a.items {
		if i > 0 {
			out.WriteString(", ")
		}
		at := item.From
		for _, e := range item.reads {
			out.WriteString(of.Text[at:e.From])
			value := "$" + strconv.Itoa(from+e.of+1) + "::" + a.all[e.of].typ
			if e.Span != item.Span {
				value = "(" + value + ")"
			}
			out.WriteString(value)
			at = e.To
		}
		out.WriteString(of.Text[at:item.To])
	}
}

// rows returns the elements of each row: those of a shorter array are followed by NULLs, as in PostgreSQL.
func (a *arrays) rows(args []any) ([][]any, bool) {
	var rows [][]any
	for i, of := range a.all {
		if of.param >= len(args) {
			return nil, false
		}
		list, ok := proof.Elements(args[of.param])
		if !ok || of.isBytes() && !decodeBytes(list) {
			return nil, false
		}
		for len(rows) < len(list) {
			rows = append(rows, make([]any, len(a.all)))
		}
		for n, v := range list {
			rows[n][i] = v
		}
	}
	return rows, true
}

// isBytes reports whether the elements are bytes: bytea, "bytea" or pg_catalog.bytea.
func (a array) isBytes() bool {
	return strings.EqualFold(strings.Trim(a.typ[strings.LastIndexByte(a.typ, '.')+1:], ` "`), "bytea")
}

// decodeBytes replaces the texts of bytes, of an array that is a text, by the bytes: lib/pq would send a text as the bytes
// of its characters. It returns false for a text in another format than \x00ff.
func decodeBytes(list []any) bool {
	for i, v := range list {
		text, isText := v.(string)
		if !isText {
			continue
		}
		digits, isHex := strings.CutPrefix(text, `\x`)
		decoded, err := hex.DecodeString(digits)
		if !isHex || err != nil {
			return false
		}
		list[i] = decoded
	}
	return true
}

// areEmpty reports whether a statement inserts no rows, because its arrays have no elements.
func (a *arrays) areEmpty(args []any) bool {
	if a == nil {
		return false
	}
	rows, ok := a.rows(args)
	return ok && len(rows) == 0
}

// arraysOf returns the arrays of an INSERT whose rows are only their elements, or nil.
func arraysOf(b *analysis.Analysis) *arrays {
	if b.Insert == nil || !b.Postgres || b.Insert.Input.Query == nil || splice.Named(b.Statement) {
		return nil
	}
	core := analysis.CoreOf(b.Insert.Input.Query)
	if core == nil || !b.Insert.Input.Query.IsPlain() || !isBare(core) {
		return nil
	}
	f := arrayFinder{text: b.Statement.Text, arrays: arrays{query: b.Insert.Input.Query.Span}}
	if len(core.From) == 1 && !f.source(&core.From[0]) {
		return nil
	}
	for i := range core.Items {
		if !f.item(&core.Items[i]) {
			return nil
		}
	}
	if len(f.all) == 0 || slices.ContainsFunc(f.all, func(of array) bool { return f.isShared(of, b.Statement) }) {
		return nil
	}
	return &f.arrays
}

// isShared reports whether a statement reads the parameter of an array also in another way, or with another type. PostgreSQL then
// converts the array from the first type to the other.
func (a *arrays) isShared(of array, st *sqlparse.Statement) bool {
	uses := 0
	for _, other := range a.all {
		if other == of {
			uses++
		}
	}
	for _, p := range st.Params {
		if p.Index == of.param {
			uses--
		}
	}
	return uses != 0
}

// isBare reports whether a SELECT returns a row for each of its source, which is one at most.
func isBare(c *sqlparse.Core) bool {
	return len(c.From) <= 1 && !c.Distinct && c.DistinctOn == nil && c.Where == nil && c.GroupBy == nil && c.Having == nil && c.Windows == nil && !c.Rollup
}

// arrayFinder collects the arrays of a SELECT.
type arrayFinder struct {
	arrays

	text  string
	alias string   // of FROM unnest(…), "" without it
	names []string // of its columns, "" for one without a name
}

// source takes FROM unnest($1::bigint[], $2::text[]) AS alias (a, b).
func (f *arrayFinder) source(s *sqlparse.Source) bool {
	if s.Function == nil || s.Lateral || !analysis.IsUnnest(s.Function) || f.text[s.Function.To-1] != ')' {
		return false
	}
	for _, arg := range s.Function.Args {
		if !f.array(arg) {
			return false
		}
	}
	if f.alias = s.Alias.Name; f.alias == "" {
		f.alias = "unnest"
	}
	f.names = make([]string, len(f.all))
	for i, c := range s.Columns {
		if i == len(f.names) {
			return false
		}
		f.names[i] = c.Name
	}
	if len(s.Columns) == 0 && len(f.names) == 1 {
		f.names[0] = f.alias
	}
	return true
}

// array adds an array, $1::bigint[].
func (f *arrayFinder) array(e sqlparse.Expr) bool {
	cast := sqlparse.As(sqlparse.Bare(e), sqlparse.Cast)
	if cast == nil {
		return false
	}
	param, ok := sqlparse.Bare(cast.Operands[0]).(*sqlparse.Param)
	if !ok {
		return false
	}
	typ := elementType.FindStringSubmatch(f.text[cast.Operands[0].Bytes().To:cast.To])
	if typ == nil {
		return false
	}
	f.all = append(f.all, array{param.Index, typ[1]})
	return true
}

// elementType matches the type of an array of one dimension after the operand of a cast, ::bigint[] and AS bigint[]).
var elementType = regexp.MustCompile(`(?is)^\s*(?:::|AS\s)\s*([^\[\]:]*[^\[\]:\s])\s*\[\s*\]\s*\)?$`)

// item adds a selected expression.
func (f *arrayFinder) item(i *sqlparse.Item) bool {
	if !i.Star {
		item := arrayItem{Span: i.Expr.Bytes()}
		ok := f.expression(i.Expr, &item)
		f.items = append(f.items, item)
		return ok
	}
	if f.names == nil || len(i.Of.Parts) > 0 && !strings.EqualFold(i.Of.Last().Name, f.alias) {
		return false
	}
	for n := range f.all {
		f.items = append(f.items, arrayItem{Span: i.Span, reads: []element{{i.Span, n}}})
	}
	return true
}

// expression records what an expression reads. It returns false if a row of its values is not what VALUES would have.
func (f *arrayFinder) expression(e sqlparse.Expr, item *arrayItem) bool {
	switch e := e.(type) {
	case *sqlparse.Subquery:
		return false
	case *sqlparse.Column:
		at := f.column(e)
		item.reads = append(item.reads, element{e.Span, at})
		return at >= 0
	case *sqlparse.Call:
		if analysis.IsUnnest(e) {
			item.reads = append(item.reads, element{e.Span, len(f.all)})
			return f.names == nil && len(e.Args) == 1 && f.array(e.Args[0])
		}
		if e.Odd || e.Over || sqlfunc.IsAggregate(e) {
			return false
		}
	}
	for _, operand := range sqlparse.Operands(e) {
		if !f.expression(operand, item) {
			return false
		}
	}
	return true
}

// column returns the array of a column of FROM unnest(…), -1 for another column.
func (f *arrayFinder) column(c *sqlparse.Column) int {
	if len(c.Parts) > 2 || len(c.Parts) == 2 && !strings.EqualFold(c.Parts[0].Name, f.alias) {
		return -1
	}
	found := -1
	for i, name := range f.names {
		if name != "" && strings.EqualFold(name, c.Last().Name) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}
