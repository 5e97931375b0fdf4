// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"sync"
	"time"
)

// txKeyTimeout bounds the wait for a key of a create inside a transaction. Without it the
// generator could wait for ever for the connection that the transaction holds.
const txKeyTimeout = 5 * time.Second

// lazyTimeout is a context that ends txKeyTimeout after the first call of Done. A generator
// with keys in memory never calls Done, so no timer is set up for it.
type lazyTimeout struct {
	context.Context //nolint:containedctx // it is a context

	mu      sync.Mutex
	limited context.Context //nolint:containedctx // it is a context
	cancel  context.CancelFunc
}

func (p *lazyTimeout) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limited == nil {
		p.limited, p.cancel = context.WithTimeout(p.Context, txKeyTimeout)
	}
	return p.limited.Done()
}

func (p *lazyTimeout) Err() error { return p.now().Err() }

func (p *lazyTimeout) Deadline() (time.Time, bool) { return p.now().Deadline() }

func (p *lazyTimeout) now() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limited == nil {
		return p.Context
	}
	return p.limited
}

// end releases the timer, if one was set up.
func (p *lazyTimeout) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}
