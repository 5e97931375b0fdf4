// SPDX-License-Identifier: Apache-2.0

package keygentest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// These are examples of a custom generator, source and registry, each with its test, which
// is one call of a suite.

// clockCounter is a custom generator: microseconds since 1970 in the high bits, and a
// process number in the low ones. Next never goes back, whatever the clock does.
type clockCounter struct {
	process int64 // below 1024, another one in each process
	last    atomic.Int64
	closed  atomic.Bool
}

func (c *clockCounter) Next(context.Context) (int64, error) {
	for {
		last := c.last.Load()
		now := max(time.Now().UnixMicro(), last+1)
		switch {
		case c.closed.Load():
			return 0, keygen.ErrClosed
		case c.last.CompareAndSwap(last, now):
			return now<<10 | c.process, nil
		}
	}
}

func (c *clockCounter) Close() error {
	c.closed.Store(true)
	return nil
}

func TestACustomGenerator(t *testing.T) {
	var processes atomic.Int64
	keygentest.Generator(t, func(*testing.T) keygen.Generator[int64] {
		return &clockCounter{process: processes.Add(1)}
	})
}

// fileCounter is a custom source: a number in a file, written and synced before a key of a
// span is used. It is for one process.
type fileCounter struct {
	mu   *sync.Mutex // one for each file
	path string
}

func (f fileCounter) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return keygen.Span{}, err
	}
	text, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return keygen.Span{}, fmt.Errorf("%w: write the highest key in use into %s, 0 for none", keygen.ErrUnknownTag, f.path)
	}
	if err != nil {
		return keygen.Span{}, err
	}
	last, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	switch {
	case err != nil:
		return keygen.Span{}, &keygen.SetupError{Err: err, Cure: "write the highest key in use into " + f.path}
	case n < 1:
		return keygen.Span{}, fmt.Errorf("cannot reserve %d keys", n)
	case last > math.MaxInt64-n:
		return keygen.Span{}, fmt.Errorf("%w: %s holds %d", keygen.ErrExhausted, f.path, last)
	}
	if err := f.write(last + n); err != nil {
		return keygen.Span{}, err
	}
	return keygen.Span{First: last + 1, Count: n, Step: 1}, nil
}

// write replaces the file as a whole.
func (f fileCounter) write(last int64) error {
	next, err := os.Create(f.path + ".next")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(next, last)
	return errors.Join(err, next.Sync(), next.Close(), os.Rename(next.Name(), f.path))
}

func TestACustomSource(t *testing.T) {
	counter := fileCounter{mu: &sync.Mutex{}, path: filepath.Join(t.TempDir(), "counter")}
	if err := counter.write(0); err != nil {
		t.Fatal(err)
	}
	keygentest.Source(t, func(*testing.T) keygen.Source { return counter })
}

// store represents etcd, Consul, DynamoDB and similar stores: it changes a value only if
// that is still the one that was read, and has its own clock.
type store struct {
	mu      sync.Mutex
	values  map[string][]byte
	version map[string]int64
}

func (s *store) get(key string) (value []byte, version int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], s.version[key], time.Now()
}

func (s *store) swap(key string, version int64, value []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version[key] != version {
		return false
	}
	s.values[key] = value
	s.version[key]++
	return true
}

// registry is a custom ledger: one document for each namespace, which every call reads,
// changes and swaps. It requires only that the store keeps what it has acknowledged.
type registry struct{ store *store }

var _ workerid.Ledger = registry{}

// namespace is the document.
type namespace struct {
	Layout  keygen.Layout
	Floor   int64 // a tick before which no lease begins
	Workers []worker
}

type worker struct {
	Owner, Holder       string
	Generation, Ceiling int64
}

// change runs f on the document and swaps it, and repeats that after conflicts.
func (r registry) change(ctx context.Context, c workerid.Claim, f func(n *namespace, now time.Time) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, version, now := r.store.get(c.Namespace)
		var n namespace
		if text == nil {
			n.Layout = c.Layout
		} else if err := json.Unmarshal(text, &n); err != nil {
			return &keygen.SetupError{Err: err, Cure: "delete the namespace " + c.Namespace + " when no process has run for a term"}
		}
		if err := f(&n, now); err != nil {
			return err
		}
		text, err := json.Marshal(n)
		if err != nil || r.store.swap(c.Namespace, version, text) {
			return err
		}
	}
}

func (r registry) Take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	err = r.change(ctx, c, func(n *namespace, now time.Time) error {
		if err := n.settle(c, now); err != nil {
			return err
		}
		tick := c.Layout.Tick(now)
		id := n.choose(c, max(tick, n.Floor))
		if id < 0 {
			return fmt.Errorf("%w: all %d are held, by %s", keygen.ErrNoWorker, len(n.Workers), n.holders())
		}
		if id == len(n.Workers) {
			n.Workers = append(n.Workers, worker{Ceiling: n.Floor})
		}
		w := &n.Workers[id]
		e = workerid.Entry{Worker: int64(id), Generation: w.Generation + 1, NotBefore: max(tick, n.Floor, w.Ceiling)}
		e.Ceiling = max(tick+int64(c.Term/c.Layout.Unit), e.NotBefore)
		*w = worker{c.Owner, c.Holder, e.Generation, e.Ceiling}
		return nil
	})
	return e, err
}

// choose returns the worker id that a claim gets, -1 when there is none: the owner's
// own, a sticky holder's last one, and of those that are free, as workerid.Ledger says.
func (n *namespace) choose(c workerid.Claim, now int64) int {
	own, last, rested, unused := -1, -1, -1, -1
	for id, w := range n.Workers {
		switch {
		case w.Owner == c.Owner:
			own = id
		case int64(id) > c.Most:
		case c.Sticky && w.Holder == c.Holder && last < 0:
			last = id
		case w.Ceiling <= now && (rested < 0 || w.Ceiling < n.Workers[rested].Ceiling):
			rested = id
		}
	}
	if int64(len(n.Workers)) <= c.Most {
		unused = len(n.Workers)
	}
	order := []int{own, rested, unused}
	if c.Sticky {
		order = []int{own, last, unused, rested}
	}
	for _, id := range order {
		if id >= 0 {
			return id
		}
	}
	return -1
}

func (n *namespace) holders() string {
	var names []string
	for _, w := range n.Workers {
		names = append(names, w.Holder)
	}
	return strings.Join(names, ", ")
}

// settle gives the namespace the claim's layout, or returns why that is impossible.
func (n *namespace) settle(c workerid.Claim, now time.Time) error {
	noted := n.Layout.Fingerprint()
	switch c.Relation(noted) {
	case workerid.Own:
		return nil
	case workerid.Foreign:
		return c.Refuse(noted)
	}
	end, held, holder := now, int64(0), ""
	for _, w := range n.Workers {
		until := n.Layout.At(w.Ceiling)
		if w.Owner != "" && until.After(now) {
			held, holder = held+1, w.Holder
		}
		if until.After(end) {
			end = until
		}
	}
	if held > 0 {
		return c.Hold(noted, held, holder, end)
	}
	from, err := c.Begin(end)
	if err != nil {
		return err
	}
	n.Layout, n.Floor = c.Layout, c.Layout.Tick(from)
	for id, w := range n.Workers {
		n.Workers[id] = worker{Holder: w.Holder, Generation: w.Generation + 1, Ceiling: n.Floor}
	}
	return nil
}

// mine returns the record of an entry, nil when another process has it now.
func (n *namespace) mine(c workerid.Claim, e workerid.Entry) *worker {
	if e.Worker >= int64(len(n.Workers)) || n.Layout.Fingerprint() != c.Layout.Fingerprint() {
		return nil
	}
	if w := &n.Workers[e.Worker]; w.Owner == c.Owner && w.Generation == e.Generation {
		return w
	}
	return nil
}

func (r registry) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	err = r.change(ctx, c, func(n *namespace, now time.Time) error {
		w := n.mine(c, e)
		if w == nil {
			return fmt.Errorf("%w: worker id %d", keygen.ErrWorkerLost, e.Worker)
		}
		w.Ceiling = max(w.Ceiling, c.Layout.Tick(now)+int64(c.Term/c.Layout.Unit))
		ceiling = w.Ceiling
		return nil
	})
	return ceiling, err
}

func (r registry) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	return r.change(ctx, c, func(n *namespace, _ time.Time) error {
		if w := n.mine(c, e); w != nil {
			w.Owner, w.Ceiling = "", end
		}
		return nil
	})
}

func TestACustomRegistry(t *testing.T) {
	etcd := &store{values: map[string][]byte{}, version: map[string]int64{}}
	keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return registry{etcd} })
}
