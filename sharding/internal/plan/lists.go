// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// longList is the smallest number of values of a list that is divided among the shards. A shorter
// list is sent whole: then the texts of all calls are the same, and a driver that keeps statements
// prepared by their texts prepares them once.
const longList = 32

// list is a long list of values to which a column that leads to slots is compared: id IN (…). A row
// of a shard can equal only those values that lead to this shard, so its text has no others.
type list struct {
	sqlparse.Span // from the first value to the last

	lead    *proof.Lead
	written []sqlparse.Expr
	values  []proof.Operand
}

// lists returns the long lists of the conditions.
func lists(b *analysis.Analysis) (all []list) {
	if splice.Named(b.Statement) {
		return nil
	}
	for _, f := range b.Facts {
		o := sqlparse.As(f.Expr, sqlparse.In)
		if o == nil || len(o.Operands) <= longList {
			continue
		}
		c, ok := f.Scope.Column(o.Operands[0])
		if !ok || c.Of.Role != analysis.Sharded {
			continue
		}
		written := o.Operands[1:]
		span := sqlparse.Span{From: written[0].Bytes().From, To: written[len(written)-1].Bytes().To}
		values, known := proof.Constants(written)
		lead := c.Of.Lead(c.Name)
		if known && lead != nil && !slices.ContainsFunc(all, func(other list) bool { return span.In(other.Span) }) {
			all = append(all, list{span, lead, written, values})
		}
	}
	return all
}

// on returns the list of a target. It keeps NULL, and values that may lead to any shard. If no value
// is left, it keeps one, which no row equals. It repeats the last value until the length is one of
// eight between two powers of two, so that there are few texts to prepare.
func (p *binding) on(l list, values []proof.Slots, target sharding.Target) (splice.Edit, error) {
	at, err := besideTarget(p.Plan, l.lead.Table, target)
	if err != nil {
		return splice.Edit{}, err
	}
	e, out := splice.Edit{Span: l.Span}, strings.Builder{}
	count, last := 0, 0
	add := func(i int) {
		if count++; count > 1 {
			out.WriteString(", ")
		}
		out.WriteString(l.written[i].Bytes().Of(p.Statement.Text))
		if param := l.values[i].Param; param >= 0 {
			e.Args = append(e.Args, param)
		}
		last = i
	}
	for i, s := range values {
		if s.One {
			if is, err := l.lead.Table.On(s.Only); err == nil && is != at {
				continue
			}
		}
		add(i)
	}
	for count < rounded(count) {
		add(last)
	}
	e.With = out.String()
	return e, nil
}

// rounded returns the next length of a list.
func rounded(n int) int {
	step := 1 << max(bits.Len(uint(max(n, 1)-1))-4, 0)
	return max((n+step-1)/step*step, 1)
}
