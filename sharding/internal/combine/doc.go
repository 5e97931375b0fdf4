// SPDX-License-Identifier: Apache-2.0

// Package combine finds how the results of several shards become the result that a single table would have, or why they
// cannot: which rows, groups and columns each shard returns, by which columns they are sorted and compared, and how the
// partial results of aggregates become one.
//
// [Of] decides once for a query (combine.go); [Combination.Bind] adds what depends on arguments (shards.go); and [Shards.Rows]
// combines the rows with package merge (rows.go). groups.go is about GROUP BY, aggregate.go about aggregates, average.go about
// averages, having.go about what is computed from them, outer.go about groups of rows that every database has, running.go about
// ranks and running sums of rows, counted.go about the number of rows, exists.go about EXISTS, and sets.go about INTERSECT and
// EXCEPT. value.go, function.go, json.go and series.go determine how the values of an expression compare in the database, because
// a merge must order and group them so. apart.go says why rows that belong together are not on one shard.
//
// It uses no database, no clock and no goroutine.
package combine
