// SPDX-License-Identifier: Apache-2.0

package snowflake

// firstSequence says with which sequence the ids of a tick begin.
type firstSequence struct {
	way    Sequence // Config.Sequence
	random func(below int64) int64
	mask   int64 // the highest sequence
}

// after returns the first sequence of a new tick; s is the last state of an earlier one.
func (f *firstSequence) after(s int64) int64 {
	if f.way == Carry {
		return (s + 1) & f.mask
	}
	return f.ofLease()
}

// ofLease returns the sequence of the first id of a lease. It is random, because otherwise
// processes that issue few ids would put more rows on some shards.
func (f *firstSequence) ofLease() int64 {
	switch f.way {
	case FromZero:
		return 0
	case Scatter:
		return f.random(f.mask/10 + 1)
	default:
		return f.random(f.mask + 1)
	}
}
