// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// Difference is a line of a physical table's definition that most others of its table lack,
// or that only this one lacks.
type Difference struct {
	Table  string          `json:"table"` // the logical one
	Target sharding.Target `json:"target"`
	Line   string          `json:"line"`  // with logical names
	Lacks  bool            `json:"lacks"` // the others have it, and this one does not
}

// String describes the difference in a sentence.
func (d Difference) String() string {
	if d.Lacks {
		return fmt.Sprintf("%s lacks what most others have: %s", d.Target, d.Line)
	}
	return fmt.Sprintf("%s has what most others lack: %s", d.Target, d.Line)
}

// Drift compares the whole definitions of all physical tables of each sharded table, and of
// all copies of each broadcast table. It writes nothing, and needs no files. For
// unreachable databases it returns an error beside the differences among the others.
func (r *Runner) Drift(ctx context.Context) (all []Difference, err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if all, err = v.drift(ctx); err != nil {
		return nil, err
	}
	return all, v.missing
}

func (v *visit) drift(ctx context.Context) (all []Difference, err error) {
	for _, table := range v.router.Tables() {
		if table.Origin() != nil {
			continue
		}
		found, err := v.compare(ctx, table.Name, v.router.Targets(table.Name))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, name := range v.router.Broadcasts() {
		var copies []sharding.Target
		for _, s := range v.shards {
			copies = append(copies, sharding.Target{DB: s.name, Table: name})
		}
		found, err := v.compare(ctx, name, copies)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// compare compares the definitions of one table with the most common one.
func (v *visit) compare(ctx context.Context, table string, targets []sharding.Target) (all []Difference, err error) {
	defined := map[sharding.Target][]string{}
	votes := map[string]int{}
	for _, target := range targets {
		i := slices.IndexFunc(v.shards, func(s *shard) bool { return s.name == target.DB })
		if i < 0 {
			continue
		}
		s := v.shards[i]
		lines, err := s.definition(ctx, s, target.Table, neighbours(v.router, table, target))
		if err != nil {
			return nil, err
		}
		defined[target] = lines
		votes[strings.Join(lines, "\n")]++
	}
	if len(votes) < 2 {
		return nil, nil
	}
	usual := slices.MaxFunc(slices.Sorted(maps.Keys(votes)), func(a, b string) int { return votes[a] - votes[b] })
	for _, target := range targets {
		lines, asked := defined[target]
		if !asked {
			continue
		}
		all = append(all, differences(table, target, lines, strings.Split(usual, "\n"))...)
	}
	return all, nil
}

func differences(table string, target sharding.Target, lines, usual []string) (all []Difference) {
	for _, line := range usual {
		if line != "" && !slices.Contains(lines, line) {
			all = append(all, Difference{table, target, line, true})
		}
	}
	for _, line := range lines {
		if !slices.Contains(usual, line) {
			all = append(all, Difference{table, target, line, false})
		}
	}
	if len(all) == 0 && !slices.Equal(lines, usual) {
		all = append(all, Difference{table, target, "the order of the lines: " + strings.Join(usual, "; "), true})
	}
	return all
}

// neighbours returns the physical tables of one shard of a group by their logical names,
// for foreign keys.
func neighbours(router *sharding.Snapshot, table string, target sharding.Target) map[string]string {
	names := map[string]string{fold(table): target.Table}
	t, sharded := router.Lookup(table)
	if !sharded {
		return names
	}
	for slot := range router.Slots(table) {
		if at, ok := t.Map.Target(sharding.Slot(slot)); !ok || at != target {
			continue
		}
		for _, other := range router.Tables() {
			if at, ok := other.Map.Target(sharding.Slot(slot)); ok && at.DB == target.DB && router.SameGroup(table, other.Name) {
				names[fold(other.Name)] = at.Table
			}
		}
		return names
	}
	return names
}
