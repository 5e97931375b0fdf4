// SPDX-License-Identifier: Apache-2.0

package proto

// Class says what an applier does with an entry of the log.
type Class int

const (
	// Apply is for a key that was copied: its row must be read again.
	Apply Class = iota
	// Wait is for a row of which a copier may hold an older reading: the entry
	// stays as it is.
	Wait
	// Drop is for a row that no copier has read: whoever copies it will see the
	// change.
	Drop
)

// Classify decides about an entry of key id. The bounds must have been read
// after the entry; before an entry is dropped, they must be read again in the
// transaction that deletes it, together with the epoch.
func Classify(id int64, low, hig Bound) Class {
	switch {
	case low.Covers(id):
		return Apply
	case hig.Covers(id):
		return Wait
	}
	return Drop
}

// Leads reports whether a runner of this epoch may write to a database whose
// fence says what was read in the same transaction, under a lock.
func Leads(epoch, fence int64) bool { return epoch == fence }
