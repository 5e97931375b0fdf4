// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"maps"
	"slices"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// Rows combines the rows of the shards' texts, of which it holds no more than memory allows. Closing the result closes them.
func (s *Shards) Rows(d merge.Dialect, sources []merge.Rows, memory *merge.Memory) merge.Rows {
	combined := rowsOf
	if s.Group != nil {
		combined = groupsOf
	}
	all := combined(d, sources, s, memory)
	if s.Counted != "" {
		return merge.Counted(all, s.Counted)
	}
	return all
}

// rowsOf combines rows of shards.
func rowsOf(d merge.Dialect, sources []merge.Rows, s *Shards, memory *merge.Memory) (all merge.Rows) {
	hidden := s.Summed + len(s.Distinct) + len(s.Order)
	first := len(sources[0].Columns()) - hidden
	totals := shown(first, s.Totals)
	first += s.Summed
	switch order := behind(first, s.Order); {
	case len(totals) > 0:
		all = merge.Totalled(d, sources, order, totals)
	case len(order) > 0:
		all = merge.Ordered(sources, order)
	default:
		all = merge.Concat(sources)
	}
	all = merge.Running(d, all, running(first, s))
	if len(s.Distinct) > 0 {
		all = merge.Distinct(all, behind(first, s.Distinct), memory)
	}
	return merge.Cut(merge.Limited(all, s.Offset, s.Count), hidden)
}

// running returns the window functions of ordered rows. first is the first of the hidden columns behind those of Summed.
func running(first int, s *Shards) (all []merge.Window) {
	for _, r := range s.Running {
		w := r.Window
		w.Column, w.Order = shown(first-s.Summed, []int{w.Column})[0], behind(first, s.Order[:r.Keys])
		if w.Of >= 0 {
			w.Of += first - s.Summed
		}
		all = append(all, w)
	}
	return all
}

// shown returns columns of which negative ones are counted from the first hidden one.
func shown(first int, columns []int) []int {
	all := slices.Clone(columns)
	for i, at := range all {
		if at < 0 {
			all[i] = first + at
		}
	}
	return all
}

// behind returns keys whose columns are counted from the first hidden one.
func behind(first int, hidden []merge.Key) []merge.Key {
	keys := slices.Clone(hidden)
	for i := range keys {
		keys[i].Column += first
	}
	return keys
}

// groupsOf combines groups of shards.
func groupsOf(d merge.Dialect, sources []merge.Rows, s *Shards, memory *merge.Memory) merge.Rows {
	g := s.Group
	names := make([]string, len(g.Columns))
	copy(names, sources[0].Columns()[:g.Shown])
	all := merge.Grouped(merge.Concat(sources), merge.Grouping{Keys: g.Keys, Names: names, Aggregates: g.Columns}, memory)
	if g.Having != nil {
		all = merge.Filtered(all, g.Having, g.Args)
	}
	early, late := chosenOf(g.Made, keysOf(g.Windows))
	all = merge.Windowed(d, merge.Computed(d, all, early, g.Args), g.Windows, memory)
	early, late = chosenOf(late, g.Sort)
	all = merge.Sorted(merge.Computed(d, all, early, g.Args), g.Sort, memory)
	all = merge.Limited(all, s.Offset, s.Count)
	if s.Counted == "" || d.Engine != merge.PostgreSQL { // PostgreSQL does not compute, or divide by 0 in, groups that LIMIT omits, and columns that nothing reads
		all = merge.Computed(d, all, late, g.Args)
	}
	return merge.Cut(all, len(g.Columns)-g.Shown)
}

// keysOf returns the columns that window functions read.
func keysOf(windows []merge.Window) (keys []merge.Key) {
	for _, w := range windows {
		keys = slices.Concat(keys, w.Partition, w.Order, []merge.Key{{Column: w.Of}})
	}
	return keys
}

// chosenOf returns the computed columns among some columns, and the others.
func chosenOf(made map[int]merge.Expr, among []merge.Key) (some, others map[int]merge.Expr) {
	some, others = map[int]merge.Expr{}, maps.Clone(made)
	for _, key := range among {
		if one, ok := others[key.Column]; ok {
			some[key.Column] = one
			delete(others, key.Column)
		}
	}
	return some, others
}
