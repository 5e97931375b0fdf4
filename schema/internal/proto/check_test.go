// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
)

// packed is a state in as few bits as it needs.
type packed [3]uint64

// bits writes and reads fields one after another.
type bits struct {
	word  uint64
	shift uint
}

func (b *bits) put(v uint8, n uint) {
	if uint64(v)>>n != 0 {
		panic("bug: a field of the model is too narrow")
	}
	b.word |= uint64(v) << b.shift
	b.shift += n
}

func (b *bits) get(n uint) uint8 {
	v := uint8(b.word & (1<<n - 1))
	b.word >>= n
	return v
}

// field is put or get.
type field func(v *uint8, n uint)

func (b *bits) putting() field { return func(v *uint8, n uint) { b.put(*v, n) } }
func (b *bits) getting() field { return func(v *uint8, n uint) { *v = b.get(n) } }

func flag(f field, v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	f(&n, 1)
	*v = n == 1
}

func (s *state) fields(f field) {
	for k := range s.src {
		f(&s.src[k], 2)
		f(&s.tgt[k], 2)
	}
	for e := range s.log {
		f(&s.log[e], 2)
	}
	for _, v := range []*uint8{&s.low, &s.hig, &s.locked, &s.writes, &s.kills} {
		f(v, 2)
	}
	f(&s.epoch, 3)
	f(&s.fence, 3)
	flag(f, &s.renamed)
	flag(f, &s.flipped)
	flag(f, &s.zombies)
}

func (r *runner) fields(f field) {
	f(&r.pc, 4)
	f(&r.epoch, 3)
	f(&r.from, 2)
	f(&r.taken, 2)
	for k := range r.finished {
		flag(f, &r.finished[k])
	}
	for j := range r.slots {
		f(&r.slots[j].pc, 3)
		f(&r.slots[j].key, 2)
		f(&r.slots[j].val, 2)
	}
	a := &r.app
	f(&a.pc, 3)
	f(&a.seen, logSize)
	f(&a.low, 2)
	f(&a.hig, 2)
	f(&a.apply, keys)
	f(&a.unfinished, keys)
	for k := range a.rows {
		f(&a.rows[k], 2)
	}
}

func (s state) pack() (p packed) {
	for i := range s.runners { // which copier has which chunk makes no difference
		if c := &s.runners[i].slots; c[1].key < c[0].key || c[1].key == c[0].key && c[1].pc < c[0].pc {
			c[0], c[1] = c[1], c[0]
		}
	}
	var b [3]bits
	s.fields(b[0].putting())
	s.runners[0].fields(b[1].putting())
	s.runners[1].fields(b[2].putting())
	for i := range b {
		p[i] = b[i].word
	}
	return p
}

func (p packed) unpack() (s state) {
	b := [3]bits{{word: p[0]}, {word: p[1]}, {word: p[2]}}
	s.fields(b[0].getting())
	s.runners[0].fields(b[1].getting())
	s.runners[1].fields(b[2].getting())
	return s
}

// exploration is every state that can be reached from the start.
type exploration struct {
	number map[packed]int32
	states []packed
	from   []int32    // an earlier state that leads to it
	edges  [][2]int32 // all steps, when they are wanted
	keep   bool
	broken violation
	at     int32
}

// explore goes on until everything was seen or a rule was broken.
func explore(start state, m mutant, keepEdges bool) *exploration {
	x := &exploration{number: map[packed]int32{}, keep: keepEdges}
	x.visit(start, -1)
	for i := int32(0); int(i) < len(x.states) && x.broken == ""; i++ {
		x.states[i].unpack().steps(m, func(next state, broken violation) {
			if broken != "" && x.broken == "" {
				x.broken, x.at = broken, i
			}
			x.visit(next, i)
		})
	}
	return x
}

func (x *exploration) visit(s state, from int32) {
	p := s.pack()
	n, known := x.number[p]
	if !known {
		n = int32(len(x.states))
		x.number[p] = n
		x.states = append(x.states, p)
		x.from = append(x.from, from)
	}
	if x.keep && from >= 0 {
		x.edges = append(x.edges, [2]int32{from, n})
	}
}

// stuck returns how many states have no way to a final one.
func (x *exploration) stuck() (count int, example state) {
	into := make([][]int32, len(x.states))
	for _, e := range x.edges {
		into[e[1]] = append(into[e[1]], e[0])
	}
	good := make([]bool, len(x.states))
	var todo []int32
	for i, p := range x.states {
		if s := p.unpack(); s.final() {
			good[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range into[i] {
			if !good[j] {
				good[j] = true
				todo = append(todo, j)
			}
		}
	}
	for i := range good {
		if !good[i] {
			count++
			example = x.states[i].unpack()
		}
	}
	return count, example
}

// history returns the states that lead to i.
func (x *exploration) history(i int32) (all []state) {
	for ; i >= 0; i = x.from[i] {
		all = append([]state{x.states[i].unpack()}, all...)
	}
	return all
}

func beginning(writes, kills uint8, zombies bool) state {
	s := state{src: row{0, 1, 2}, writes: writes, kills: kills, zombies: zombies}
	s.runners[0].pc = newborn
	return s
}

// history says what may happen in it at most.
type history struct {
	name          string
	writes, kills uint8
	zombies       bool
}

// histories returns those that are explored, and how many states they have at
// least. Nothing in them is concurrent: under the race detector, which takes ten
// times as long, fewer are.
func histories() (all []history, states int) {
	if effort.Race {
		return []history{{"a change and a crash", 1, 1, false}, {"a zombie", 0, 1, true}}, 10_000
	}
	return []history{{"changes", 3, 0, false}, {"changes and a crash", 2, 1, false}, {"a change and crashes", 1, 3, false}, {"a change and a zombie", 1, 1, true}, {"zombies", 0, 3, true}}, 1_000_000
}

func TestEveryHistoryEndsWithEqualTables(t *testing.T) {
	all, enough := histories()
	total := 0
	for _, h := range all {
		x := explore(beginning(h.writes, h.kills, h.zombies), mutant{}, true)
		total += len(x.states)
		if x.broken != "" {
			t.Fatalf("%s: %s after %+v", h.name, x.broken, x.history(x.at))
		}
		count, example := x.stuck()
		if count > 0 {
			t.Errorf("%s: %d of %d states cannot finish, such as %+v", h.name, count, len(x.states), example)
		}
		t.Logf("%s: %d states, %d steps", h.name, len(x.states), len(x.edges))
	}
	if total < enough {
		t.Errorf("%d states: the model has become too small to say much", total)
	}
}

func TestWithoutAnyOneRuleARowIsLost(t *testing.T) {
	for name, m := range map[string]mutant{
		"strays of a crash are not pruned":            {noPrune: true},
		"entries in flight do not wait":               {noWait: true},
		"entries in flight are dropped":               {dropWaiting: true},
		"the bound is not written down":               {boundNotPersisted: true},
		"nobody checks the epoch":                     {noFence: true},
		"entries that were not seen are acknowledged": {ackAll: true},
		"the route is flipped before the rename":      {flipFirst: true},
		"the bound is raised after the snapshot":      {boundAfterSnapshot: true},
		"a conflict replaces the other row":           {replace: true},
	} {
		x := explore(beginning(2, 1, false), m, false)
		if x.broken == "" {
			x = explore(beginning(1, 1, true), m, false)
		}
		if x.broken == "" {
			t.Errorf("%s: %d states, and nothing was found", name, len(x.states))
			continue
		}
		t.Logf("%s: %s, after %d steps (%d states)", name, x.broken, len(x.history(x.at)), len(x.states))
	}
}

func TestPackingLosesNothing(t *testing.T) {
	x := explore(beginning(1, 1, false), mutant{}, false)
	for _, p := range x.states {
		if p.unpack().pack() != p {
			t.Fatalf("%+v", p.unpack())
		}
	}
}
