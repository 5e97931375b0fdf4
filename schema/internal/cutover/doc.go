// SPDX-License-Identifier: Apache-2.0

// Package cutover changes which side of a job serves: [Stage.Cutover] closes the source's
// tables and has the shards serve, [Stage.Rollback] closes the shards and has the source
// serve again.
//
// # Promise
//
// At every moment at most one side takes writes, and what was acknowledged is on it: a
// side is closed by a rename, under a lock and after the last change was brought over,
// before the route leads to the other one. Whatever ends a switch, the names of the tables
// and the phase of the job say what is missing, so that the next runner finishes it. The
// error of a switch that would have taken too long says that everything is as before.
//
// A Stage is used by one goroutine at a time. Those it starts have ended when its methods
// return.
package cutover
