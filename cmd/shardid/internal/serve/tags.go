// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shardid/shardid/keygen"
)

// errTooManyTags: no other tag can be opened.
var errTooManyTags = errors.New("too many tags")

// generator is a generator that holds ids or a lease.
type generator interface {
	keygen.Generator[int64]
	keygen.Filler[int64]
	Close() error
}

// opening is a generator that is being opened. When done is closed, it is open or has
// failed.
type opening struct {
	done chan struct{}
	of   generator
	err  error
}

// pool opens generators by name, each once, and at most limit of them.
type pool struct {
	open  func(ctx context.Context, name string) (generator, error)
	limit int

	ctx  context.Context //nolint:containedctx // the lifetime of the generators, which is longer than a request's
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	all     map[string]*opening
	version int // how often a generator was added
}

func newPool(limit int, open func(context.Context, string) (generator, error)) *pool {
	p := &pool{open: open, limit: limit, all: map[string]*opening{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// get returns the generator of a name, and opens it first if needed. When ctx ends, the
// opening continues, as others may wait for it.
func (p *pool) get(ctx context.Context, name string) (generator, error) {
	o, err := p.begun(name)
	if err != nil {
		return nil, err
	}
	select {
	case <-o.done:
		return o.of, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %q is still being opened: %w", keygen.ErrStarved, name, ctx.Err())
	}
}

func (p *pool) begun(name string) (*opening, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, keygen.ErrClosed
	}
	if o, has := p.all[name]; has {
		return o, nil
	}
	if len(p.all) >= p.limit {
		return nil, fmt.Errorf("%w: %d are open; raise --tags", errTooManyTags, p.limit)
	}
	o := &opening{done: make(chan struct{})}
	p.all[name] = o
	p.work.Go(func() { p.finish(name, o) })
	return o, nil
}

func (p *pool) finish(name string, o *opening) {
	defer close(o.done)
	ctx, cancel := context.WithTimeout(p.ctx, openTimeout)
	defer cancel()
	of, err := p.open(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	o.of, o.err = of, err
	if o.err != nil {
		delete(p.all, name)
		return
	}
	p.version++
}

// snapshot returns the open generators, and a number that changes when one is added.
func (p *pool) snapshot() (map[string]keygen.Generator[int64], int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := map[string]keygen.Generator[int64]{}
	for name, o := range p.all {
		if o.of != nil {
			open[name] = o.of
		}
	}
	return open, p.version
}

// close stops openings, and closes all generators.
func (p *pool) close() error {
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	p.work.Wait()
	var errs []error
	for _, o := range p.all {
		errs = append(errs, o.of.Close())
	}
	return errors.Join(errs...)
}
