// SPDX-License-Identifier: Apache-2.0

// Package term formats output for people: aligned tables, emphasis where the terminal
// supports it, and the progress of long work.
//
// # Promise
//
// A stream that is not a terminal gets plain text and one line per finished phase. NO_COLOR
// (with any value but the empty one) and TERM=dumb turn emphasis off.
package term
