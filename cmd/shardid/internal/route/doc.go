// SPDX-License-Identifier: Apache-2.0

// Package route is the command that says where statements would go: one of the command line,
// or all of a query log, counted by what becomes of them.
//
// It promises to open no database: a statement is planned as package shardsql plans it, from
// the layout file alone.
package route
