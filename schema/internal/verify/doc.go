// SPDX-License-Identifier: Apache-2.0

// Package verify compares the rows of a source with those of its shards while both are
// written to.
//
// [Compare] reads the sums of ranges of rows, and single rows only where sums differ.
// [Hashes] returns the hashes of one table's rows, for callers that compare themselves.
//
// # Promise
//
// A row is reported as different only if no change of it was pending: two reads agree, no
// log had an entry of the row before and after each, and the source's row stayed the same.
// Such a row is noted in the log, so that it is written again. Nothing else is written, and
// no lock is taken. With Options.Guarded nothing is noted after a table has changed. The
// goroutines of Compare end before it returns.
package verify
