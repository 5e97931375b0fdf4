// SPDX-License-Identifier: Apache-2.0

package idmap

import "fmt"

// Direction is the side to which rows are copied.
type Direction bool

// The directions.
const (
	ToShards Direction = true
	ToSource Direction = false
)

// columns returns the columns of the map table for the known and for the wanted id.
func (d Direction) columns() (from, to string) {
	if d == ToShards {
		return "old", "new"
	}
	return "new", "old"
}

// Dictionary translates ids of one side to those of the other.
type Dictionary struct {
	Way   Direction
	known map[*Renumbering]map[int64]int64 // from map tables
}

// Turn returns the id on the other side.
func (d Dictionary) Turn(r *Renumbering, id int64) (int64, error) {
	switch {
	case r == nil || id == 0:
		return id, nil
	case r.IsDrawn():
		other, ok := d.known[r][id]
		if !ok {
			return 0, fmt.Errorf("%w: %d is not in the map table", ErrNoID, id)
		}
		return other, nil
	case d.Way == ToShards:
		return New(r.By, id)
	}
	return Old(r.By, id)
}

// Wanted are ids for which map tables have to be read.
type Wanted map[*Renumbering]map[int64]bool

// Add adds an id, unless its renumbering has no map table.
func (w Wanted) Add(r *Renumbering, id int64) {
	if !r.IsDrawn() || id == 0 {
		return
	}
	if w[r] == nil {
		w[r] = map[int64]bool{}
	}
	w[r][id] = true
}
