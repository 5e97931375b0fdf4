// SPDX-License-Identifier: Apache-2.0

// Package statefile keeps what a process must not forget in a small local file:
// replaced as a whole and synced, so that a reader finds the old content or the
// new one, also after a power cut, and locked against a second process.
//
// # Failure modes
//
// A disk that is full, or a directory that cannot be written to, is an error and
// leaves the old content. A disk that acknowledges what it has not written keeps
// no promise here. Locks need a Unix system; elsewhere [Lock] is an error.
package statefile
