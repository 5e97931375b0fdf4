// SPDX-License-Identifier: Apache-2.0

package periodic

import "time"

// Bounds returns the name and the bounds of the period that t lies in, in the zone of t.
func (p Period) Bounds(t time.Time) (name string, from, to time.Time) {
	s := p.at(t)
	return s.name, s.from, s.to
}
