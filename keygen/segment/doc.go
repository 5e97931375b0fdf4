// SPDX-License-Identifier: Apache-2.0

// Package segment issues ids from segments of a counter in the application's own database
// (Leaf-segment, 号段模式). One round trip reserves thousands of ids, and the next segment is
// fetched while the current one is in use (double buffer).
//
// # Promise
//
// No id is issued twice, provided that the source never returns one twice. For sqlstore's tags
// that is as durable as the database's commits. Ids of one process rise. Ids of several
// processes rise together only roughly, because each process works through its own segments.
// Ids are dense, so consecutive ids tell a customer how many orders there were; package keygen
// has other text forms. A process that issues few ids issues only the first ones of a segment.
// Because segments begin at multiples of the step, `id % n` of many such processes falls on few
// shards.
//
// # Size of a segment
//
// The first two segments have the row's step. Then the size follows the demand, as in Leaf. If
// a segment would last less than 15 minutes, the next one is twice as large. If it would last
// more than 30 minutes, the next one is half as large. The size is never below the row's step
// and never above Config.MaxStep. The next segment is fetched when a tenth of the current one
// is used, so that at a steady rate the ids in memory last for at least 13 minutes. The
// generator reads the row's step again with the first fetch after a minute; when it has
// changed, the size begins with the new step.
//
// # Failure modes
//
// While the database is down, the generator issues the ids that it has in memory. After the
// last one, calls wait until their context ends, or for ten seconds at most, and return
// [keygen.ErrStarved], which wraps the database's error. A database that is only slow makes
// calls wait but not fail; waiting calls get ids in the order in which they came.
//
// New returns errors that a retry cannot cure at once, and so does Next when the ids in memory
// are used up. Such errors are an unknown tag ([keygen.ErrUnknownTag]), a counter at its end
// ([keygen.ErrExhausted]), and a [keygen.SetupError], which says what to do: for a missing
// table, right or column, a step below 1, or a closed *sql.DB. When a counter went back, after
// a restored backup say, the error is [keygen.ErrRegressed] and no id of that segment is
// issued. A process that starts after the restore cannot know which ids others issued before,
// so raise the counter above the ids in use when you restore a backup. Processes that run go on
// with the ids that they have in memory, two segments each: end them before, or raise the counter
// by as much more.
//
// Ids that are in memory at Close, or when the process dies, become gaps: two segments at most.
//
// Each tag has its own Generator, which does not wait for the database of another tag.
package segment
