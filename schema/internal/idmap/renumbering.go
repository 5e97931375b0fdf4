// SPDX-License-Identifier: Apache-2.0

package idmap

import (
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Renumbering is how the rows of one table get new ids. Columns that refer to them share
// it. nil keeps the ids.
type Renumbering struct {
	By     Numbering
	Of     *backend.Table // the table of the source
	Number int            // the table's number in the map table
}

// IsDrawn reports whether a map table has the ids; false for nil.
func (r *Renumbering) IsDrawn() bool {
	if r == nil {
		return false
	}
	_, drawn := r.By.(Drawn)
	return drawn
}

// Text describes the numbering without disclosing a key.
func (r *Renumbering) Text() string { return r.By.Text() }

// Accepts fails when an id has no counterpart on the shards.
func (r *Renumbering) Accepts(id int64) error {
	if id < 0 {
		return fmt.Errorf("%w: %d is below zero, and only ids from 1 up are numbered anew", ErrNoID, id)
	}
	if r.IsDrawn() {
		return nil
	}
	_, err := New(r.By, id)
	return err
}
