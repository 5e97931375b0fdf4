// SPDX-License-Identifier: Apache-2.0

package periodic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// Numbers issues numbers by period and key. It is safe for concurrent use, and uses about
// two kilobytes for each key that was used in the period.
type Numbers struct {
	cfg   Config
	limit int64 // 10^Digits

	current atomic.Pointer[term]

	mu     sync.Mutex // held while the period changes
	closed bool
	ending sync.WaitGroup // waits for the periods that have ended
}

// New returns a generator of numbers, or an error that names the wrong setting. It does not
// reserve numbers yet. The caller must close it.
func New(cfg Config) (*Numbers, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Numbers{cfg: cfg, limit: 1}
	for range cfg.Digits {
		n.limit *= 10
	}
	n.current.Store(&term{})
	return n, nil
}

// errNotMade is the error of Numbers that New has not made.
var errNotMade = fmt.Errorf("periodic: %w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns the next number of a key, such as "shop7", in the present period. The empty
// key is a key, too. Each key has its own counter, and need not be known before.
func (n *Numbers) Next(ctx context.Context, key string) (Number, error) {
	if n == nil || n.limit == 0 {
		return Number{}, errNotMade
	}
	for {
		t, err := n.term()
		if err != nil {
			return Number{}, err
		}
		count, err := t.next(ctx, n, key)
		switch {
		case err == nil:
			return Number{Period: t.name, Count: count, Digits: n.cfg.Digits}, nil
		case errors.Is(err, keygen.ErrClosed) && n.current.Load() != t: // the period changed meanwhile
			continue
		}
		return Number{}, fmt.Errorf("periodic: %s of %q in %s: %w", n.cfg.Name, key, t.name, err)
	}
}

// term returns the present period.
func (n *Numbers) term() (*term, error) {
	now := n.cfg.Now().In(n.cfg.Zone)
	t := n.current.Load()
	switch {
	case !now.Before(t.to):
		return n.change(now)
	case now.Before(t.from.Add(-n.cfg.Skew)):
		return nil, fmt.Errorf("periodic: %s: %w: it reads %v, and numbers of %s were issued already; correct the clock", n.cfg.Name, keygen.ErrClockRollback, now, t.name)
	}
	return t, nil
}

// change begins the period of now, unless another call has begun it.
func (n *Numbers) change(now time.Time) (*term, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.current.Load()
	if n.closed {
		return nil, fmt.Errorf("periodic: %s: %w", n.cfg.Name, keygen.ErrClosed)
	}
	if now.Before(old.to) {
		return old, nil
	}
	if !hasFourDigits(now) {
		return nil, fmt.Errorf("periodic: %s: %w: it reads %v; correct the clock", n.cfg.Name, keygen.ErrClockRollback, now)
	}
	next := &term{span: n.cfg.Period.at(now), keys: map[string]*entry{}}
	n.current.Store(next)
	n.ending.Go(old.end)
	return next, nil
}

// Close stops the generator and waits for running reservations. Calls that wait, and later
// calls, return [keygen.ErrClosed]. It may be called twice.
func (n *Numbers) Close() error {
	if n == nil || n.limit == 0 {
		return nil
	}
	n.mu.Lock()
	n.closed = true
	last := n.current.Load()
	n.mu.Unlock()
	last.end()
	n.ending.Wait()
	return nil
}

// term is one period with the counters that are used in it.
type term struct {
	span

	mu    sync.RWMutex
	keys  map[string]*entry
	ended bool
}

// next returns the next number of a key.
func (t *term) next(ctx context.Context, n *Numbers, key string) (int64, error) {
	e, err := t.entry(key)
	if err != nil {
		return 0, err
	}
	gen := e.gen.Load()
	if gen == nil {
		if gen, err = e.generator(ctx, func() (*segment.Generator, error) { return t.open(ctx, n, key, e) }); err != nil {
			return 0, err
		}
	}
	return gen.Next(ctx)
}

func (t *term) entry(key string) (*entry, error) {
	t.mu.RLock()
	e, ended := t.keys[key], t.ended
	t.mu.RUnlock()
	if ended {
		return nil, keygen.ErrClosed
	}
	if e != nil {
		return e, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, keygen.ErrClosed
	}
	if e = t.keys[key]; e == nil {
		e = &entry{}
		t.keys[key] = e
	}
	return e, nil
}

// open makes the generator of a key.
func (t *term) open(ctx context.Context, n *Numbers, key string, e *entry) (*segment.Generator, error) {
	gen, err := segment.New(ctx, segment.Config{
		Source: &counter{numbers: n, span: t.span, group: n.cfg.Name + "/" + key}, MaxStep: n.cfg.MaxStep,
	})
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ended {
		return nil, errors.Join(keygen.ErrClosed, gen.Close())
	}
	e.gen.Store(gen)
	return gen, nil
}

// end closes the counters of the period. Their unused numbers become gaps.
func (t *term) end() {
	t.mu.Lock()
	t.ended = true
	keys := t.keys
	t.keys = nil
	t.mu.Unlock()
	for _, e := range keys {
		if gen := e.gen.Load(); gen != nil {
			_ = gen.Close() // always nil
		}
	}
}

// counter is the source of a key's numbers in a period.
type counter struct {
	numbers *Numbers
	span    span
	group   string
}

var (
	_ keygen.Source  = (*counter)(nil)
	_ keygen.Stepper = (*counter)(nil)
)

// Step returns how many numbers to reserve at a time.
func (c *counter) Step(context.Context) (int64, error) { return c.numbers.cfg.Step, nil }

// Reserve reserves n numbers, or fewer at the end of the digits.
func (c *counter) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	skew := c.numbers.cfg.Skew
	s, err := c.numbers.cfg.Counters.Reserve(ctx, c.group, c.span.name, c.span.from.Add(-skew), c.span.to.Add(skew), n)
	if errors.Is(err, keygen.ErrClockRollback) { // a retry does not help
		return keygen.Span{}, &keygen.SetupError{Err: err, Cure: "set the clock of this process, or of the counters' server"}
	}
	if err != nil {
		return keygen.Span{}, err
	}
	last := c.numbers.limit - 1
	if s.First > last {
		return keygen.Span{}, fmt.Errorf("%w: the %d digits are used up until the end of %s", keygen.ErrExhausted, c.numbers.cfg.Digits, c.span.name)
	}
	s.Count = min(s.Count, (last-s.First)/s.Step+1)
	return s, nil
}

// Texts returns a generator of the numbers of a key as texts, 2026-11-000042, for models
// whose key is a text.
func (n *Numbers) Texts(key string) keygen.Generator[string] {
	return keygen.Func[string](func(ctx context.Context) (string, error) {
		number, err := n.Next(ctx, key)
		if err != nil {
			return "", err
		}
		return number.String(), nil
	})
}

// IDs returns a generator of the numbers of a key as integers, 202611000042. They are
// distinct for one key only.
func (n *Numbers) IDs(key string) keygen.Generator[int64] {
	return keygen.Func[int64](func(ctx context.Context) (int64, error) {
		number, err := n.Next(ctx, key)
		if err != nil {
			return 0, err
		}
		return number.Int64(), nil
	})
}
