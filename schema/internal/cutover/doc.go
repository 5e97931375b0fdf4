// SPDX-License-Identifier: Apache-2.0

// Package cutover changes which side of a job serves. [Stage.Cutover] closes the source's
// tables and makes the shards serve; [Stage.Rollback] closes the shards and makes the
// source serve again.
//
// # Promise
//
// At every moment at most one side accepts writes, and it has all acknowledged ones: a side
// is closed by a rename, under a lock and after the last change was copied, before the
// route leads to the other one. After a crash, the names of the tables and the phase of the
// job show what is missing, so that the next runner finishes the switch. After the error of
// a switch that would have taken too long, everything is as before.
//
// A Stage is used by one goroutine at a time. The goroutines it starts end before its
// methods return.
package cutover
