// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"slices"
	"testing"
)

// This model is of one parent and one child, which lies on the shard that its parent leads
// to. Transactions move the parent, and insert and delete the child. A move leaves an entry
// that tells the follower to look below: the statement that moves the parent need not see a
// child that was committed after its transaction had begun. The follower replaces such an
// entry by one of each child that it finds. It may be killed between any two of its
// transactions.

// The entries of the log.
const (
	noEntry = iota
	ofChild
	lookBelow
)

// carelessness switches rules off.
type carelessness struct {
	noteInMove  bool // children are noted by the statement that moves their parent
	deleteFirst bool // what tells to look below is deleted in a transaction before
	readBefore  bool // a row is read before its entries
	ackAll      bool // entries are deleted that were not seen
	leaveOthers bool // the row is not deleted on other shards
}

// The steps of the follower.
const (
	asleep = iota
	hasRead
	hasSeen
	hasDeleted
	looked
	hasRow
	hasWritten
)

// family is a state of the model.
type family struct {
	leads uint8 // the shard that the parent leads to
	child bool
	on    [2]bool // which shards have the child
	log   [8]uint8

	moving, sees bool // a transaction has begun to move the parent, and sees the child

	pc, seen   uint8 // seen has bits of the log
	there      bool  // what the follower has read
	at         uint8
	moves      uint8 // left, as are writes and kills
	writes     uint8
	kills      uint8
	incomplete bool // an entry did not fit into the log
}

func (f *family) note(entry uint8) {
	at := slices.Index(f.log[:], noEntry)
	if at < 0 {
		f.incomplete = true
		return
	}
	f.log[at] = entry
}

// pick are the bits of the entries of a kind.
func (f *family) pick(entry uint8) (bits uint8) {
	for i, e := range f.log {
		if e == entry {
			bits |= 1 << i
		}
	}
	return bits
}

// remove deletes entries and closes the gaps; what was seen moves along.
func (f *family) remove(gone uint8) {
	var kept [8]uint8
	seen, n := uint8(0), 0
	for i, e := range f.log {
		if e == noEntry || gone>>i&1 == 1 {
			continue
		}
		kept[n] = e
		seen |= f.seen >> i & 1 << n
		n++
	}
	f.log, f.seen = kept, seen
}

func (f *family) noteChildren() {
	if f.child {
		f.note(ofChild)
	}
}

// application returns the states after what transactions of the application may do.
func (f family) application(c carelessness) (next []family) {
	if f.writes > 0 {
		n := f
		n.writes--
		n.child = !f.child
		n.note(ofChild)
		next = append(next, n)
	}
	switch {
	case f.moving: // commits
		n := f
		n.moving, n.sees, n.leads = false, false, 1-f.leads
		switch {
		case !c.noteInMove:
			n.note(lookBelow)
		case f.sees:
			n.note(ofChild)
		}
		next = append(next, n)
	case f.moves > 0:
		n := f
		n.moves--
		n.moving, n.sees = true, f.child
		next = append(next, n)
	}
	return next
}

// follower returns the state after its next step.
func (f family) follower(c carelessness) family {
	read := func() { f.there, f.at = f.child, f.leads }
	switch f.pc {
	case asleep:
		if c.readBefore {
			read()
		}
		f.pc = hasRead
	case hasRead:
		if f.seen = f.pick(ofChild) | f.pick(lookBelow); f.seen == 0 {
			f.pc = asleep
			break
		}
		f.pc = hasSeen
	case hasSeen:
		if below := f.seen & f.pick(lookBelow); below == 0 {
			f.pc = looked
		} else if f.remove(below); c.deleteFirst {
			f.pc = hasDeleted
		} else {
			f.noteChildren()
			f.pc = looked
		}
	case hasDeleted:
		f.noteChildren()
		f.pc = looked
	case looked:
		if f.seen == 0 {
			f.pc = asleep
			break
		}
		if !c.readBefore {
			read()
		}
		f.pc = hasRow
	case hasRow:
		f.on[f.at] = f.there
		if !c.leaveOthers {
			f.on[1-f.at] = false
		}
		f.pc = hasWritten
	case hasWritten:
		gone := f.seen
		if c.ackAll {
			gone = f.pick(ofChild)
		}
		f.remove(gone)
		f.pc = asleep
	}
	if f.pc == asleep {
		f.seen, f.there, f.at = 0, false, 0
	}
	return f
}

// right reports whether the shards have what they are to have, once nothing is noted and
// nobody is at work.
func (f *family) right() bool {
	return f.pc != asleep || f.log[0] != noEntry || f.on[f.leads] == f.child && !f.on[1-f.leads]
}

// explore looks for a state that is not right, and returns how many there are up to it.
func (c carelessness) explore() (states int, wrong bool) {
	known := map[family]bool{}
	todo := []family{{moves: 3, writes: 4, kills: 2}, {moves: 3, writes: 3, kills: 2, child: true, on: [2]bool{true, false}}}
	for len(todo) > 0 {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if known[f] || f.incomplete {
			continue
		}
		known[f] = true
		if !f.right() {
			return len(known), true
		}
		todo = append(append(todo, f.application(c)...), f.follower(c))
		if f.kills > 0 && f.pc != asleep {
			n := f
			n.kills--
			n.pc, n.seen, n.there, n.at = asleep, 0, false, 0
			todo = append(todo, n)
		}
	}
	return len(known), false
}

func TestChildrenAreWhereTheirParentsLead(t *testing.T) {
	states, wrong := carelessness{}.explore()
	if t.Logf("%d states", states); wrong || states < 10_000 {
		t.Errorf("%d states, and one that is wrong: %t", states, wrong)
	}
}

func TestEachRuleAboutChildrenIsNeeded(t *testing.T) {
	for name, c := range map[string]carelessness{
		"children are noted by the move": {noteInMove: true}, "an entry is deleted before its children are noted": {deleteFirst: true},
		"a row is read before its entries": {readBefore: true}, "entries are deleted that were not seen": {ackAll: true},
		"a row stays on the shard that it has left": {leaveOthers: true},
	} {
		if _, wrong := c.explore(); !wrong {
			t.Errorf("%s, and nothing is wrong", name)
		}
	}
}
