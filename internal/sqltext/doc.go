// SPDX-License-Identifier: Apache-2.0

// Package sqltext splits SQL text into tokens, so that the code that looks for
// parameters, table names or parentheses never mistakes what stands inside a
// literal or a comment for code, nor the other way round.
//
// It is a scanner, not a parser: it knows where a string ends, not what a
// statement means. It promises that the tokens tile the text (every byte
// belongs to exactly one token, in order), for every input, valid SQL or not,
// and that scanning allocates nothing.
//
// What a text means depends on the server: its family, and on MySQL and
// MariaDB its sql_mode, which a client cannot see in the text. A [Flavor] is
// one reading. Code that guards something scans every reading that is possible
// (MySQL and MySQL &^ BackslashEscapes, say) and refuses what looks bad in any
// of them.
package sqltext
