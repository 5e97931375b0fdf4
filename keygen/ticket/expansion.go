// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"errors"
	"fmt"
	"math"
)

// Expansion is the plan to go from Old servers to New ones. Ids below From belong to the server
// with their remainder modulo Old, which made them; ids from From on belong to the server with
// their remainder modulo New. The steps, in this order:
//
//  1. On every old server set auto_increment_increment to New, globally and in
//     its configuration file; the offset stays. A Table that is configured for
//     Old then refuses the server, so restart the processes with New. End the
//     connections of other clients, whose sessions still count by Old.
//  2. Call [Expansion.Armed]. If it returns an error, make a new plan.
//  3. Set up the servers of [Expansion.Added], each with its increment, offset
//     and AUTO_INCREMENT.
//  4. Add them to the processes, with TableConfig.From set to From.
type Expansion struct {
	Old, New int64 // numbers of servers, which are their increments
	From     int64 // the boundary: the first id of the new numbering
}

// Start is the numbering and the first id of a new server.
type Start struct {
	Numbering     Numbering
	AutoIncrement int64 // its first id
}

// ErrUnarmed: an old server could pass the boundary of an expansion with the old increment, and
// so make ids of a new server. Returned by [Expansion.Armed].
var ErrUnarmed = errors.New("ticket: the expansion may not begin")

// PlanExpansion plans the way to a multiple of the present number of servers. The argument live
// holds the state of all present servers. The boundary lies margin above the highest id. The
// margin must be larger than the number of ids, whole spans included, that the servers issue
// until Armed is called.
func PlanExpansion(live []Live, servers, margin int64) (Expansion, error) {
	old := int64(len(live))
	e := Expansion{Old: old, New: servers}
	switch {
	case old == 0:
		return e, errors.New("ticket: there is no server to expand from; pass the Live of each server")
	case servers <= old || servers%old != 0 || servers > maxIncrement:
		return e, fmt.Errorf("ticket: cannot go from %d servers to %d; the number must be a multiple, 65535 at most", old, servers)
	case margin < 1:
		return e, fmt.Errorf("ticket: the margin is %d; it must be larger than the number of ids issued during the change", margin)
	}
	highest, err := e.highest(live)
	if err != nil {
		return e, err
	}
	if margin > math.MaxInt64-highest-servers {
		return e, fmt.Errorf("ticket: the boundary would be beyond 63 bits: %d and a margin of %d", highest, margin)
	}
	e.From = highest + margin
	return e, nil
}

// highest returns the highest id of all servers, or an error when they are not a complete
// family.
func (e Expansion) highest(live []Live) (highest int64, err error) {
	for i, l := range live {
		if want := (Numbering{int64(i + 1), e.Old}); l.Numbering != want {
			return 0, fmt.Errorf("ticket: server %d of %d: %w", i+1, e.Old, &NumberingError{Want: want, Got: l.Numbering})
		}
		highest = max(highest, l.Last)
	}
	return highest, nil
}

// Added returns the new servers, numbers Old+1 to New.
func (e Expansion) Added() []Start {
	added := make([]Start, 0, e.New-e.Old)
	for offset := e.Old + 1; offset <= e.New; offset++ {
		first := e.From + ((offset-e.From)%e.New+e.New)%e.New
		added = append(added, Start{Numbering{offset, e.New}, first})
	}
	return added
}

// Armed returns nil when all old servers have the new increment and were below the boundary
// when they got it; otherwise the error wraps [ErrUnarmed]. The argument live is the state of
// the servers after the change, in the order of their offsets. Call it once, before the new
// servers begin.
func (e Expansion) Armed(live []Live) error {
	if int64(len(live)) != e.Old {
		return fmt.Errorf("%w: the plan has %d old servers, but Armed got %d; pass the Live of all of them", ErrUnarmed, e.Old, len(live))
	}
	for i, l := range live {
		want := Numbering{int64(i + 1), e.New}
		switch {
		case l.Numbering != want:
			return fmt.Errorf("%w: server %d of %d: %w", ErrUnarmed, i+1, e.Old, &NumberingError{Want: want, Got: l.Numbering})
		case l.Last >= e.From:
			return fmt.Errorf("%w: server %d of %d has reached %d, and the boundary is %d; plan again with a larger margin", ErrUnarmed, i+1, e.Old, l.Last, e.From)
		}
	}
	return nil
}
