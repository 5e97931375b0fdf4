// SPDX-License-Identifier: Apache-2.0

// Package statefile stores the state of a process in a small local file. The file is replaced as a
// whole and synced, so that a reader finds the old content or the new one, also after a power cut.
// It can be locked against a second process.
//
// # Failure modes
//
// If the disk is full, or the directory is not writable, the call returns an error and leaves the
// old content. A disk that acknowledges writes which it has not made can lose the content. Locks
// need a Unix system; elsewhere [Lock] is an error.
package statefile
