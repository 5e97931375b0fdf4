// SPDX-License-Identifier: Apache-2.0

package proto

// Class is what an applier does with an entry of the log.
type Class int

const (
	// Apply is for a key that was copied: its row must be read again.
	Apply Class = iota
	// Wait is for a row of which a copier may hold an older version: the entry stays in the
	// log.
	Wait
	// Drop is for a row that no copier has read: the copier will read it with the change.
	Drop
)

// Classify decides what to do with an entry for the key id. The bounds must have been read
// after the entry. Before an entry is dropped, they must be read again in the transaction
// that deletes it, together with the epoch.
func Classify(id int64, low, hig Bound) Class {
	switch {
	case low.Covers(id):
		return Apply
	case hig.Covers(id):
		return Wait
	}
	return Drop
}

// Leads reports whether a runner with this epoch may write to a database with this fence.
// The fence must have been read under a lock in the same transaction.
func Leads(epoch, fence int64) bool { return epoch == fence }
