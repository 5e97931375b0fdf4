// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// MemoryLedger is a workerid.Ledger in memory, for simulations. The test controls its
// clock, and can make it fail over to an older copy of itself. It is safe for concurrent
// use.
type MemoryLedger struct {
	now  func() time.Time
	weak Weakness

	mu       sync.Mutex
	identity int // of the server
	content
}

// content is the replicated state. Noted is the server's identity at the last access, and
// longest the longest term so far. All ceilings that may have been lost when the identity
// changed lie before safeFrom.
type content struct {
	noted    int
	longest  time.Duration
	safeFrom time.Time
	spaces   map[string]space
}

// space is one namespace. No lease begins before floor, a tick.
type space struct {
	layout keygen.Layout
	floor  int64
	rows   map[int64]row
}

type row struct {
	owner, holder string
	identity      int // of the server that the worker id was taken from
	generation    int64
	ceiling       int64
}

var _ workerid.Ledger = (*MemoryLedger)(nil)

// NewMemoryLedger returns an empty ledger that reads the time from now.
func NewMemoryLedger(now func() time.Time) *MemoryLedger {
	return &MemoryLedger{now: now, content: content{spaces: map[string]space{}}}
}

// Weakness lists the protections that a [MemoryLedger] does not have. The zero value has
// all protections.
type Weakness struct {
	NoCeiling  bool // a lease may begin below the last ceiling of its worker id
	NoFence    bool // processes other than its holder can renew a lease
	NoIdentity bool // a fail-over is not detected
	OneTerm    bool // new leases begin one term after a fail-over, as if all servers' clocks agreed
}

// Weaken removes protections, to show that a test detects it. It must be called before the
// ledger is used. Replicas have the same weakness.
func (l *MemoryLedger) Weaken(w Weakness) { l.weak = w }

// Take implements workerid.Ledger.
func (l *MemoryLedger) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if err := ctx.Err(); err != nil {
		return workerid.Entry{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.space(c)
	if err != nil {
		return workerid.Entry{}, err
	}
	l.note(c.Term)
	now, term := l.ticks(c)
	id, err := s.choose(c, max(now, s.floor))
	if err != nil {
		return workerid.Entry{}, err
	}
	old := s.rows[id]
	before := max(now, c.Layout.Tick(l.safeFrom), s.floor, old.ceiling)
	if l.weak.NoCeiling {
		before = now
	}
	r := row{c.Owner, c.Holder, l.identity, old.generation + 1, max(now+term, old.ceiling, s.floor)}
	s.rows[id] = r
	return workerid.Entry{Worker: id, Generation: r.generation, NotBefore: before, Ceiling: r.ceiling}, nil
}

// space returns the claim's namespace. It creates the namespace, or changes its layout, if
// necessary.
func (l *MemoryLedger) space(c workerid.Claim) (space, error) {
	s, ok := l.spaces[c.Namespace]
	if !ok {
		s = space{c.Layout, 0, map[int64]row{}}
		l.spaces[c.Namespace] = s
	}
	noted := s.layout.Fingerprint()
	switch c.Relation(noted) {
	case workerid.Own:
		return s, nil
	case workerid.Past:
		return l.cut(c, s)
	}
	return s, c.Refuse(noted)
}

// cut gives a namespace another layout when no lease is in force.
func (l *MemoryLedger) cut(c workerid.Claim, s space) (space, error) {
	end, last := l.now(), row{}
	var leases int64
	for _, r := range s.rows {
		until := s.layout.At(r.ceiling)
		if r.owner != "" && until.After(l.now()) {
			leases, last = leases+1, r
		}
		if until.After(end) {
			end = until
		}
	}
	if leases > 0 {
		return s, c.Hold(s.layout.Fingerprint(), leases, last.holder, end)
	}
	from, err := c.Begin(end)
	if err != nil {
		return s, err
	}
	s.layout, s.floor = c.Layout, c.Layout.Tick(from)
	for id, r := range s.rows {
		s.rows[id] = row{holder: r.holder, generation: r.generation + 1, ceiling: s.floor}
	}
	l.spaces[c.Namespace] = s
	return s, nil
}

// note records the longest term. When the identity has changed, it also records the time up
// to which ceilings may have been lost.
func (l *MemoryLedger) note(term time.Duration) {
	l.longest = max(l.longest, term)
	if l.noted == l.identity || l.weak.NoIdentity {
		return
	}
	terms := 2 * l.longest // see workerid.Ledger
	if l.weak.OneTerm {
		terms = l.longest
	}
	l.noted, l.safeFrom = l.identity, l.now().Add(terms)
}

// choose returns the worker id for a claim; see workerid.Ledger.
func (s space) choose(c workerid.Claim, now int64) (int64, error) {
	rested, last := int64(-1), int64(-1)
	for id, r := range s.rows {
		if r.owner == c.Owner {
			return id, nil
		}
		if c.Sticky && r.holder == c.Holder && id <= c.Most && (last < 0 || id < last) {
			last = id
		}
		free := r.ceiling <= now && id <= c.Most
		if free && (rested < 0 || r.ceiling < s.rows[rested].ceiling || r.ceiling == s.rows[rested].ceiling && id < rested) {
			rested = id
		}
	}
	unused := int64(len(s.rows))
	if unused > c.Most {
		unused = -1
	}
	order := []int64{rested, unused}
	if c.Sticky {
		order = []int64{last, unused, rested}
	}
	for _, id := range order {
		if id >= 0 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: all %d worker ids are held, by %s", keygen.ErrNoWorker, len(s.rows), s.holders())
}

// holders names the last holders of the worker ids.
func (s space) holders() string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(s.rows)) {
		names = append(names, s.rows[id].holder)
	}
	return strings.Join(names, ", ")
}

// Renew implements workerid.Ledger.
func (l *MemoryLedger) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, r, ok := l.mine(c, e)
	if !ok && !l.weak.NoFence || r.identity != l.identity && !l.weak.NoIdentity {
		return 0, fmt.Errorf("%w: worker id %d", keygen.ErrWorkerLost, e.Worker)
	}
	now, term := l.ticks(c)
	r.ceiling = max(r.ceiling, now+term)
	s.rows[e.Worker] = r
	return r.ceiling, nil
}

// Return implements workerid.Ledger.
func (l *MemoryLedger) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, r, ok := l.mine(c, e); ok {
		r.owner, r.ceiling = "", end
		s.rows[e.Worker] = r
	}
	return nil
}

func (l *MemoryLedger) mine(c workerid.Claim, e workerid.Entry) (space, row, bool) {
	s := l.spaces[c.Namespace]
	r, ok := s.rows[e.Worker]
	return s, r, ok && r.owner == c.Owner && r.generation == e.Generation
}

func (l *MemoryLedger) ticks(c workerid.Claim) (now, term int64) {
	return c.Layout.Tick(l.now()), int64(c.Term / c.Layout.Unit)
}

// Copy returns a replica with the present content of the ledger.
func (l *MemoryLedger) Copy() *MemoryLedger {
	l.mu.Lock()
	defer l.mu.Unlock()
	other := &MemoryLedger{now: l.now, weak: l.weak, identity: l.identity, content: l.content}
	other.spaces = map[string]space{}
	for name, s := range l.spaces {
		other.spaces[name] = space{s.layout, s.floor, maps.Clone(s.rows)}
	}
	return other
}

// FailOver replaces the content by that of a replica, which may be old, and changes the
// server's identity.
func (l *MemoryLedger) FailOver(replica *MemoryLedger) {
	held := replica.Copy().content
	l.mu.Lock()
	defer l.mu.Unlock()
	l.identity++
	l.content = held
}
