// SPDX-License-Identifier: Apache-2.0

// Package plan creates the plan of one SQL statement on sharded tables: the text for each shard and
// the combination of the results, or the reason of a refusal with a hint what to write instead.
//
// It is a pure function: the same tree, [sharding.Snapshot] and facts about the columns give the
// same plan. It uses no database, no clock and no goroutine. testdata/plans contains statements and
// their plans.
//
// Each place where a statement names a table is a reference. The conditions on the rows of a
// reference prove in which slots these are, directly or through columns that are equal to those of
// other references (prove.go). If all references lead to one target, the whole text goes there with
// its names replaced (splice.go). For a query on several targets, scatter.go makes the text for
// each target, and combine.go the merge of their results. writes.go and rows.go divide a write.
// copies.go decides which statements leave all copies of a broadcast table equal.
package plan
