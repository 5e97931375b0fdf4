// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// edit is a part of the text that is replaced.
type edit struct {
	sqlparse.Span

	with string
	args []int // the arguments of the parameters that it copies; a parameter without a number takes the argument of its position

	split bool // it is the GROUP BY of DISTINCT aggregates

	copied []sqlparse.Span // the subqueries whose texts it copies: their tables have other names on each target
}

func inserted(at int, text string) edit {
	return edit{Span: sqlparse.Span{From: at, To: at}, with: text}
}

// inText compares the places of edits in the text. What is inserted precedes what is replaced there.
func inText(a, b edit) int { return cmp.Or(a.From-b.From, a.To-b.To) }

// routes caches the routes of a plan to one target each.
type routes struct {
	known atomic.Pointer[map[sharding.Target]*Route]
}

// to returns the route of a plan's unchanged rows and conditions to a target.
func (c *routes) to(p *Plan, target sharding.Target) (*Route, error) {
	old := c.known.Load()
	if old != nil {
		if route, ok := (*old)[target]; ok {
			return route, nil
		}
	}
	text, err := p.edited(target, nil)
	if err != nil {
		return nil, err
	}
	route := &Route{Kind: One, Target: target, Text: text, Pooled: true}
	next := map[sharding.Target]*Route{target: route}
	if old != nil {
		maps.Copy(next, *old)
	}
	c.known.CompareAndSwap(old, &next) // if another goroutine has stored one, this route is made again
	return route, nil
}

// edited returns the text with the names of the target, and of the other tables of its group that
// have the same slots, and with more edits. It renumbers numbered parameters if a renumbering is
// given. Every other byte is unchanged.
func (p *Plan) edited(target sharding.Target, with renumbering, more ...edit) (string, error) {
	var edits []edit
	for _, r := range p.sharded {
		at, _, err := p.snapshot.Hinted(r.table.Name, sharding.Hint{On: target})
		if err != nil {
			return "", err
		}
		edits = p.rename(edits, r, at.Table)
	}
	renames := edits
	for _, e := range more {
		for _, of := range e.copied {
			e.with = strings.ReplaceAll(e.with, of.Of(p.statement.Text), replaced(p.statement.Text, of, renames))
		}
		edits = append(edits, e)
	}
	return p.written(edits, with), nil
}

// replaced returns a part of the text with the edits that lie in it.
func replaced(text string, part sqlparse.Span, edits []edit) string {
	var out strings.Builder
	end := part.From
	for _, e := range slices.SortedStableFunc(slices.Values(edits), inText) {
		if e.Span.In(part) {
			out.WriteString(text[end:e.From] + e.with)
			end = e.To
		}
	}
	return out.String() + text[end:part.To]
}

// written returns the text with edits. An edit in a part that another one replaces has no effect.
func (r *reading) written(edits []edit, with renumbering) string {
	slices.SortStableFunc(edits, inText)
	var out strings.Builder
	params, end := parameters{r.statement}, 0
	for _, e := range edits {
		if e.From < end {
			continue
		}
		params.copied(&out, sqlparse.Span{From: end, To: e.From}, with)
		if with != nil && len(e.args) > 0 {
			with.renumber(&out, e.with, r.options.Reads.Rules())
		} else {
			out.WriteString(e.with)
		}
		end = e.To
	}
	params.copied(&out, sqlparse.Span{From: end, To: len(r.statement.Text)}, with)
	return out.String()
}

// renumbering maps the old number of each numbered parameter, less one, to its new number. It is
// needed if a text has only some of them, because a database requires numbers without gaps. It is
// nil for parameters without numbers.
type renumbering []int

// renumber writes a text that copies parameters.
func (r renumbering) renumber(out *strings.Builder, text string, reads sqltext.Flavor) {
	scanner, end := sqltext.NewScanner(text, reads), 0
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		if t.Kind != sqltext.Param {
			continue
		}
		after := strings.TrimLeft(text[t.Start+1:], "0123456789") // SQLite's ?2 are two tokens
		out.WriteString(text[end : t.Start+1])
		end = len(text) - len(after)
		number, _ := strconv.Atoi(text[t.Start+1 : end]) // the parser has accepted it
		out.WriteString(strconv.Itoa(r[number-1]))
	}
	out.WriteString(text[end:])
}

// parameters are the parameters of a statement.
type parameters struct{ of *sqlparse.Statement }

// renumbered returns arguments in the order of their parameters in a text. If these have numbers, it
// returns each argument once, in their order, and the new numbers of the parameters.
func (p parameters) renumbered(args []int) ([]int, renumbering) {
	if !p.numbered() {
		return args, nil
	}
	slices.Sort(args)
	args = slices.Compact(args)
	if len(args) == 0 {
		return args, renumbering{}
	}
	with := make(renumbering, args[len(args)-1]+1)
	for i, arg := range args {
		with[arg] = i + 1
	}
	return args, with
}

// around returns the arguments of a text with these edits: the text may lack a parameter, or
// contain a copied one twice.
func (p parameters) around(edits []edit) (args []int, with renumbering) {
	next := slices.Clone(edits)
	slices.SortStableFunc(next, inText)
	for _, q := range p.of.Params {
		for len(next) > 0 && next[0].From <= q.From {
			args, next = append(args, next[0].args...), next[1:]
		}
		if !slices.ContainsFunc(edits, func(e edit) bool { return q.Span.In(e.Span) }) {
			args = append(args, q.Index)
		}
	}
	for _, e := range next {
		args = append(args, e.args...)
	}
	return p.renumbered(args)
}

// marked returns a text with ? for these arguments in the form of numbered parameters.
func (p parameters) marked(text string, args []int) string {
	sign, out := "$", strings.Builder{}
	if p.numbered() {
		sign = p.of.Text[p.of.Params[0].From:][:1]
	}
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			out.WriteString(sign + strconv.Itoa(args[i-1]+1))
		}
		out.WriteString(part)
	}
	return out.String()
}

// in returns the arguments of the parameters in a part of the text.
func (p parameters) in(part sqlparse.Span) (args []int) {
	for _, q := range p.of.Params {
		if q.Span.In(part) {
			args = append(args, q.Index)
		}
	}
	return args
}

// named reports whether the parameters have names.
func (p parameters) named() bool { return len(p.of.Params) > 0 && p.of.Params[0].Name != "" }

// numbered reports whether the parameters have numbers.
func (p parameters) numbered() bool {
	return len(p.of.Params) > 0 && !p.named() && p.of.Params[0].To-p.of.Params[0].From > 1
}

// copied writes a part of the text.
func (p parameters) copied(out *strings.Builder, part sqlparse.Span, with renumbering) {
	text, all := p.of.Text, p.of.Params
	if with != nil {
		first, _ := slices.BinarySearchFunc(all, part.From, func(q *sqlparse.Param, at int) int { return q.From - at })
		for _, q := range all[first:] {
			if q.To > part.To {
				break
			}
			out.WriteString(text[part.From : q.From+1])
			out.WriteString(strconv.Itoa(with[q.Index]))
			part.From = q.To
		}
	}
	out.WriteString(text[part.From:part.To])
}

// rename replaces a logical table name by the physical one. The logical name becomes the alias, by
// which columns are qualified. A physical table with the logical name needs no alias.
func (p *Plan) rename(edits []edit, r *reference, physical string) []edit {
	if r.label() == physical {
		return edits
	}
	name := r.at.Name.Last().Span // the qualifier stays
	quoted := p.options.Quote(physical)
	edits = append(edits, edit{Span: name, with: quoted})
	switch {
	case r.at.Alias.Name != "":
	case r.renamed:
		for _, c := range r.columns {
			edits = append(edits, edit{Span: c.Span, with: quoted})
		}
	default:
		edits = append(edits, inserted(max(name.To, r.at.Partition.To), " AS "+name.Of(p.statement.Text)))
	}
	return edits
}

// isLabelled reports whether the name of a column of the result contains that of a sharded table: MySQL, MariaDB and SQLite
// name a selected expression without an alias by its text.
func isLabelled(p *Plan) bool {
	if p.statement.Query == nil || p.options.Merge.Engine == merge.PostgreSQL {
		return false
	}
	part := p.statement.Query.Parts[0]
	for part.Nested != nil {
		part = part.Nested.Parts[0]
	}
	return part.Select != nil && slices.ContainsFunc(part.Select.Items, func(i sqlparse.Item) bool {
		return i.Alias.Name == "" && slices.ContainsFunc(p.sharded, func(r *reference) bool { return r.at.Name.Parts[0].Span.In(i.Span) })
	})
}

// Labels replaces the names of a target's tables in the names of the columns of its rows by the names that the columns of one table
// would have. It is nil if they have none.
func Labels(p *Plan, to *Route) *strings.Replacer {
	if !p.labelled || to.Kind != One && to.Kind != Scatter {
		return nil
	}
	target := to.Target
	if to.Kind == Scatter {
		target = to.Shards.Targets[0].Target
	}
	var first, all []string
	for _, r := range p.sharded {
		at, _, err := p.snapshot.Hinted(r.table.Name, sharding.Hint{On: target})
		if err != nil || r.label() == at.Table {
			continue
		}
		name := r.at.Name.Last().Of(p.statement.Text)
		quoted := p.options.Quote(at.Table)
		first, all = append(first, quoted+" AS "+name, name), append(all, quoted, name)
	}
	return strings.NewReplacer(append(first, all...)...)
}

// unqualified returns the name if an expression is an unqualified name, otherwise "".
func unqualified(e sqlparse.Expr) string {
	if c, ok := sqlparse.Bare(e).(*sqlparse.Column); ok && len(c.Name.Parts) == 1 {
		return c.Name.Parts[0].Name
	}
	return ""
}

// longList is the smallest number of values of a list that is divided among the shards. A shorter
// list is sent whole: then the texts of all calls are the same, and a driver that keeps statements
// prepared by their texts prepares them once.
const longList = 32

// list is a long list of values to which a column that leads to slots is compared: id IN (…). A row
// of a shard can equal only those values that lead to this shard, so its text has no others.
type list struct {
	sqlparse.Span // from the first value to the last

	lead   *lead
	values []listValue
}

// listValue is a value of a list.
type listValue struct {
	sqlparse.Span
	operand
}

// lists returns the long lists of the conditions.
func (k *knowledge) lists(of parameters) (all []list) {
	if of.named() {
		return nil
	}
	for _, f := range k.facts {
		o := sqlparse.As(f.expr, sqlparse.In)
		if o == nil || len(o.Operands) <= longList {
			continue
		}
		c, ok := f.scope.column(o.Operands[0])
		if !ok || c.of.role != sharded {
			continue
		}
		l := list{lead: c.of.lead(c.name)}
		if l.lead != nil && l.take(o.Operands[1:]) && !slices.ContainsFunc(all, func(other list) bool { return l.Span.In(other.Span) }) {
			all = append(all, l)
		}
	}
	return all
}

// take returns false if some value is neither a literal nor a parameter.
func (l *list) take(values []sqlparse.Expr) bool {
	l.From, l.To = values[0].Bytes().From, values[len(values)-1].Bytes().To
	for _, e := range values {
		v, ok := constant(e)
		if !ok {
			return false
		}
		l.values = append(l.values, listValue{e.Bytes(), v})
	}
	return true
}

// united returns the texts of each target with these edits and with others, with UNION ALL between them.
func united(p *binding, targets []sharding.Target, edits, others []edit) ([]Shard, error) {
	shards, params, q := make([]Shard, len(targets)), parameters{p.statement}, p.statement.Query
	args, with := params.around(edits)
	if more, _ := params.around(others); !params.numbered() {
		args = append(args, more...)
	}
	args = p.sent(args)
	for i, target := range targets {
		first, err := p.edited(target, with, edits...)
		if err != nil {
			return nil, err
		}
		second, err := p.edited(target, with, others...)
		if err != nil {
			return nil, err
		}
		end := len(first) - (len(p.statement.Text) - q.To)
		shards[i] = Shard{target, first[:end] + " UNION ALL " + second[q.From:], args}
	}
	return shards, nil
}

// split returns the text of each target with these edits. Its long lists have only the values
// that rows of the target can have.
func (p *binding) split(targets []sharding.Target, edits []edit) ([]Shard, error) {
	shards, params := make([]Shard, len(targets)), parameters{p.statement}
	lists := slices.DeleteFunc(slices.Clone(p.lists), func(l list) bool {
		return slices.ContainsFunc(edits, func(e edit) bool { return e.From < l.To && l.From < e.To })
	})
	values := make([][]slots, len(lists))
	for i, l := range lists {
		values[i] = l.slots(p.args)
	}
	args, with := params.around(edits)
	args = p.sent(args)
	for i, target := range targets {
		own := slices.Clone(edits)
		for n, l := range lists {
			e, err := p.on(l, values[n], target)
			if err != nil {
				return nil, err
			}
			own = append(own, e)
		}
		if len(lists) > 0 {
			args, with = params.around(own)
			args = p.sent(args)
		}
		text, err := p.spliced(target, with, own)
		if err != nil {
			return nil, err
		}
		shards[i] = Shard{target, text, args}
	}
	return shards, nil
}

// spliced returns the cached text of a target if it has no edits.
func (p *binding) spliced(target sharding.Target, with renumbering, edits []edit) (string, error) {
	if len(edits) == 0 {
		to, err := p.routes.to(p.Plan, target)
		if err != nil {
			return "", err
		}
		return to.Text, nil
	}
	return p.edited(target, with, edits...)
}

// slots returns the slots of the rows that equal each value.
func (l *list) slots(args []any) []slots {
	all := make([]slots, len(l.values))
	for i, v := range l.values {
		all[i] = l.lead.slotOf(v.value(args))
	}
	return all
}

// on returns the list of a target. It keeps NULL, and values that may lead to any shard. If no value
// is left, it keeps one, which no row equals. It repeats the last value until the length is one of
// eight between two powers of two, so that there are few texts to prepare.
func (p *binding) on(l list, values []slots, target sharding.Target) (edit, error) {
	at, _, err := p.snapshot.Hinted(l.lead.table.Name, sharding.Hint{On: target})
	if err != nil {
		return edit{}, err
	}
	e, out := edit{Span: l.Span}, strings.Builder{}
	count, last := 0, l.values[0]
	add := func(v listValue) {
		if count++; count > 1 {
			out.WriteString(", ")
		}
		out.WriteString(v.Of(p.statement.Text))
		if v.param >= 0 {
			e.args = append(e.args, v.param)
		}
		last = v
	}
	for i, v := range l.values {
		if s := values[i]; s.one {
			if is, err := l.lead.table.On(s.only); err == nil && is != at {
				continue
			}
		}
		add(v)
	}
	for count < rounded(count) {
		add(last)
	}
	e.with = out.String()
	return e, nil
}

// rounded returns the next length of a list.
func rounded(n int) int {
	step := 1 << max(bits.Len(uint(max(n, 1)-1))-4, 0)
	return max((n+step-1)/step*step, 1)
}
