// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"sync"
	"sync/atomic"
)

const (
	// maxPlans limits the number of plans that a Hook keeps, for programs that make a new
	// SQL text for each call.
	maxPlans = 1024
	// maxTexts limits the total bytes of the batch texts that a Hook keeps.
	maxTexts = 16 << 20
	// recentPlans is the length of plans.recent; it is a power of two.
	recentPlans = 256
)

// plans caches compiled plans. It is safe for concurrent use.
type plans struct {
	recent [recentPlans]atomic.Pointer[plan] // some plans of m, found without hashing the whole query

	mu sync.RWMutex
	m  map[planKey]*plan // guarded by mu
}

// get returns the plan with this key, or nil.
func (c *plans) get(k *planKey) *plan {
	slot := &c.recent[k.slot()]
	if p := slot.Load(); p != nil && p.key == *k {
		return p
	}
	c.mu.RLock()
	p := c.m[*k]
	c.mu.RUnlock()
	if p != nil {
		slot.Store(p)
	}
	return p
}

// slot is a cheap hash. It reads the length and three bytes only, because two queries of one
// program rarely agree in all of these.
func (k *planKey) slot() uint {
	n := uint(len(k.query))
	if n == 0 {
		return 0
	}
	h := n*31 + uint(k.query[n/2])
	h = h*31 + uint(k.query[n*3/4])
	h = h*31 + uint(k.query[n-1])
	if k.insert {
		h++
	}
	return h % recentPlans
}

// put stores p. When the cache is full, it drops an arbitrary plan: a program that fills the
// cache uses no plan more often than the others.
func (c *plans) put(p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= maxPlans {
		for old, dropped := range c.m {
			delete(c.m, old)
			c.recent[old.slot()].CompareAndSwap(dropped, nil)
			break
		}
	}
	c.m[p.key] = p
}

// texts caches the texts of batch statements by plan and number of rows. It is safe for
// concurrent use.
type texts struct {
	mu    sync.RWMutex
	m     map[batch]string // guarded by mu
	bytes int              // total of the texts in m; guarded by mu
}

// batch is the key of a cached text.
type batch struct {
	plan *plan
	rows int
}

// of returns the text of the plan's statement for n rows.
func (c *texts) of(p *plan, n int) string {
	b := batch{p, n}
	c.mu.RLock()
	text, found := c.m[b]
	c.mu.RUnlock()
	if !found {
		text = p.stmt.sql(n, p.key.style)
		c.put(b, text)
	}
	return text
}

// put stores a text. A full cache is emptied: the texts in use are made again by the next
// calls.
func (c *texts) put(b batch, text string) {
	if len(text) > maxTexts {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.m[b]; found {
		return
	}
	if c.bytes+len(text) > maxTexts {
		clear(c.m)
		c.bytes = 0
	}
	c.m[b] = text
	c.bytes += len(text)
}
