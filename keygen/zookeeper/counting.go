package zookeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// counting is the data of the book's own znode: whose ids its worker ids are for, and
// what its ticks are. Versions that noted no layout compare epoch and unit alone; so
// the unit has a minus before it where a layout is noted, and they refuse the book.
type counting struct {
	Epoch    time.Time `json:"epoch"`
	Unit     string    `json:"unit"`
	Layout   string    `json:"layout,omitempty"`   // its fingerprint
	Changing bool      `json:"changing,omitempty"` // nobody is given a worker id
	Changes  int       `json:"changes,omitempty"`  // of the layout
	Floor    time.Time `json:"floor,omitzero"`     // the layouts before may have ids up to here
}

const fence = "-"

// of returns c with the layout noted.
func (c counting) of(l keygen.Layout) counting {
	c.Epoch, c.Unit, c.Layout, c.Changing = l.Epoch.UTC(), fence+l.Unit.String(), l.Fingerprint(), false
	return c
}

// counts tells whether the ticks are those of a layout.
func (c counting) counts(l keygen.Layout) bool {
	return c.Epoch.Equal(l.Epoch) && strings.TrimPrefix(c.Unit, fence) == l.Unit.String()
}

// node is the book's own znode as it was read.
type node struct {
	counting

	version int32
}

// open makes the book's znodes, and gives it the asker's layout when that may be.
func (b book) open(ctx context.Context, a asking) (book, error) {
	n, err := b.node(ctx)
	if err != nil {
		return b, err
	}
	if n == nil {
		return b, b.make(ctx, counting{}.of(a.clock))
	}
	b = b.of(*n, a.clock)
	below := []string{b.clock()}
	if b.changes == 0 && !n.Changing {
		below = append(below, b.workers())
	}
	for _, name := range below {
		if _, err := b.client.add(ctx, name, nil, 0); err != nil {
			return b, err
		}
	}
	return b, b.settle(ctx, a, *n)
}

// find returns the book as it is now.
func (b book) find(ctx context.Context) (book, error) {
	n, err := b.node(ctx)
	if err == nil && n != nil {
		b.changes = n.Changes
	}
	return b, err
}

// of returns the book that n is about, for a layout.
func (b book) of(n node, l keygen.Layout) book {
	b.changes = n.Changes
	if !n.Floor.IsZero() {
		b.floor = l.Tick(n.Floor) + 1
	}
	return b
}

// node reads the book's znode; it is nil when there is none.
func (b book) node(ctx context.Context) (*node, error) {
	at, err := b.client.find(ctx, b.dir)
	if at == nil || err != nil {
		return nil, err
	}
	n := node{version: at.stat.Version}
	if err := json.Unmarshal(at.data, &n.counting); err != nil {
		return nil, fmt.Errorf("the data of %s are not those of worker ids; choose another path", b.dir)
	}
	return &n, nil
}

func (b book) make(ctx context.Context, c counting) error {
	if parent := path.Dir(b.dir); parent != "/" {
		if err := b.client.lay(ctx, parent); err != nil {
			return err
		}
	}
	if _, err := b.client.add(ctx, b.dir, encode(c), 0); err != nil {
		return err
	}
	return errBusy // somebody else may have made it, and count otherwise
}

// settle returns nil when the book has the asker's layout, and errBusy after it did
// something about it.
func (b book) settle(ctx context.Context, a asking, n node) error {
	standing := a.claim.Standing(n.Layout)
	counted := a.clock
	if standing == workerid.Past && a.claim.Former.Unit != 0 {
		counted = a.claim.Former
	}
	switch {
	case standing == workerid.Foreign:
		return a.claim.Refuse(n.Layout)
	case !n.counts(counted):
		return fmt.Errorf("%w: %s counts units of %s since %v, not of %v since %v; package workerid says how to change layouts", keygen.ErrLayout, b.dir, n.Unit, n.Epoch, counted.Unit, counted.Epoch.UTC())
	case standing == workerid.Past:
		return b.change(ctx, a, n, counted)
	}
	if own := n.of(a.clock); own != n.counting { // stated, or its change was given up
		return b.note(ctx, own, n.version)
	}
	return nil
}

// note writes the book's znode, and returns errBusy, as it has to be read again.
func (b book) note(ctx context.Context, c counting, version int32) error {
	if _, err := b.client.swap(ctx, b.dir, encode(c), version); err != nil {
		return err
	}
	return errBusy
}

// change gives the book the asker's layout when no worker id is held. First the
// znode is marked, so that nobody begins to take one. Then the records are deleted,
// and the znode above them, which ZooKeeper does only when it is empty: who is about
// to take a worker id either has it by then, and is found, or loses it. One to which
// nothing can be added takes its place, for those who are later still. The records of
// the new layout lie below another one.
func (b book) change(ctx context.Context, a asking, n node, former keygen.Layout) error {
	now, err := b.present(ctx)
	if err != nil {
		return err
	}
	known, err := b.left(ctx)
	if err != nil {
		return err
	}
	last, err := a.ended(known, n.Layout, former, now)
	if err != nil {
		return err
	}
	end := slices.MaxFunc([]time.Time{now, last, n.Floor}, time.Time.Compare)
	if _, err := a.claim.Begin(end); err != nil {
		return err
	}
	if !n.Changing || last.After(n.Floor) {
		marked := n.counting
		marked.Unit, marked.Changing, marked.Floor = fence+strings.TrimPrefix(n.Unit, fence), true, end.UTC()
		return b.note(ctx, marked, n.version)
	}
	if err := b.clear(ctx, known); err != nil {
		return err
	}
	next := n.of(a.clock)
	next.Changes++
	if _, err := b.client.add(ctx, book{dir: b.dir, changes: next.Changes}.workers(), nil, 0); err != nil {
		return err
	}
	return b.note(ctx, next, n.version)
}

// left reads the records, none where a change that was not finished deleted them.
func (b book) left(ctx context.Context) (map[int64]entry, error) {
	if stat, err := b.client.exists(ctx, b.workers()); stat == nil || err != nil {
		return nil, err
	}
	return b.list(ctx)
}

// ended returns when the last of the records ended, or an error that says which are
// in force.
func (a asking) ended(known map[int64]entry, layout string, former keygen.Layout, now time.Time) (last time.Time, err error) {
	var leases int64
	var holder string
	for _, e := range known {
		until := former.At(e.Until)
		if until.After(now) {
			leases, holder = leases+1, e.Holder
		}
		if until.After(last) {
			last = until
		}
	}
	if leases > 0 {
		return last, a.claim.Hold(layout, leases, holder, last)
	}
	return last, nil
}

// clear deletes the records and closes the znode above them.
func (b book) clear(ctx context.Context, known map[int64]entry) error {
	for _, e := range known {
		if err := b.client.drop(ctx, b.at(e.worker), e.version); err != nil {
			return unlessSetup(err)
		}
	}
	if err := b.client.drop(ctx, b.workers(), anyVersion); err != nil {
		return unlessSetup(err)
	}
	closed, err := b.client.addClosed(ctx, b.workers())
	if err == nil && !closed {
		err = errBusy
	}
	return err
}

// unlessSetup is errBusy, for a znode that somebody else has changed or filled, but
// for what another try meets again.
func unlessSetup(err error) error {
	if isSetup(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errBusy, err)
}
