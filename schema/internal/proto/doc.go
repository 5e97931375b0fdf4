// SPDX-License-Identifier: Apache-2.0

// Package proto holds the decisions of a live migration, without any database:
// what to do with an entry of the change log, how far the copy is complete,
// whether a runner may still write, and which phase follows which.
//
// Its tests explore every interleaving of writers, two copiers, an applier,
// kills and zombies over these same functions, and show that each rule is
// needed: without it they find a history in which a row is lost. A second model is of a row
// that lies where another one does: of the entries that tell a follower to look below.
//
// # Words
//
// A row is known by its integer key. A copier takes chunks of keys in rising
// order. Every key up to low has been copied; keys above low and up to hig may
// be on their way; above hig no copier has looked yet. A change of a row leaves
// an entry with its key in the log, in the transaction of the change. Runners
// have epochs: the one with the highest leads, and every transaction of a
// runner checks that its epoch is still the one in the database.
//
// # Why nothing is lost
//
// For every key up to low, the target had the source's row at some moment, and
// each later change has an entry that is still in the log. An entry goes only
// after its row was read again and committed on the target, or when its key is
// above hig, as the copy that comes will see the change.
package proto
