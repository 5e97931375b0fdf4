// SPDX-License-Identifier: Apache-2.0

// Package plan creates the plan of one SQL statement on sharded tables: the text for each shard and
// the combination of the results, or the reason of a refusal with a hint what to write instead.
//
// It is a pure function: the same tree, [sharding.Snapshot] and facts about the columns give the
// same plan. It uses no database, no clock and no goroutine. testdata/plans contains statements and
// their plans.
//
// [Of] makes a plan from what package analysis finds in the statement (plan.go), and [Plan.Bind] the route for its
// arguments (bind.go, route.go). If all references lead to one target, the whole text goes there with its names replaced
// (text.go). For a query on several targets, package combine determines what each of them returns, scatter.go makes their
// texts, lists.go divides long lists of values among them, and own.go leaves out rows whose slots move. insert.go,
// writes.go and modifying.go divide or refuse a write, lookups.go says what it changes in lookup tables, and copies.go
// decides which writes leave all copies of a broadcast table equal. origin.go routes statements on tables that a migration
// has not switched yet, and remedy.go says what leads to fewer shards.
//
// Some statements need an answer of a database before they are routed. owners.go asks lookup tables and shards for the
// rows of a value, and search.go and unique.go for rows that another shard may have under the same unique key. Others are
// planned again with another text: subquery.go puts the results of subqueries in their place, instants.go the time,
// literals.go and places.go arguments as literals, and arrays.go the elements of arrays as rows.
package plan
