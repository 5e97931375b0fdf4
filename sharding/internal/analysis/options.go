// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Options are the inputs of a plan besides the statement.
type Options struct {
	Schema catalog.Schema
	// Home is the name of the router's database that is also the home database, "" if none is.
	Home string
	// Filled: the plan is one of the planner's Plan.Filled.
	Filled bool
	// Alone: the home database is the only one, so that no table has copies.
	Alone bool
	// Mode says whether a write may span databases.
	Mode sharding.TxMode
	// Merge is the arithmetic with which results of several shards are combined.
	Merge merge.Dialect
	// Reads is the dialect as which the text is parsed.
	Reads sqlparse.Dialect
	// Quote quotes a name in the dialect.
	Quote func(name string) string
}
