// SPDX-License-Identifier: Apache-2.0

// Package splice replaces parts of the text of a statement, and keeps its parameters and arguments in step: a part may be
// left out, or copied, and numbered parameters get numbers without gaps. Every other byte of the text is unchanged, because
// a text that is written anew from a tree may mean something else.
package splice
