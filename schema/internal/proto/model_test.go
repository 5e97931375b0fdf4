// SPDX-License-Identifier: Apache-2.0

package proto

import "fmt"

// The model has three rows with a unique column, on a source and one target. Writers change
// the source. A runner has two copiers, whose chunks have one key each, and an applier. It
// may be killed between any two of its transactions, or continue as a fenced runner beside
// its successor. Every step below is one transaction, or one read, of the real runner.

const (
	keys    = 3
	logSize = 6
	values  = 2 // of the unique column; 0 is a row that does not exist
)

// mutant switches rules of the protocol off, to show what each is for.
type mutant struct {
	noPrune, noWait, dropWaiting, boundNotPersisted, noFence, ackAll bool
	flipFirst, boundAfterSnapshot, replace                           bool
}

type row [keys]uint8

type state struct {
	src, tgt         row
	log              [logSize]uint8 // key+1; compact, the oldest entry first
	low, hig         uint8          // how many keys; all of them are Top
	epoch, fence     uint8
	locked           uint8 // 1 + the runner that holds the lock
	renamed, flipped bool
	runners          [2]runner // the leader and a zombie
	writes, kills    uint8     // left
	zombies          bool      // the killed may live on
}

// The steps of a runner's start.
const (
	dead = iota
	newborn
	elected
	fencing
	pruning
	running
	draining  // under the lock
	switching // between the rename and the flip, in either order
	switched
)

type runner struct {
	pc       uint8
	epoch    uint8
	from     uint8 // low when it began
	finished [keys]bool
	taken    uint8
	slots    [2]slot
	app      applier
}

const (
	idle = iota
	bounded
	reading // has the snapshot without the bound: a mutant
	loaded
	clashed
	stored
)

type slot struct{ pc, key, val uint8 }

const (
	resting = iota
	paged
	classified
	reread
	applied
)

type applier struct {
	pc         uint8
	seen       uint8 // bits of the log
	low, hig   uint8
	apply      uint8 // bits of keys
	rows       row
	unfinished uint8
}

// violation is what must never happen.
type violation string

func bound(n uint8) Bound {
	switch n {
	case 0:
		return Bound{}
	case keys:
		return Top
	}
	return At(int64(n))
}

func id(key uint8) int64 { return int64(key) + 1 }

// watermark rebuilds what a runner holds in memory.
func (r *runner) watermark() (*Watermark, [keys]Chunk) {
	w := Resume(bound(r.from))
	var chunks [keys]Chunk
	for k := r.from; k < r.taken; k++ {
		chunks[k] = w.Take(bound(k + 1))
	}
	for k := r.from; k < r.taken; k++ {
		if r.finished[k] {
			w.Finish(chunks[k])
		}
	}
	return w, chunks
}

func (s *state) append(key uint8) bool {
	for i := range s.log {
		if s.log[i] == 0 {
			s.log[i] = key + 1
			return true
		}
	}
	return false
}

// remove deletes entries and closes the gaps; what runners have seen moves along.
func (s *state) remove(gone uint8) {
	var kept [logSize]uint8
	var place [logSize]int
	n := 0
	for i := range s.log {
		place[i] = -1
		if gone>>i&1 == 0 && s.log[i] != 0 {
			kept[n], place[i] = s.log[i], n
			n++
		}
	}
	s.log = kept
	for r := range s.runners {
		seen := uint8(0)
		for i := range place {
			if s.runners[r].app.seen>>i&1 == 1 && place[i] >= 0 {
				seen |= 1 << place[i]
			}
		}
		s.runners[r].app.seen = seen
	}
}

// clash returns the other key that has the value, or -1.
func (t *row) clash(key, val uint8) int {
	for k := range t {
		if uint8(k) != key && t[k] == val {
			return k
		}
	}
	return -1
}

// emit receives a successor, or the rule that the step broke.
type emit func(next state, broken violation)

// steps calls out for everything that can happen next.
func (s state) steps(m mutant, out emit) {
	if s.flipped && !s.renamed && s.locked == 0 {
		out(s, "split brain: writers may use the source and the shards")
		return
	}
	s.write(out)
	s.kill(out)
	s.restart(out)
	for i := range s.runners {
		s.boot(m, i, out)
		s.copy(m, i, out)
		s.apply(m, i, out)
		s.cutover(m, i, out)
	}
}

func (s state) write(out emit) {
	if s.writes == 0 || s.locked != 0 || s.renamed {
		return
	}
	for k := range uint8(keys) {
		for v := range uint8(values + 1) {
			n := s
			if v == s.src[k] || v != 0 && s.src.clash(k, v) >= 0 || !n.append(k) {
				continue
			}
			n.src[k] = v
			n.writes--
			out(n, "")
		}
	}
}

func (s state) kill(out emit) {
	if s.locked == 2 { // a stopped process that holds the lock ends some day
		n := s
		n.locked, n.runners[1] = 0, runner{}
		out(n, "")
	}
	if s.kills == 0 || s.flipped && s.locked == 0 {
		return
	}
	n := s
	n.kills--
	n.runners[0] = runner{pc: newborn}
	if s.locked == 1 {
		n.locked = 0
	}
	out(n, "")
	if s.zombies && s.runners[1].pc == dead {
		n.runners[1] = s.runners[0]
		if s.locked == 1 {
			n.locked = 2
		}
		out(n, "")
	}
}

// restart: an operator starts a runner when none is left that could lead.
func (s state) restart(out emit) {
	for _, r := range s.runners {
		if r.pc == newborn || r.pc != dead && r.epoch == s.epoch {
			return
		}
	}
	s.runners[0] = runner{pc: newborn}
	out(s, "")
}

// mayWrite reports whether a step may write. If another runner has locked the source's
// tables, the step waits; if the epoch is another runner's, the runner ends.
func (s *state) mayWrite(m mutant, i int) (wait, fenced bool) {
	if s.locked != 0 && int(s.locked) != i+1 {
		return true, false
	}
	return false, !m.noFence && !Leads(int64(s.runners[i].epoch), int64(s.epoch))
}

// ended is the state without runner i.
func (s state) ended(i int) state {
	if int(s.locked) == i+1 {
		s.locked = 0
	}
	s.runners[i] = runner{}
	return s
}

func (s state) boot(m mutant, i int, out emit) {
	r := &s.runners[i]
	if r.pc < newborn || r.pc > pruning {
		return
	}
	wait, fenced := s.mayWrite(m, i)
	if wait {
		return
	}
	if fenced && r.pc > newborn {
		out(s.ended(i), "")
		return
	}
	switch r.pc {
	case newborn:
		s.epoch++
		r.epoch = s.epoch
	case elected:
		s.fence = max(s.fence, r.epoch)
	case fencing:
		for k := s.low; k < s.hig && !m.noPrune; k++ {
			s.tgt[k] = 0
		}
	case pruning:
		s.hig = s.low
		r.from, r.taken = s.low, s.low
	}
	r.pc++
	if r.pc == running && s.renamed {
		if Diagnose([]bool{false}, []bool{true}) == Flip {
			s.flipped, r.pc = true, switched
		}
	}
	out(s, "")
}

func (s state) copy(m mutant, i int, out emit) {
	if s.runners[i].pc != running {
		return
	}
	for j := range s.runners[i].slots {
		s.copySlot(m, i, j, out)
	}
}

func (s state) copySlot(m mutant, i, j int, out emit) {
	r := &s.runners[i]
	c := &r.slots[j]
	w, chunks := r.watermark()
	switch c.pc {
	case idle:
		if w.Exhausted() {
			return
		}
		c.key = r.taken
		r.taken++
		if m.boundAfterSnapshot {
			c.pc, c.val = reading, s.src[c.key]
			out(s, "")
			return
		}
		s.raise(m, i, j, bounded, out)
	case reading:
		s.raise(m, i, j, loaded, out)
	case bounded:
		c.pc, c.val = loaded, s.src[c.key]
		out(s, "")
	case loaded:
		s.store(m, i, j, out)
	case clashed:
		if wait, _ := s.mayWrite(m, i); wait || !s.append(c.key) {
			return
		}
		c.pc = stored
		out(s, "")
	case stored:
		wait, fenced := s.mayWrite(m, i)
		if wait {
			return
		}
		if fenced {
			out(s.ended(i), "")
			return
		}
		low := w.Finish(chunks[c.key])
		r.finished[c.key] = true
		for s.low < keys && bound(s.low).Less(low) {
			s.low++
		}
		*c = slot{}
		out(s, "")
	}
}

// raise writes the bound of a chunk down.
func (s state) raise(m mutant, i, j int, next uint8, out emit) {
	c := &s.runners[i].slots[j]
	wait, fenced := s.mayWrite(m, i)
	if wait {
		return
	}
	if fenced {
		out(s.ended(i), "")
		return
	}
	if !m.boundNotPersisted {
		s.hig = max(s.hig, c.key+1)
	}
	c.pc = next
	out(s, "")
}

// store is the transaction of a chunk on the target.
func (s state) store(m mutant, i, j int, out emit) {
	c := &s.runners[i].slots[j]
	if !m.noFence && !Leads(int64(s.runners[i].epoch), int64(s.fence)) {
		out(s.ended(i), "")
		return
	}
	if c.val == 0 {
		c.pc = stored
		out(s, "")
		return
	}
	if s.tgt[c.key] != 0 {
		out(s, "a chunk meets a row with its own key on the target")
		return
	}
	other := s.tgt.clash(c.key, c.val)
	if other >= 0 && !m.replace {
		c.pc, c.val = clashed, 0
		out(s, "")
		return
	}
	if other >= 0 {
		s.tgt[other] = 0
	}
	s.tgt[c.key] = c.val
	c.pc, c.val = stored, 0
	out(s, "")
}

func (s state) apply(m mutant, i int, out emit) {
	r := &s.runners[i]
	if r.pc != running && r.pc != draining {
		return
	}
	a := &r.app
	switch a.pc {
	case resting:
		if s.log[0] == 0 {
			return
		}
		for e := range s.log {
			if s.log[e] != 0 {
				a.seen |= 1 << e
			}
		}
		a.pc = paged
	case paged:
		a.low, a.hig, a.pc = s.low, s.hig, classified
	case classified:
		for e := range s.log {
			if a.seen>>e&1 == 1 && s.class(m, s.log[e]-1, a.low, a.hig) == Apply {
				k := s.log[e] - 1
				a.apply |= 1 << k
				a.rows[k] = s.src[k]
			}
		}
		a.low, a.hig, a.pc = 0, 0, reread
	case reread:
		if a.apply != 0 && !m.noFence && !Leads(int64(r.epoch), int64(s.fence)) {
			out(s.ended(i), "")
			return
		}
		a.storeRows(&s.tgt, m)
	case applied:
		s.ack(m, i, out)
		return
	}
	out(s, "")
}

func (*state) class(m mutant, key, low, hig uint8) Class {
	c := Classify(id(key), bound(low), bound(hig))
	switch {
	case c == Wait && m.noWait:
		return Apply
	case c == Wait && m.dropWaiting:
		return Drop
	}
	return c
}

// storeRows is the transaction of a page on the target.
func (a *applier) storeRows(tgt *row, m mutant) {
	for k := range tgt {
		if a.apply>>k&1 == 1 {
			tgt[k] = 0
		}
	}
	for k := range tgt {
		if a.apply>>k&1 == 0 || a.rows[k] == 0 {
			continue
		}
		other := tgt.clash(uint8(k), a.rows[k])
		if other >= 0 && !m.replace {
			a.unfinished |= 1 << k
			continue
		}
		if other >= 0 {
			tgt[other] = 0
		}
		tgt[k] = a.rows[k]
	}
	a.rows, a.pc = row{}, applied
}

// ack is the transaction that deletes entries.
func (s state) ack(m mutant, i int, out emit) {
	wait, fenced := s.mayWrite(m, i)
	if wait {
		return
	}
	if fenced {
		out(s.ended(i), "")
		return
	}
	a := &s.runners[i].app
	var gone uint8
	for e := range s.log {
		if s.log[e] == 0 {
			continue
		}
		k := s.log[e] - 1
		done := a.apply>>k&1 == 1 && a.unfinished>>k&1 == 0
		seen := a.seen>>e&1 == 1
		if done && (seen || m.ackAll) || seen && s.class(m, k, s.low, s.hig) == Drop {
			gone |= 1 << e
		}
	}
	*a = applier{}
	s.remove(gone)
	out(s, "")
}

func (s state) cutover(m mutant, i int, out emit) {
	r := &s.runners[i]
	w, _ := r.watermark()
	switch {
	case r.pc == running && r.app.pc == resting && w.Complete() && s.locked == 0 && r.slots == [2]slot{}:
		if !m.noFence && !Leads(int64(r.epoch), int64(s.epoch)) {
			out(s.ended(i), "")
			return
		}
		s.locked, r.pc = uint8(i+1), draining
		out(s, "")
	case r.pc == draining && r.app.pc == resting && s.log[0] == 0 && bound(s.low) == Top:
		if m.flipFirst {
			s.flipped = true
		} else {
			s.renamed = true
		}
		r.pc = switching
		out(s, s.compare())
	case r.pc == switching:
		s.renamed, s.flipped, s.locked, r.pc = true, true, 0, switched
		out(s, s.compare())
	}
}

func (s *state) compare() violation {
	if s.renamed && s.src != s.tgt {
		return violation(fmt.Sprintf("lost: the source had %v and the target %v", s.src, s.tgt))
	}
	return ""
}

// final: the shards serve, and nobody writes to the source any more.
func (s *state) final() bool { return s.flipped && s.renamed && s.locked == 0 }
