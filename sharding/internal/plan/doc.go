// SPDX-License-Identifier: Apache-2.0

// Package plan decides what becomes of one SQL statement over sharded tables: whether
// it goes whole to one shard, or home, or is refused and what to write instead. Its
// promise: tree × snapshot × schema facts → plan. It is pure: the same tree,
// [sharding.Snapshot] and facts about the columns give the same plan, and there is no
// database, no clock and no goroutine. testdata/plans shows what becomes of what.
//
// Each place where a statement names a table is a reference. The conditions that the
// rows of a reference satisfy prove in which slots they lie: by themselves, and by
// columns that they equate with those of other references (prove.go). If the
// references lead to one target together, the whole text goes there, with its names
// replaced (splice.go), whatever else is in it. Of a query that several targets have
// to answer, combine.go says how their answers become one, and scatter.go what each of
// them is asked. writes.go and rows.go divide a write, copies.go says which statements
// leave all copies of a broadcast table the same.
package plan
