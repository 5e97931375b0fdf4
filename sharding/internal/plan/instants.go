// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// At returns the plan of the statement that has these times in place of its instants.
func At(p *Plan, times []string) *Plan {
	edits := make([]splice.Edit, len(times))
	for i, one := range p.Instants {
		edits[i] = splice.Edit{Span: one.Span, With: strings.Replace(one.Written, "%", times[i], 1)}
	}
	return planAgain(p, splice.Written(p.Statement, edits, nil, p.Options.Reads.Rules()))
}

// planAgain returns the plan of another text in the place of the statement's.
func planAgain(p *Plan, text string) *Plan {
	return Of(sqlparse.Parse(text, p.Options.Reads), p.Snapshot, p.Options)
}

// rewritten returns the text of the statement with edits, and its arguments among those of the statement.
func rewritten(p *Plan, edits []splice.Edit) (text string, args []int) {
	args, with := splice.Around(p.Statement, edits)
	return splice.Written(p.Statement, edits, with, p.Options.Reads.Rules()), args
}

// Sampled returns p for a statement that needs no value of a database before it can be routed.
// Otherwise it returns the plan of the statement with sample times and sample results of subqueries:
// for a statement that is not executed. It also returns the arguments of that statement.
func Sampled(p *Plan, args []any, hint sharding.Hint) (*Plan, []any) {
	if _, err := p.Bind(args, hint); err == nil {
		return p, args
	}
	if text, left, ok := Unnested(p, args); ok {
		return Sampled(planAgain(p, text), left, hint)
	}
	if made, values, ok := sampledSubqueries(p, args, hint); ok {
		return made, values
	}
	if len(p.Instants) == 0 {
		return p, args
	}
	times := make([]string, len(p.Instants))
	for i, one := range p.Instants {
		times[i] = one.Sample
	}
	return At(p, times), args
}

// sampledSubqueries returns the plan of the statement with a number in place of each subquery that can
// be executed first, and its arguments. It returns false if that plan is refused, too.
func sampledSubqueries(p *Plan, args []any, hint sharding.Hint) (*Plan, []any, bool) {
	of := func(text string, args []any) (*Plan, []any, bool) {
		made, args := Sampled(planAgain(p, text), args, hint)
		_, err := made.Bind(args, hint)
		return made, args, err == nil || made.IsUntyped(err)
	}
	var samples []Result
	all := slices.DeleteFunc(Subqueries(p), func(s Subquery) bool {
		text, own := Executed(p, s)
		sub, _, ok := of(text, Selected(args, own))
		return !ok || !StandsAlone(sub, s)
	})
	if len(all) == 0 {
		return nil, nil, false
	}
	for range all {
		samples = append(samples, Result{Text: sampleNumber})
	}
	text, left := Substituted(p, all, samples)
	return of(text, Selected(args, left))
}

// sampleNumber stands for the result of a subquery in a text that is not executed. It is not written as a
// constant, because a constant would lead to one shard.
const sampleNumber = "0 + 0"

// Selected returns the arguments at some indexes, without those that are missing.
func Selected(args []any, which []int) []any {
	few := make([]any, 0, len(which))
	for _, i := range which {
		if i < len(args) {
			few = append(few, args[i])
		}
	}
	return few
}
