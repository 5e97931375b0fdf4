// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"database/sql"
	"slices"
	"strings"
)

// rowArena stores the values of rows that are read together in few large allocations.
type rowArena struct {
	text strings.Builder
	ends []int
}

// The first block has the size that the first row needs. Each further block is twice as
// large, up to these limits.
const (
	arenaBytes = 64 << 10
	arenaEnds  = 8 << 10
)

// keep copies the values of a row. Values kept before are not moved.
func (s *rowArena) keep(raw []sql.RawBytes) (text string, ends []int) {
	size := 0
	for _, v := range raw {
		size += len(v)
	}
	if has := s.text.Cap(); has-s.text.Len() < size {
		s.text.Reset()
		s.text.Grow(max(size, min(2*has, arenaBytes)))
	}
	if has := cap(s.ends); has-len(s.ends) < len(raw) {
		s.ends = make([]int, 0, max(len(raw), min(2*has, arenaEnds)))
	}
	from, first := s.text.Len(), len(s.ends)
	for _, v := range raw {
		s.text.Write(v)
		end := s.text.Len() - from
		if v == nil {
			end = ^end
		}
		s.ends = append(s.ends, end)
	}
	return s.text.String()[from:], slices.Clip(s.ends[first:])
}
