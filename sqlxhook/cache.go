// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import "sync"

const (
	// maxPlans limits the number of plans that a Hook keeps, for programs that make a new
	// SQL text for each call.
	maxPlans = 1024
	// maxTexts limits the total bytes of the batch texts that a Hook keeps.
	maxTexts = 16 << 20
)

// plans caches compiled plans. It is safe for concurrent use.
type plans struct {
	mu sync.RWMutex
	m  map[planKey]*plan // guarded by mu
}

// get returns the plan with this key, or nil.
func (c *plans) get(k *planKey) *plan {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[*k]
}

// put stores p. When the cache is full, it drops an arbitrary plan: a program that fills the
// cache uses no plan more often than the others.
func (c *plans) put(p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= maxPlans {
		for old := range c.m {
			delete(c.m, old)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.m[b]; found || len(text) > maxTexts {
		return
	}
	if c.bytes+len(text) > maxTexts {
		clear(c.m)
		c.bytes = 0
	}
	c.m[b] = text
	c.bytes += len(text)
}
