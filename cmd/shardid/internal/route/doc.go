// SPDX-License-Identifier: Apache-2.0

// Package route implements the command route: it prints where one statement goes, or counts
// the statements of a query log by where they go.
//
// It promises to open no database: it plans a statement as package shardsql does, from the
// layout file only.
package route
