// SPDX-License-Identifier: Apache-2.0

// Package analysis finds what a statement names and what its conditions say: its tables and columns, what it writes, which
// shards can have its rows, and what differs between databases. [Of] reads the tree of a statement once; the planner decides
// from the result alone.
//
// Each place where a statement names a table is a [Reference] (reference.go), and a [Scope] says which column a name denotes
// (scope.go). builder.go walks over queries, insert.go and change.go over writes, expression.go over what they compute. A
// condition holds for the rows of some references; prove.go makes the proof of a reference from its own conditions, and from
// those of references whose columns equal its own (equality.go). derived.go does this through subqueries and CTEs. row.go finds the slots of
// inserted rows, variance.go functions whose values depend on the database, and refusal.go says why no plan can be made.
//
// It uses no database, no clock and no goroutine. An [Analysis] must not be used by several goroutines before it is complete.
package analysis
