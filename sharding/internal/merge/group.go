// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Function is the way in which the values of an aggregate are combined.
type Function uint8

// The functions.
const (
	// First returns the first value that is not NULL, for columns that are equal in the group.
	First Function = iota + 1
	// Count adds partial counts. With Distinct it counts the distinct tuples.
	Count
	// Sum adds partial sums.
	Sum
	// Min and Max compare partial results.
	Min
	Max
)

// Aggregate is a column of combined groups.
type Aggregate struct {
	Function Function
	Column   int // index of the value's column; unused by a Count with Distinct
	// Kind is the kind of Sum's result: Integer (an overflow is an error), Decimal, Float, or
	// Stored.
	Kind Kind
	// By is the column by which Min and Max compare: Column itself, or a hidden one with its
	// weight.
	By Key
	// Distinct are the columns of COUNT(DISTINCT) or SUM(DISTINCT). Each target returns them for each of their
	// values in a group. A tuple with a NULL does not count.
	Distinct []Key
}

// Grouping says how rows of several targets are combined into groups.
type Grouping struct {
	// Keys distinguish groups. Without keys all rows are one group, which exists even without rows,
	// as for aggregates without GROUP BY.
	Keys []Key
	// Names are the names of the Aggregates' columns.
	Names      []string
	Aggregates []Aggregate
}

// Grouped combines the rows of each group into one. It holds all groups, and returns them in the
// order of their first rows.
func Grouped(rows Rows, by Grouping, memory *Memory) Rows {
	g := &grouped{Grouping: by, memory: memory, index: map[string]*group{}}
	if len(by.Keys) == 0 {
		g.group(nil)
	}
	s := gather(rows, g.take, func() func([]driver.Value) error {
		g.index = nil
		return g.emit
	})
	s.columns = by.Names
	return s
}

type grouped struct {
	Grouping

	memory *Memory
	index  map[string]*group
	groups []*group // not yet returned
	row    []driver.Value
	key    []byte
}

type group struct {
	states []state
	seen   map[string]struct{} // tuples of DISTINCT
	size   int
}

// state is the state of an aggregate of a group.
type state struct {
	value driver.Value
	key   []byte // of value, for Min and Max
	sum   sum
	count int64 // of tuples of DISTINCT
}

func (g *grouped) group(key []byte) *group {
	made := &group{states: make([]state, len(g.Aggregates))}
	g.index[string(key)], g.groups = made, append(g.groups, made)
	return made
}

func (g *grouped) take(row []driver.Value) (err error) {
	g.row = row
	if g.key, err = appendKeys(g.key[:0], g.Keys, row); err != nil {
		return err
	}
	to := g.index[string(g.key)]
	if to == nil {
		to = g.group(g.key)
		err = g.hold(to, sizeOfGroup+len(g.key)+sizeOfState*len(g.Aggregates))
	}
	for i := range g.Aggregates {
		if err == nil {
			err = g.add(to, i)
		}
	}
	return err
}

func (g *grouped) hold(of *group, n int) error {
	of.size += n
	return g.memory.take(n)
}

func (g *grouped) add(to *group, i int) error {
	a, s := &g.Aggregates[i], &to.states[i]
	if a.Distinct != nil {
		if isNew, err := g.isNew(to, i); !isNew || err != nil {
			return err
		}
		s.count++
		if a.Function == Count {
			return nil
		}
	}
	v := g.row[a.Column]
	switch a.Function {
	case First:
		if s.value == nil && v != nil {
			return g.set(to, s, v)
		}
		return nil
	case Count:
		return s.sum.add(v, Integer)
	case Sum:
		return s.sum.add(v, a.Kind)
	default:
		return g.extreme(to, s, a)
	}
}

// isNew stores the present row's tuple and reports whether it counts.
func (g *grouped) isNew(to *group, i int) (bool, error) {
	keys := g.Aggregates[i].Distinct
	if slices.ContainsFunc(keys, func(k Key) bool { return g.row[k.Column] == nil }) {
		return false, nil
	}
	tuple, err := appendKeys(binary.AppendUvarint(nil, uint64(i)), keys, g.row)
	if err != nil {
		return false, err
	}
	if _, known := to.seen[string(tuple)]; known {
		return false, nil
	}
	if to.seen == nil {
		to.seen = map[string]struct{}{}
	}
	to.seen[string(tuple)] = struct{}{}
	return true, g.hold(to, sizeOfEntry+len(tuple))
}

func (g *grouped) extreme(to *group, s *state, a *Aggregate) error {
	by := a.By
	by.Desc, by.NullsFirst = false, a.Function == Max // NULL is less than the greatest value, and greater than the least
	key, err := appendKeys(nil, []Key{by}, g.row)
	if err != nil {
		return err
	}
	if s.key != nil {
		if c := bytes.Compare(key, s.key); c == 0 || c < 0 != (a.Function == Min) {
			return nil
		}
	}
	before := len(s.key)
	s.key = key
	if err := g.hold(to, len(key)-before); err != nil {
		return err
	}
	return g.set(to, s, g.row[a.Column])
}

func (g *grouped) set(to *group, s *state, v driver.Value) error {
	before := sizeOf(s.value)
	s.value = keep(v)
	return g.hold(to, sizeOf(v)-before)
}

// emit returns the first group and removes it.
func (g *grouped) emit(dest []driver.Value) error {
	if len(g.groups) == 0 {
		return io.EOF
	}
	first := g.groups[0]
	g.groups[0] = nil
	g.groups = g.groups[1:]
	g.memory.give(first.size)
	for i := range g.Aggregates {
		v, err := first.states[i].result(&g.Aggregates[i])
		if err != nil {
			return fmt.Errorf("%w (%s)", err, g.Names[i])
		}
		dest[i] = v
	}
	return nil
}

func (s *state) result(a *Aggregate) (driver.Value, error) {
	kind := a.Kind
	switch {
	case a.Function == Count && s.sum.form == isNull:
		return s.count, nil
	case a.Function == Count:
		kind = Integer
	case a.Function != Sum:
		return s.value, nil
	}
	x, err := s.sum.total(kind)
	return x.result(), err
}

// Distinct returns the first of the rows whose keys are equal. It holds the keys of all returned
// rows.
func Distinct(rows Rows, keys []Key, memory *Memory) Rows {
	seen := map[string]struct{}{}
	var key []byte
	return where(rows, func(row []driver.Value) (isNew bool, err error) {
		if key, err = appendKeys(key[:0], keys, row); err != nil {
			return false, err
		}
		if _, known := seen[string(key)]; known {
			return false, nil
		}
		seen[string(key)] = struct{}{}
		return true, memory.take(sizeOfEntry + len(key))
	})
}
