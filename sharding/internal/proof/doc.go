// SPDX-License-Identifier: Apache-2.0

// Package proof says in which slots the rows of a table can be, if they satisfy a condition. A [Proof] is made once for a
// statement, and gives a set of [Slots] for its arguments.
//
// A proof never fails and never guesses: a value that a database may read differently than the rule of the table proves
// nothing, and then all slots may have such rows. [WhyNoSlot] says what such a value is.
//
// A proof is immutable and safe for concurrent use.
package proof
