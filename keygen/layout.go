// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Layout says how the bits of an id are used: the widths of its fields, and what its time field
// counts. Layouts are values; the zero Layout is invalid. For a layout that Validate refuses,
// Compose, Parse and Range return the error of Validate, and the results of the other methods
// have no meaning.
//
// When n is a power of two, `id % n` depends only on the lowest bits. If the sequence is the
// lowest field, the ids of one process spread evenly over up to 2^bits shards. If the worker is
// the lowest field, they all fall on one shard; take the shard from a hash of the id instead.
//
// An id is at most 63 bits wide, so it is positive in every signed 64-bit column. It is made of
// [Field]s in any order, except that a Bucket must be the last.
type Layout struct {
	// Epoch is the time at which the time field is 0.
	Epoch time.Time
	// Unit is the length of one tick of the time field, at least 1 ns.
	Unit time.Duration
	// Fields are the id's parts from the highest bit down: exactly one Time and
	// one Sequence, at most one of each other kind. A Bucket comes last.
	Fields []Field
}

// Field is one part of an id.
type Field struct {
	Kind Kind
	Bits int // width, 1 to 62
}

// width returns Bits limited to 0 to 62, because a shift by any other number would panic.
func (f Field) width() int { return min(max(f.Bits, 0), 62) }

// Kind says what a field holds.
type Kind int

// The kinds of fields.
const (
	Time       Kind = iota + 1 // ticks since the layout's epoch
	Datacenter                 // the high part of the worker id
	Worker                     // the low part of the worker id
	Sequence                   // numbers ids within a tick
	Bucket                     // the slot that routes the id's row (基因法)
)

var kindNames = [...]string{Time: "time", Datacenter: "datacenter", Worker: "worker", Sequence: "sequence", Bucket: "bucket"}

// String returns the field's name in lower case.
func (k Kind) String() string {
	if k < Time || k > Bucket {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Parts is an id split into its fields. Fields that a layout lacks are zero.
type Parts struct {
	Time       time.Time `json:"time"` // start of the tick, UTC
	Datacenter int64     `json:"datacenter"`
	Worker     int64     `json:"worker"`
	Sequence   int64     `json:"sequence"`
	Bucket     int64     `json:"bucket"`
}

// Validate returns nil, or an error that wraps [ErrLayout] and names the invalid field.
func (l Layout) Validate() error {
	if l.Unit < 1 {
		return fmt.Errorf("%w: Unit is %v; the shortest is 1ns", ErrLayout, l.Unit)
	}
	if l.Epoch.IsZero() {
		return fmt.Errorf("%w: Epoch is not set; ids would count from the year 1", ErrLayout)
	}
	seen, sum := map[Kind]bool{}, 0
	for i, f := range l.Fields {
		switch {
		case f.Kind < Time || f.Kind > Bucket:
			return fmt.Errorf("%w: Fields[%d] has the unknown kind %d", ErrLayout, i, int(f.Kind))
		case seen[f.Kind]:
			return fmt.Errorf("%w: Fields[%d] is a second %v field", ErrLayout, i, f.Kind)
		case f.Bits < 1 || f.Bits > 62:
			return fmt.Errorf("%w: Fields[%d] (%v) has %d bits, not 1 to 62", ErrLayout, i, f.Kind, f.Bits)
		}
		seen[f.Kind] = true
		sum += f.Bits
	}
	if !seen[Time] || !seen[Sequence] {
		return fmt.Errorf("%w: Fields must contain a time and a sequence", ErrLayout)
	}
	if sum > 63 {
		return fmt.Errorf("%w: Fields have %d bits together, more than 63: ids would be negative", ErrLayout, sum)
	}
	if seen[Bucket] && l.Fields[len(l.Fields)-1].Kind != Bucket {
		return fmt.Errorf("%w: the bucket must be the last field, so that id %% 2^bits is the slot", ErrLayout)
	}
	return nil
}

// WithBucket returns the layout with a Bucket of this many bits at its end; the Sequence
// becomes narrower by as many bits. A tick has as many ids as before, an equal share of them in
// each bucket. Generators of the layout store a row's slot in the row's id (基因法), so that the
// id alone determines the shard. [Layout.Validate] refuses the result when no bits are left for
// the Sequence, or when the layout already had a Bucket.
func (l Layout) WithBucket(bits int) Layout {
	fields := make([]Field, 0, len(l.Fields)+1)
	for _, f := range l.Fields {
		if f.Kind == Sequence {
			f.Bits -= bits
		}
		fields = append(fields, f)
	}
	fields = append(fields, Field{Kind: Bucket, Bits: bits})
	l.Fields = fields
	return l
}

// Bits returns the width of a field, 0 when the layout lacks it.
func (l Layout) Bits(k Kind) int {
	for _, f := range l.Fields {
		if f.Kind == k {
			return f.width()
		}
	}
	return 0
}

// Shift returns the number of bits below a field, 0 when the layout lacks it.
func (l Layout) Shift(k Kind) int {
	shift := 0
	for _, f := range slices.Backward(l.Fields) {
		if f.Kind == k {
			return shift
		}
		shift += f.width()
	}
	return 0
}

// WorkerBits returns the width of a worker id: the widths of worker and datacenter together.
func (l Layout) WorkerBits() int { return l.Bits(Worker) + l.Bits(Datacenter) }

// SplitWorker sets the datacenter and worker of parts from a worker id of WorkerBits bits, as
// an [Assigner] gives it.
func (l Layout) SplitWorker(parts *Parts, id int64) {
	parts.Datacenter = id >> l.Bits(Worker)
	parts.Worker = id & l.max(Worker)
}

// Tick returns the number of whole units from the epoch to t, rounded down. It is negative
// before the epoch, and limited to the range of int64.
func (l Layout) Tick(t time.Time) int64 {
	sec, nsec := t.Unix()-l.Epoch.Unix(), int64(t.Nanosecond()-l.Epoch.Nanosecond())
	if nsec < 0 {
		sec, nsec = sec-1, nsec+int64(time.Second)
	}
	neg := sec < 0
	if neg { // work on the magnitude, rounded up, so that the result rounds down
		sec, nsec = -sec, -nsec
		if nsec < 0 {
			sec, nsec = sec-1, nsec+int64(time.Second)
		}
	}
	hi, lo := bits.Mul64(uint64(sec), uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(nsec), 0)
	hi += carry
	unit := uint64(l.Unit)
	if hi >= unit {
		return saturated(neg)
	}
	q, r := bits.Div64(hi, lo, unit)
	if neg && r > 0 {
		q++
	}
	if q > 1<<63-1 {
		return saturated(neg)
	}
	if neg {
		return -int64(q)
	}
	return int64(q)
}

func saturated(neg bool) int64 {
	if neg {
		return -1 << 63
	}
	return 1<<63 - 1
}

// latest is the number of seconds from the epoch at which At ends: 36 billion years.
const latest = uint64(1) << 60

// At returns the start of a tick, in UTC, at most 36 billion years from the epoch.
func (l Layout) At(tick int64) time.Time {
	neg := tick < 0
	u := uint64(tick)
	if neg {
		u = -u
	}
	hi, lo := bits.Mul64(u, uint64(l.Unit))
	sec, nsec := latest, uint64(0)
	if hi < uint64(time.Second) { // otherwise the quotient would overflow
		sec, nsec = bits.Div64(hi, lo, uint64(time.Second))
	}
	s, n := min(sec, latest), int64(nsec)
	if neg {
		return time.Unix(l.Epoch.Unix()-int64(s), int64(l.Epoch.Nanosecond())-n).UTC()
	}
	return time.Unix(l.Epoch.Unix()+int64(s), int64(l.Epoch.Nanosecond())+n).UTC()
}

// Compose makes an id of its parts; it rounds p.Time down to a whole Unit. When a part does not
// fit its field, or the layout has no field for it, the error wraps [ErrLayout].
func (l Layout) Compose(p Parts) (int64, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	values := map[Kind]int64{
		Time: l.Tick(p.Time), Datacenter: p.Datacenter, Worker: p.Worker, Sequence: p.Sequence, Bucket: p.Bucket,
	}
	var id int64
	for k := Time; k <= Bucket; k++ {
		if v := values[k]; v < 0 || v > l.max(k) {
			return 0, fmt.Errorf("%w: %v %d is not between 0 and %d", ErrLayout, k, v, l.max(k))
		}
		id |= values[k] << l.Shift(k)
	}
	return id, nil
}

// Parse splits an id into its parts. It refuses a negative id, and one with more bits than the
// layout, because the layout did not make them; the error wraps [ErrLayout]. Ids of an expired
// layout still parse.
func (l Layout) Parse(id int64) (Parts, error) {
	if err := l.Validate(); err != nil {
		return Parts{}, err
	}
	if id < 0 {
		return Parts{}, fmt.Errorf("%w: id %d is negative; ids have at most 63 bits", ErrLayout, id)
	}
	if w := l.width(); id>>w != 0 {
		return Parts{}, fmt.Errorf("%w: id %d has more than the layout's %d bits", ErrLayout, id, w)
	}
	field := func(k Kind) int64 { return id >> l.Shift(k) & l.max(k) }
	return Parts{
		Time:       l.At(field(Time)),
		Datacenter: field(Datacenter),
		Worker:     field(Worker),
		Sequence:   field(Sequence),
		Bucket:     field(Bucket),
	}, nil
}

// Range returns the lowest and the highest possible id whose time is in [from, to), for
// conditions like `id BETWEEN lo AND hi`. When Time is not the highest field, or the period
// contains no tick of the layout, the error wraps [ErrLayout].
func (l Layout) Range(from, to time.Time) (lo, hi int64, err error) {
	if err := l.Validate(); err != nil {
		return 0, 0, err
	}
	if l.Fields[0].Kind != Time {
		return 0, 0, fmt.Errorf("%w: ids do not sort by time, as time is not the highest field", ErrLayout)
	}
	// A tick belongs to the period if its start does.
	first := max(l.Tick(from.Add(l.Unit-1)), 0)
	last := min(l.Tick(to.Add(l.Unit-1))-1, l.max(Time))
	if first > last {
		return 0, 0, fmt.Errorf("%w: no tick of the layout starts between %v and %v", ErrLayout, from, to)
	}
	shift := l.Shift(Time)
	return first << shift, last<<shift | (1<<shift - 1), nil
}

// Fingerprint returns a text that identifies how the layout makes ids of a time, a worker id, a
// sequence and a bucket: the fields from the highest bit down, the unit and the epoch, as in
// "time:41 worker:10 sequence:12 unit:1ms epoch:2010-11-04T01:42:54.657Z". Processes whose
// fingerprints differ can make the same id even when their worker ids differ. A datacenter
// directly above the worker counts as one worker field with it, because a worker id fills both.
// The text does not change from version to version, because ledgers of worker ids store it.
func (l Layout) Fingerprint() string {
	var b strings.Builder
	for i := 0; i < len(l.Fields); i++ {
		f := l.Fields[i]
		if f.Kind == Datacenter && i+1 < len(l.Fields) && l.Fields[i+1].Kind == Worker {
			i++
			f = Field{Worker, f.Bits + l.Fields[i].Bits}
		}
		if f.Kind == Datacenter && l.Bits(Worker) == 0 {
			f.Kind = Worker
		}
		_, _ = fmt.Fprintf(&b, "%v:%d ", f.Kind, f.Bits)
	}
	_, _ = fmt.Fprintf(&b, "unit:%v epoch:%s", l.Unit, l.Epoch.UTC().Format(time.RFC3339Nano))
	return b.String()
}

// Above returns the time before which ids of the layout old are lower than all ids that l makes
// at from or later, whatever the worker ids. So processes with the layout old that end before
// that time never repeat an id of processes with l that start at from. Time must be the highest
// field of both layouts, and from must fit the time field of l; otherwise the error wraps
// [ErrLayout].
//
// Use it to replace one layout by another, of 10 worker bits by one of 12, say. If the epochs
// are equal and the time fields have the same position, it returns the tick of from itself: all
// processes with the old layout must have ended by then. With an epoch that is a year earlier,
// it returns a time a year later: until then processes of both layouts may run side by side.
func (l Layout) Above(old Layout, from time.Time) (until time.Time, err error) {
	for _, layout := range []Layout{l, old} {
		if err := layout.Validate(); err != nil {
			return time.Time{}, err
		}
		if layout.Fields[0].Kind != Time {
			return time.Time{}, fmt.Errorf("%w: ids do not sort by time, as time is not the highest field", ErrLayout)
		}
	}
	tick := l.Tick(from)
	if tick < 0 || tick > l.max(Time) {
		return time.Time{}, fmt.Errorf("%w: %v is not between its epoch %v and its end %v", ErrLayout, from, l.Epoch, l.Expires())
	}
	lowest := tick << l.Shift(Time)
	return old.At(min(lowest>>old.Shift(Time), old.max(Time)+1)), nil
}

// Expires returns the first time that does not fit the time field.
func (l Layout) Expires() time.Time { return l.At(l.max(Time) + 1) }

// Capacity is how many ids a layout has.
type Capacity struct {
	Workers   int64     // number of worker ids
	PerTick   int64     // ids per worker and tick
	PerSecond float64   // ids per worker and second
	Expires   time.Time // end of the time field
}

// Capacity returns how many ids the layout has. These limits hold for every generator: 12
// sequence bits and milliseconds allow 4096 ids per millisecond, one per 244 ns.
func (l Layout) Capacity() Capacity {
	perTick := l.max(Sequence) + 1
	return Capacity{
		Workers:   int64(1) << l.WorkerBits(),
		PerTick:   perTick,
		PerSecond: float64(perTick) * float64(time.Second) / float64(l.Unit),
		Expires:   l.Expires(),
	}
}

func (l Layout) max(k Kind) int64 { return int64(1)<<l.Bits(k) - 1 }

func (l Layout) width() int {
	sum := 0
	for _, f := range l.Fields {
		sum += f.Bits
	}
	return sum
}
