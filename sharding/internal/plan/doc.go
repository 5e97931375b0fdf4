// SPDX-License-Identifier: Apache-2.0

// Package plan creates the plan of one SQL statement on sharded tables: the text for each shard and
// the combination of the results, or the reason of a refusal with a hint what to write instead.
//
// It is a pure function: the same tree, [sharding.Snapshot] and facts about the columns give the
// same plan. It uses no database, no clock and no goroutine. testdata/plans contains statements and
// their plans.
//
// [Of] makes a plan from what package analysis finds in the statement, and [Plan.Bind] the route for its arguments
// (plan.go). If all references lead to one target, the whole text goes there with its names replaced (text.go). For a query
// on several targets, package combine determines what each of them returns, and scatter.go makes their texts. insert.go
// and writes.go divide a write. lookup.go and unique.go search for rows that another shard may have under the same unique
// key. copies.go decides which statements leave all copies of a broadcast table equal, and origin.go routes statements on
// tables that a migration has not switched yet.
package plan
