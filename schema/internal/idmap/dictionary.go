// SPDX-License-Identifier: Apache-2.0

package idmap

import "fmt"

// Direction is where rows are going.
type Direction bool

// The directions.
const (
	ToShards Direction = true
	ToSource Direction = false
)

// columns of the map table: what is known, and what is looked for.
func (d Direction) columns() (from, to string) {
	if d == ToShards {
		return "old", "new"
	}
	return "new", "old"
}

// Dictionary turns ids of one side into those of the other.
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

// Wanted are ids that map tables have to turn.
type Wanted map[*Renumbering]map[int64]bool

// Add takes an id, unless no map table has to be asked for it.
func (w Wanted) Add(r *Renumbering, id int64) {
	if !r.IsDrawn() || id == 0 {
		return
	}
	if w[r] == nil {
		w[r] = map[int64]bool{}
	}
	w[r][id] = true
}
