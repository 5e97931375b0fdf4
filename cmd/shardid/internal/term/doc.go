// SPDX-License-Identifier: Apache-2.0

// Package term writes for people: aligned tables, a little emphasis where the
// terminal shows it, and the progress of long work.
//
// # Promise
//
// A stream that is no terminal gets plain text, one line per finished phase and
// nothing that moves. NO_COLOR (any value but the empty one) and TERM=dumb turn
// emphasis off.
package term
