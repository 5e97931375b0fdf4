// SPDX-License-Identifier: Apache-2.0

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

// header is the data of the registry's own znode: the layout of its worker ids. Versions that
// stored no layout compare only epoch and unit, so the unit has a minus before it where a
// layout is stored, and those versions refuse the registry.
type header struct {
	Epoch    time.Time `json:"epoch"`
	Unit     string    `json:"unit"`
	Layout   string    `json:"layout,omitempty"`   // its fingerprint
	Changing bool      `json:"changing,omitempty"` // a change of the layout is under way: no worker id is given
	Changes  int       `json:"changes,omitempty"`  // of the layout
	Floor    time.Time `json:"floor,omitzero"`     // former layouts may have ids up to this time
}

const layoutMark = "-"

// of returns c with the layout l.
func (c header) of(l keygen.Layout) header {
	c.Epoch, c.Unit, c.Layout, c.Changing = l.Epoch.UTC(), layoutMark+l.Unit.String(), l.Fingerprint(), false
	return c
}

// countsIn returns true when the registry's ticks are those of a layout.
func (c header) countsIn(l keygen.Layout) bool {
	return c.Epoch.Equal(l.Epoch) && strings.TrimPrefix(c.Unit, layoutMark) == l.Unit.String()
}

// node is the registry's own znode, as read.
type node struct {
	header

	version int32
}

// open creates the registry's znodes, and gives it the requester's layout if possible.
func (b registry) open(ctx context.Context, a request) (registry, error) {
	n, err := b.node(ctx)
	if err != nil {
		return b, err
	}
	if n == nil {
		return b, b.make(ctx, header{}.of(a.clock))
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
	return b, b.checkLayout(ctx, a, *n)
}

// find returns the registry in its present state.
func (b registry) find(ctx context.Context) (registry, error) {
	n, err := b.node(ctx)
	if err == nil && n != nil {
		b.changes = n.Changes
	}
	return b, err
}

// of returns the registry that n describes, for a layout.
func (b registry) of(n node, l keygen.Layout) registry {
	b.changes = n.Changes
	if !n.Floor.IsZero() {
		b.floor = l.Tick(n.Floor) + 1
	}
	return b
}

// node reads the registry's znode, nil when there is none.
func (b registry) node(ctx context.Context) (*node, error) {
	at, err := b.client.find(ctx, b.dir)
	if at == nil || err != nil {
		return nil, err
	}
	n := node{version: at.stat.Version}
	if err := json.Unmarshal(at.data, &n.header); err != nil {
		return nil, fmt.Errorf("the data of %s are not those of worker ids; choose another path", b.dir)
	}
	return &n, nil
}

func (b registry) make(ctx context.Context, c header) error {
	if parent := path.Dir(b.dir); parent != "/" {
		if err := b.client.createPath(ctx, parent); err != nil {
			return err
		}
	}
	if _, err := b.client.add(ctx, b.dir, encode(c), 0); err != nil {
		return err
	}
	return errBusy // another process may have created it, with another layout
}

// checkLayout returns nil when the registry has the requester's layout, and errBusy after it
// changed the registry.
func (b registry) checkLayout(ctx context.Context, a request, n node) error {
	relation := a.claim.Relation(n.Layout)
	counted := a.clock
	if relation == workerid.Past && a.claim.Former.Unit != 0 {
		counted = a.claim.Former
	}
	switch {
	case relation == workerid.Foreign:
		return a.claim.Refuse(n.Layout)
	case !n.countsIn(counted):
		return fmt.Errorf("%w: %s counts units of %s since %v, not of %v since %v; package workerid says how to change layouts", keygen.ErrLayout, b.dir, n.Unit, n.Epoch, counted.Unit, counted.Epoch.UTC())
	case relation == workerid.Past:
		return b.change(ctx, a, n, counted)
	}
	if own := n.of(a.clock); own != n.header { // the znode has no layout yet, or an unfinished change of it
		return b.note(ctx, own, n.version)
	}
	return nil
}

// note writes the registry's znode and returns errBusy, because the registry must be read
// again.
func (b registry) note(ctx context.Context, c header, version int32) error {
	if _, err := b.client.swap(ctx, b.dir, encode(c), version); err != nil {
		return err
	}
	return errBusy
}

// change gives the registry the requester's layout if no worker id is held. First it marks the
// znode, so that no process begins to take a worker id. Then it deletes the records, and the
// znode above them, which ZooKeeper deletes only when it is empty. So a process that is about
// to take a worker id either has it by then, and is found, or fails. Last, a znode below which
// nothing can be created replaces it, for processes that are later still. The records of the
// new layout lie below another znode.
func (b registry) change(ctx context.Context, a request, n node, former keygen.Layout) error {
	now, err := b.present(ctx)
	if err != nil {
		return err
	}
	known, err := b.remainingEntries(ctx)
	if err != nil {
		return err
	}
	last, err := a.endOf(known, n.Layout, former, now)
	if err != nil {
		return err
	}
	end := slices.MaxFunc([]time.Time{now, last, n.Floor}, time.Time.Compare)
	if _, err := a.claim.Begin(end); err != nil {
		return err
	}
	if !n.Changing || last.After(n.Floor) {
		marked := n.header
		marked.Unit, marked.Changing, marked.Floor = layoutMark+strings.TrimPrefix(n.Unit, layoutMark), true, end.UTC()
		return b.note(ctx, marked, n.version)
	}
	if err := b.deleteEntries(ctx, known); err != nil {
		return err
	}
	next := n.of(a.clock)
	next.Changes++
	if _, err := b.client.add(ctx, znodes{b.dir, next.Changes}.workers(), nil, 0); err != nil {
		return err
	}
	return b.note(ctx, next, n.version)
}

// remainingEntries reads the records, none if an unfinished change deleted them.
func (b registry) remainingEntries(ctx context.Context) (map[int64]entry, error) {
	if stat, err := b.client.exists(ctx, b.workers()); stat == nil || err != nil {
		return nil, err
	}
	l, err := b.list(ctx)
	return l.known, err
}

// endOf returns the end of the last record, or an error that names the records in force.
func (a request) endOf(known map[int64]entry, layout string, former keygen.Layout, now time.Time) (last time.Time, err error) {
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

// deleteEntries deletes the records and replaces the znode above them by one without children.
func (b registry) deleteEntries(ctx context.Context, known map[int64]entry) error {
	for _, e := range known {
		if err := b.client.removeIfExists(ctx, b.at(e.worker), e.version); err != nil {
			return unlessSetup(err)
		}
	}
	if err := b.client.removeIfExists(ctx, b.workers(), anyVersion); err != nil {
		return unlessSetup(err)
	}
	closed, err := b.client.addLeafOnly(ctx, b.workers())
	if err == nil && !closed {
		err = errBusy
	}
	return err
}

// unlessSetup returns errBusy, because another process has changed or filled the znode, but
// passes on errors that a retry cannot cure.
func unlessSetup(err error) error {
	if isSetup(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errBusy, err)
}
