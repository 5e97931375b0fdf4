// SPDX-License-Identifier: Apache-2.0

// Package sqltext splits SQL text into tokens, so that code that searches for parameters, table
// names or parentheses does not mistake the content of a literal or a comment for code, or the
// reverse.
//
// It is a scanner, not a parser: it knows where a string ends, not what a statement means. For
// every input, valid SQL or not, the tokens cover the text: every byte belongs to exactly one
// token, in order. Scanning allocates nothing.
//
// The meaning of a text depends on the server: on its family, and on MySQL and MariaDB on its
// sql_mode, which is not part of the text. A [Flavor] is one set of rules. Code that must be
// certain scans the text with every possible flavor (for example MySQL and MySQL &^
// BackslashEscapes), and refuses it if any of them finds a problem.
package sqltext
