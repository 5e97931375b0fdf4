// SPDX-License-Identifier: Apache-2.0

package proto

import "math"

// Bound is a closed upper bound of keys. The zero Bound covers no key.
type Bound struct {
	Set bool // false: below every key
	ID  int64
}

// Top covers every key: as bounds are closed, the largest key is above all.
var Top = Bound{Set: true, ID: math.MaxInt64}

// At returns the bound that covers id and every smaller key.
func At(id int64) Bound { return Bound{Set: true, ID: id} }

// Covers reports whether id is at or below the bound.
func (b Bound) Covers(id int64) bool { return b.Set && id <= b.ID }

// Less reports whether b covers less than other.
func (b Bound) Less(other Bound) bool {
	if !b.Set || !other.Set {
		return !b.Set && other.Set
	}
	return b.ID < other.ID
}
