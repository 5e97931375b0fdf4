// SPDX-License-Identifier: Apache-2.0

// Package route implements the command route: it prints where one statement goes, or counts
// the statements of a query log by where they go.
//
// It plans a statement as package shardsql does, from the layout file, and opens no database
// unless it is asked to read the columns of one.
package route
