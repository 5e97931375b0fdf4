package snowflake

import "github.com/shardid/shardid/keygen"

// shape is a layout worked out for composing: how far each field is shifted.
type shape struct {
	layout keygen.Layout

	seqBits, seqShift, timeShift uint8
	seqMask                      int64
	end                          int64 // the highest state whose tick fits the time field
	buckets                      int64 // 0 without a bucket field
}

func newShape(l keygen.Layout) shape {
	s := shape{
		layout:    l,
		seqBits:   uint8(l.Bits(keygen.Sequence)),
		seqShift:  uint8(l.Shift(keygen.Sequence)),
		timeShift: uint8(l.Shift(keygen.Time)),
		seqMask:   int64(1)<<l.Bits(keygen.Sequence) - 1,
		end:       int64(1)<<(l.Bits(keygen.Time)+l.Bits(keygen.Sequence)) - 1,
	}
	if n := l.Bits(keygen.Bucket); n > 0 {
		s.buckets = int64(1) << n
	}
	return s
}

// compose makes the id of a state; rest is what stands in the other fields.
func (s *shape) compose(state, rest int64) int64 {
	return s.tick(state)<<(s.timeShift&63) | state&s.seqMask<<(s.seqShift&63) | rest
}

// composeAll sets dst to the ids of the states from first on. Those of one tick
// are equally far apart, so that each takes an addition only.
func (s *shape) composeAll(dst []int64, first, rest int64) {
	step := int64(1) << (s.seqShift & 63)
	for len(dst) > 0 {
		id := s.compose(first, rest)
		n := min(int64(len(dst)), s.seqMask-first&s.seqMask+1)
		for i := range dst[:n] {
			dst[i] = id
			id += step
		}
		dst, first = dst[n:], first+n
	}
}

// tick returns the tick of a state. The shifts of the hot path are masked, as
// the compiler would otherwise add what Go says of those by 64 bits and more.
func (s *shape) tick(state int64) int64 { return state >> (s.seqBits & 63) }

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
