// SPDX-License-Identifier: Apache-2.0

// Package flat writes a query that reads groups from a derived table, or from its only CTE, as a query of groups: its WHERE
// becomes HAVING, and a column of the derived table becomes the expression that is selected there.
//
// The flat query has the same rows and the same names of columns as the original one in every database. A query of which
// that is not certain has no flat text.
package flat
