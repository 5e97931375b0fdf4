package gormplugin

import (
	"context"
	"sync"
	"time"
)

// txPatience is the longest that a create inside a transaction waits for a key
// when its context allows more: the generator may be waiting for the very
// connection that the transaction holds, and then for ever.
const txPatience = 5 * time.Second

// patient is a context that ends txPatience after somebody has begun to wait for
// its end. A generator that has its keys in memory never does, so that nothing
// is set up for it.
type patient struct {
	context.Context //nolint:containedctx // it is a context

	mu      sync.Mutex
	limited context.Context //nolint:containedctx // it is a context
	cancel  context.CancelFunc
}

func (p *patient) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limited == nil {
		p.limited, p.cancel = context.WithTimeout(p.Context, txPatience)
	}
	return p.limited.Done()
}

func (p *patient) Err() error { return p.now().Err() }

func (p *patient) Deadline() (time.Time, bool) { return p.now().Deadline() }

func (p *patient) now() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limited == nil {
		return p.Context
	}
	return p.limited
}

// end releases what was set up, if anything was.
func (p *patient) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}
