// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"database/sql"
	"slices"

	"github.com/shardid/shardid/sharding"
)

// Name returns Config.Name.
func (s *Store) Name() string { return s.layout.name }

// Tables returns the tables of the map in the router's form, by name.
func (s *Store) Tables() []sharding.Table { return slices.Clone(s.layout.tables) }

// DB returns the database of a shard, nil if there is no such shard.
func (s *Store) DB(shard int) *sql.DB {
	if shard < 0 || shard >= s.layout.shards() {
		return nil
	}
	return s.layout.router.DB(s.layout.first()[shard].DB)
}

// Target returns a table's target on a shard; both must belong to the map.
func (s *Store) Target(table sharding.Table, shard int) sharding.Target {
	return s.layout.targets[table.Name][shard]
}

// ShardOf returns the shard of a target of any of the tables, or false.
func (s *Store) ShardOf(target sharding.Target) (shard int, ok bool) {
	for _, targets := range s.layout.targets {
		if i := slices.Index(targets, target); i >= 0 {
			return i, true
		}
	}
	return 0, false
}

// SlotSQL returns an expression for the slot of the row whose sharding key is column, an expression
// itself, for MySQL, MariaDB and SQLite. It reports false for rules that SQL cannot express, which
// a Store never has.
func SlotSQL(rule sharding.Rule, column string) (string, bool) {
	d := sharding.Describe(rule)
	return d.SQL(column, d.Slots)
}
