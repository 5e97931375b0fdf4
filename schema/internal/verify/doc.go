// SPDX-License-Identifier: Apache-2.0

// Package verify compares the rows of a source with those of its shards while both are
// written to.
//
// [Compare] reads ranges of rows and their sums, and looks at single rows only where sums
// differ. [Hashes] tells the rows of one table apart for those who compare by themselves.
//
// # Promise
//
// A row is said to differ only when no change of it was under way: two looks have to
// agree, and before and after each there was no entry of the row in a log and its source
// stayed as it was. Such a row is noted in the log, to be written again; nothing else is
// written, no lock is taken, and with Options.Guarded nothing is noted once a table is
// not what it was. The goroutines of Compare end before it returns.
package verify
