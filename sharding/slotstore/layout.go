// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/sharding"
)

// layout is the map's configuration: its tables, and the targets of each.
type layout struct {
	name    string // of the map
	router  *sharding.Router
	tables  []sharding.Table             // by the names in Config.Shards
	targets map[string][]sharding.Target // by shard, of each table
	slots   int

	patience time.Duration // of statements; see Config
}

// newLayout checks that the tables of a valid configuration have the same rule.
func newLayout(c Config) (*layout, error) {
	l := &layout{name: c.Name, router: c.Router, targets: map[string][]sharding.Target{}, patience: c.Patience}
	for _, name := range slices.Sorted(maps.Keys(c.Shards)) {
		t, _ := c.Router.Table(name)
		l.tables, l.targets[t.Name] = append(l.tables, t), c.Shards[name]
		if l.slots = t.Rule.Slots(); l.slots != l.tables[0].Rule.Slots() {
			return nil, fmt.Errorf("Config.Shards: tables %q and %q have different rules", name, l.tables[0].Name)
		}
	}
	return l, nil
}

// first returns the targets of the first table: those of all others are on the same databases.
func (l *layout) first() []sharding.Target { return l.targets[l.tables[0].Name] }

func (l *layout) shards() int { return len(l.first()) }

// present returns the shard of each slot in the router's present map.
func (l *layout) present() ([]int, error) {
	shardOf := make([]int, l.slots)
	for i, t := range l.tables {
		targets := l.targets[t.Name]
		for slot := range shardOf {
			target, _ := t.Map.Target(sharding.Slot(slot)) // the router accepts complete maps only
			shard := slices.Index(targets, target)
			switch {
			case shard < 0:
				return nil, fmt.Errorf("%w: Config.Shards: slot %d of table %q is on %s, which is not among the table's targets there", ErrConfig, slot, t.Name, target)
			case i > 0 && shard != shardOf[slot]:
				return nil, fmt.Errorf("%w: Config.Shards: slot %d of table %q is on %s, which is shard %d, and on shard %d for another table", ErrConfig, slot, t.Name, target, shard, shardOf[slot])
			}
			shardOf[slot] = shard
		}
	}
	return shardOf, nil
}

// missing is the error for a map that the database does not have.
func (l *layout) missing(err error) error {
	return fmt.Errorf("%w: map %q; call Create once, or run shardid rebalance create: %w", ErrNoMap, l.name, err)
}

// check refuses a map that does not fit this configuration.
func (l *layout) check(v View) error {
	if len(v.Slots) != l.slots {
		return fmt.Errorf("%w: map %q has %d rows for %d slots; call Create first", sharding.ErrStaleMap, l.name, len(v.Slots), l.slots)
	}
	for i, slot := range v.Slots {
		if int(slot.Slot) != i || slot.Shard < 0 || max(slot.Shard, slot.Other) >= l.shards() {
			return fmt.Errorf("%w: slot %d of map %q is on shards %d and %d, and there are %d in Config.Shards; deploy the longer list first", sharding.ErrStaleMap, slot.Slot, l.name, slot.Shard, slot.Other, l.shards())
		}
	}
	return nil
}

// maps returns the view in the form of the router.
func (l *layout) maps(v View, valid func() bool) (map[string]sharding.Map, error) {
	all := make(map[string]sharding.Map, len(l.tables))
	for _, t := range l.tables {
		targets := l.targets[t.Name]
		place := make([]sharding.Target, len(v.Slots))
		var held, shared []sharding.Slot
		for i, slot := range v.Slots {
			place[i] = targets[slot.Shard]
			if slot.State == Fenced {
				held = append(held, slot.Slot)
			}
			if slot.State != Active {
				shared = append(shared, slot.Slot)
			}
		}
		m, err := sharding.MapOf(place...)
		if err != nil {
			return nil, err
		}
		all[t.Name] = m.At(v.Version).Holding(held...).Sharing(shared...).Patient(l.patience).While(valid)
	}
	return all, nil
}
