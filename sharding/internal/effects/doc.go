// SPDX-License-Identifier: Apache-2.0

// Package effects reads from a text what a statement does to the session in which it is executed: to its settings,
// its user variables, its transaction and its savepoints. And it reads which earlier statement of the session the text
// asks about, as ROW_COUNT() does.
//
// A statement on rows of tables has no such effects. It is told by a look at a few words, without a regular
// expression.
package effects
