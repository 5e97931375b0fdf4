package snowflake

import "github.com/shardid/shardid/keygen"

// shape is a layout worked out for composing: how far each field is shifted.
type shape struct {
	layout keygen.Layout

	seqBits, seqShift, timeShift uint8
	seqMask                      int64
	end                          int64 // the highest state whose tick fits the time field
}

func newShape(l keygen.Layout) shape {
	return shape{
		layout:    l,
		seqBits:   uint8(l.Bits(keygen.Sequence)),
		seqShift:  uint8(l.Shift(keygen.Sequence)),
		timeShift: uint8(l.Shift(keygen.Time)),
		seqMask:   int64(1)<<l.Bits(keygen.Sequence) - 1,
		end:       int64(1)<<(l.Bits(keygen.Time)+l.Bits(keygen.Sequence)) - 1,
	}
}

// compose makes the id of a state; rest is what stands in the other fields.
func (s *shape) compose(state, rest int64) int64 {
	return state>>s.seqBits<<s.timeShift | state&s.seqMask<<s.seqShift | rest
}

// worker puts a worker id in its place.
func (s *shape) worker(id int64) int64 {
	var p keygen.Parts
	s.layout.SplitWorker(&p, id)
	return p.Datacenter<<s.layout.Shift(keygen.Datacenter) | p.Worker<<s.layout.Shift(keygen.Worker)
}

// before returns the state just below the first one of a tick; a tick beyond
// the end gives the end.
func (s *shape) before(tick int64) int64 {
	if tick > s.end>>s.seqBits {
		return s.end
	}
	return tick<<s.seqBits - 1
}
