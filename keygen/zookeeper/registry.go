// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// registry stores worker ids in ZooKeeper, in one znode each below workers. All times in it are
// ticks of one layout, by the clock of ZooKeeper's leader, which is in the answer to every
// write. Changes is the number of changes of the layout; each change moves the records below
// another znode. Ticks before floor may belong to another layout.
type registry struct {
	znodes

	client *client
	floor  int64 // a tick
}

// znodes are the paths of a registry's znodes.
type znodes struct {
	dir     string
	changes int
}

// record is the data of a worker id's znode.
type record struct {
	Owner      string `json:"owner"`      // the holder's key; "" when it was returned
	Holder     string `json:"holder"`     // for people
	Generation int64  `json:"generation"` // rises each time it is taken
	Ceiling    int64  `json:"ceiling"`    // ids may have been issued in ticks below
	Until      int64  `json:"until"`      // no other process may issue ids in ticks below; at least Ceiling
}

// entry is a record as it was read or written.
type entry struct {
	record

	worker    int64
	version   int32 // of the znode
	notBefore int64 // the first tick that its new holder may use

	at time.Time // ZooKeeper's, of the newest renewal
}

// request is a request for a worker id.
type request struct {
	owner, holder string
	most          int64 // the highest worker id
	clock         keygen.Layout
	claim         workerid.Claim   // clock, Former, and the name of the registry
	term, hold    time.Duration    // Ceiling and Until minus the present
	longest       time.Duration    // the longest that a hold can be
	resumes       func(entry) bool // returns true if the owner may continue with a record before its Until
	above         int64            // the ceiling that the owner knows for a record with which it continues
}

func (a request) ticks(d time.Duration) int64 { return int64(d / a.clock.Unit) }

// until returns the end of a record that is written now.
func (a request) until(now, ceiling int64) int64 { return max(now+a.ticks(a.hold), ceiling) }

func (z znodes) workers() string {
	if z.changes == 0 {
		return z.dir + "/workers"
	}
	return fmt.Sprintf("%s/workers-%d", z.dir, z.changes)
}

func (z znodes) clock() string { return z.dir + "/clock" }

func (z znodes) at(worker int64) string { return fmt.Sprintf("%s/%010d", z.workers(), worker) }

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return text
}

// errBusy: other processes changed the records first, again and again.
var errBusy = errors.New("other processes took the free worker ids; try again")

// present returns the leader's time.
func (b registry) present(ctx context.Context) (time.Time, error) {
	stat, err := b.client.set(ctx, b.clock(), nil, anyVersion)
	if err != nil {
		if err = b.restoreClock(ctx, err); err == nil {
			stat, err = b.client.set(ctx, b.clock(), nil, anyVersion)
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read ZooKeeper's clock: %w", err)
	}
	return time.UnixMilli(stat.Mtime), nil
}

// restoreClock creates the clock's znode if somebody deleted it. Failed is the error of a write
// to the znode, and is returned if it has another cause.
func (b registry) restoreClock(ctx context.Context, failed error) error {
	if stat, err := b.client.exists(ctx, b.clock()); stat != nil || err != nil {
		return failed
	}
	if n, err := b.node(ctx); n == nil && err == nil {
		return fmt.Errorf("ZooKeeper has lost %s; end all processes that have worker ids of it, and start them when what it had granted them has ended, as package zookeeper describes: %w", b.dir, failed)
	}
	_, err := b.client.add(ctx, b.clock(), nil, 0)
	return err
}

// maxRounds is the number of attempts at a change with which other processes can conflict.
const maxRounds = 10

// take gives a worker id to the requester: one of its own, the one that has been free longest,
// or one that was never used.
func (b registry) take(ctx context.Context, a request) (entry, error) {
	for range maxRounds {
		var e entry
		opened, err := b.open(ctx, a)
		if err == nil {
			e, err = opened.choose(ctx, a)
		}
		if !errors.Is(err, errBusy) {
			return e, err
		}
	}
	return entry{}, errBusy
}

func (b registry) choose(ctx context.Context, a request) (entry, error) {
	at, err := b.present(ctx)
	if err != nil {
		return entry{}, err
	}
	now := a.clock.Tick(at)
	if now < 0 {
		return entry{}, fmt.Errorf("%w: ZooKeeper's clock reads %v, before the layout's epoch", keygen.ErrLayout, at.UTC())
	}
	l, err := b.list(ctx)
	if err != nil {
		return entry{}, err
	}
	own, free := candidates(l.known, a, now)
	if a.claim.Sticky {
		return b.chooseSticky(ctx, a, l, own, free, now)
	}
	if e, err := b.first(ctx, a, append(own, free...), now); e != nil || err != nil {
		return deref(e), err
	}
	e, err := b.takeUnused(ctx, a, l, now)
	if errors.Is(err, keygen.ErrNoWorker) && len(own)+len(free) > 0 {
		return e, errBusy
	}
	return e, err
}

// chooseSticky prefers a worker id that was never used to one that others had.
func (b registry) chooseSticky(ctx context.Context, a request, l listing, own, free []entry, now int64) (entry, error) {
	if e, err := b.first(ctx, a, own, now); e != nil || err != nil {
		return deref(e), err
	}
	e, full := b.takeUnused(ctx, a, l, now)
	if !errors.Is(full, keygen.ErrNoWorker) {
		return e, full
	}
	if e, err := b.first(ctx, a, free, now); e != nil || err != nil {
		return deref(e), err
	}
	if len(own)+len(free) > 0 {
		return e, errBusy
	}
	return e, full
}

// first takes the first of some worker ids whose record has not changed, nil when all have
// changed.
func (b registry) first(ctx context.Context, a request, some []entry, now int64) (*entry, error) {
	for _, e := range some {
		if taken, err := b.write(ctx, a, e, now); taken != nil || err != nil {
			return taken, err
		}
	}
	return nil, nil //nolint:nilnil // none
}

func deref(e *entry) entry {
	if e == nil {
		return entry{}
	}
	return *e
}

// candidates returns the worker ids that the requester may have. Own are its own and, for a
// sticky holder, the one that it had last. Free are those of others, the one that has been free
// longest first.
func candidates(known map[int64]entry, a request, now int64) (own, free []entry) {
	var last []entry
	for _, e := range known {
		switch {
		case e.worker > a.most:
		case e.Owner == a.owner && a.resumes(e):
			own = append(own, e)
		case a.claim.Sticky && e.Holder == a.holder:
			last = append(last, e)
		case e.Until <= now:
			free = append(free, e)
		}
	}
	slices.SortFunc(last, func(x, y entry) int { return cmp.Compare(x.worker, y.worker) })
	slices.SortFunc(free, func(x, y entry) int { return cmp.Or(cmp.Compare(x.Until, y.Until), cmp.Compare(x.worker, y.worker)) })
	return append(own, last...), free
}

// listing is all records. Created is how often one was created, which ZooKeeper counts. The
// lowest worker id without a record always gets the next one, so those from created up never
// had one; a lower one without a record had one that somebody deleted.
type listing struct {
	known   map[int64]entry
	created int64
}

// list reads all records.
func (b registry) list(ctx context.Context) (listing, error) {
	names, stat, err := b.client.children(ctx, b.workers())
	if err != nil {
		return listing{}, fmt.Errorf("list %s: %w", b.workers(), err)
	}
	l := listing{make(map[int64]entry, len(names)), stat.childrenCreated()}
	for _, name := range names {
		worker, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			return listing{}, fmt.Errorf("%s/%s is not the znode of a worker id: %w", b.workers(), name, err)
		}
		e, err := b.read(ctx, worker)
		if err != nil {
			return listing{}, err
		}
		if e != nil {
			l.known[worker] = *e
		}
	}
	return l, nil
}

// read returns nil for a worker id that has no record.
func (b registry) read(ctx context.Context, worker int64) (*entry, error) {
	at, err := b.client.find(ctx, b.at(worker))
	if at == nil || err != nil {
		return nil, err
	}
	e := entry{worker: worker, version: at.stat.Version}
	if err := json.Unmarshal(at.data, &e.record); err != nil {
		return nil, fmt.Errorf("the data of %s are not the record of a worker id (%w); delete it", b.at(worker), err)
	}
	return &e, nil
}

// write gives a worker id to the requester. It returns nil when the record has changed
// meanwhile.
func (b registry) write(ctx context.Context, a request, e entry, now int64) (*entry, error) {
	e.notBefore = max(now, e.Until, b.floor)
	if e.Owner == a.owner && a.resumes(e) {
		e.notBefore = max(now, e.Ceiling, a.above, b.floor)
	}
	ceiling := max(now+a.ticks(a.term), e.notBefore)
	e.record = record{Owner: a.owner, Holder: a.holder, Generation: e.Generation + 1, Ceiling: ceiling, Until: max(a.until(now, ceiling), e.Until)}
	return b.swap(ctx, e)
}

// swap writes a record that was read at e.version. It returns nil when the record has changed
// meanwhile.
func (b registry) swap(ctx context.Context, e entry) (*entry, error) {
	won, err := b.client.swap(ctx, b.at(e.worker), encode(e.record), e.version)
	if !won || err != nil {
		return nil, err
	}
	e.version++
	return &e, nil
}

// takeUnused takes a worker id that was never used. If there is none, it takes one whose record
// somebody deleted, from the time on when its former holder can issue no more ids.
func (b registry) takeUnused(ctx context.Context, a request, l listing, now int64) (entry, error) {
	deleted := min(l.created, a.most+1)
	e, err := b.takeBetween(ctx, a, l, deleted, a.most+1, now, now)
	if e == nil && err == nil {
		e, err = b.takeBetween(ctx, a, l, 0, deleted, now, now+a.ticks(a.longest))
	}
	if e == nil && err == nil {
		err = noWorker(l.known, a.most, b.dir)
	}
	return deref(e), err
}

// takeBetween takes the first worker id from the first one up to the end that has no record, nil
// when all have one. Its holder begins at the tick begin.
func (b registry) takeBetween(ctx context.Context, a request, l listing, first, end, now, begin int64) (*entry, error) {
	begin = max(begin, b.floor)
	ceiling := max(now+a.ticks(a.term), begin)
	// No record of another layout has this generation.
	r := record{Owner: a.owner, Holder: a.holder, Generation: int64(b.changes)<<32 + 1, Ceiling: ceiling, Until: a.until(now, ceiling)}
	for worker := first; worker < end; worker++ {
		if _, had := l.known[worker]; had {
			continue
		}
		won, err := b.client.add(ctx, b.at(worker), encode(r), 0)
		if err != nil {
			return nil, err
		}
		if won {
			return &entry{record: r, worker: worker, notBefore: begin}, nil
		}
	}
	return nil, nil //nolint:nilnil // none
}

// noWorker returns an error that says how many worker ids are held and by whom.
func noWorker(known map[int64]entry, most int64, dir string) error {
	var names []string
	for _, worker := range slices.Sorted(maps.Keys(known)) {
		if worker <= most {
			names = append(names, known[worker].Holder)
		}
	}
	count := len(names)
	if len(names) > 4 {
		names = append(names[:3], "others")
	}
	return fmt.Errorf("%w: all %d worker ids of %s are held, by %s; end some of these processes, wait until those of dead ones are free, or change to a layout with more worker bits as package workerid describes",
		keygen.ErrNoWorker, count, dir, strings.Join(names, ", "))
}

// renew raises the ceiling and the Until of e.
func (b registry) renew(ctx context.Context, a request, e entry) (entry, error) {
	for range maxRounds {
		at, err := b.present(ctx)
		if err == nil {
			b, err = b.find(ctx)
		}
		if err != nil {
			return e, err
		}
		old, err := b.current(ctx, a, e)
		if err != nil {
			return e, err
		}
		now, next := a.clock.Tick(at), *old
		next.at = at
		next.Ceiling = max(old.Ceiling, e.Ceiling, now+a.ticks(a.term))
		next.Until = max(old.Until, a.until(now, next.Ceiling))
		if done, err := b.swap(ctx, next); done != nil || err != nil {
			return deref(done), err
		}
	}
	return e, errBusy
}

// current returns the present record of e.
func (b registry) current(ctx context.Context, a request, e entry) (*entry, error) {
	now, err := b.read(ctx, e.worker)
	switch {
	case err != nil:
		return nil, err
	case now == nil:
		return nil, fmt.Errorf("%w: the record of worker id %d is missing", keygen.ErrWorkerLost, e.worker)
	case now.Owner != a.owner || now.Generation != e.Generation:
		return nil, fmt.Errorf("%w: worker id %d is held by %q now", keygen.ErrWorkerLost, e.worker, now.Holder)
	}
	now.notBefore = e.notBefore
	return now, nil
}

// returnEntry lowers the ceiling of e to end, and Until too unless keep is set. It changes
// nothing when another process has the worker id.
func (b registry) returnEntry(ctx context.Context, a request, e entry, end int64, keep bool) error {
	for range maxRounds {
		b, err := b.find(ctx)
		if err != nil {
			return err
		}
		old, err := b.current(ctx, a, e)
		if errors.Is(err, keygen.ErrWorkerLost) {
			return nil
		}
		if err != nil {
			return err
		}
		next := *old
		next.Ceiling = end
		if !keep {
			next.Owner, next.Until = "", end
		}
		if done, err := b.swap(ctx, next); done != nil || err != nil {
			return err
		}
	}
	return errBusy
}
