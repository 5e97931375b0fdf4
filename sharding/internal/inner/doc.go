// SPDX-License-Identifier: Apache-2.0

// Package inner executes texts on connections of the pools below a routed database, as database/sql would execute them
// on these pools.
//
// A text is sent on the driver's own connection, with the arguments in the form that this driver requires. Its rows are
// the driver's own rows, so nothing is copied. A connection returns to its pool when its rows are closed, unless a
// transaction or a session holds it; then it also keeps statements prepared.
//
// What one statement has allocated is used again by the next one of the same session.
package inner
