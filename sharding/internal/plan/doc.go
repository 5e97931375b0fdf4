// Package plan decides what becomes of one SQL statement over sharded tables: whether
// it goes whole to one shard, to several whose answers are combined, or is refused and
// what to write instead. Its promise: tree × snapshot × schema facts → plan. It is
// pure: the same tree, [sharding.Snapshot] and facts about the columns give the same
// plan, and there is no database, no clock and no goroutine. What it has to decide on
// stands in testdata/acceptance: the statements that a shop, a service for many
// accounts and a chat send, with what is expected of each.
package plan
