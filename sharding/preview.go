// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Preview collects what shards will do otherwise with the statements that the source of
// a [Migration] still serves: see [Migration].Preview. Statements that differ in values
// alone are one. It keeps the first 1,000 of them. The zero Preview is ready to use, and
// safe for concurrent use.
type Preview struct {
	// Notify is told when a statement is found for the first time, and when one like it
	// fares worse. The statement waits meanwhile. Defaults to nobody.
	Notify func(Previewed)

	mu      sync.RWMutex
	found   map[string]*previewed
	omitted atomic.Int64
}

// Previewed is what a [Preview] has found of one statement.
type Previewed struct {
	// Text is the statement with ? in place of its values.
	Text string
	// Times is how often it was sent since it was found.
	Times int64
	// Change is the worst that was found.
	Change Change
	// Err is why shards will refuse it, of WillBeRefused.
	Err error
}

// Change is what shards do otherwise with a statement than the source.
type Change int

// The changes, the worst last.
const (
	Unchanged     Change = iota // one shard does what the source does
	SeveralShards               // it goes to several shards, and their answers are combined
	LooksFirst                  // other shards are asked first for rows with its unique keys
	WillBeRefused
)

// String returns what becomes of the statement, in words.
func (c Change) String() string {
	if c < Unchanged || c > WillBeRefused {
		return "unknown"
	}
	return [...]string{"one shard", "several shards", "other shards are asked first", "refused"}[c]
}

// previewed is what is collected of a statement.
type previewed struct {
	text  string
	times atomic.Int64

	mu     sync.Mutex
	change Change
	err    error
}

// Of these only the first is read again and again.
const (
	maxPreviewed = 1000
	maxPreview   = 4 << 10 // bytes of a text
	often        = 64      // a statement is planned each time so often, and then
	seldom       = 1024    // once in so many times
)

// Count counts a statement if it was found before, and reports whether it is to be
// planned with its values: one that is refused is known well enough, and of others one
// in 1,024 will do after the first 64. Package shardsql calls it.
func (p *Preview) Count(text string) (plan bool) {
	p.mu.RLock()
	known := p.found[text]
	p.mu.RUnlock()
	if known == nil {
		return true
	}
	n := known.times.Add(1)
	known.mu.Lock()
	defer known.mu.Unlock()
	return known.change != WillBeRefused && (n <= often || n%seldom == 0)
}

// Add notes what becomes of a statement that Count wanted planned. Package shardsql calls
// it.
func (p *Preview) Add(text string, c Change, err error) {
	if c == Unchanged {
		return
	}
	known := p.entry(text)
	if known == nil {
		return
	}
	known.mu.Lock()
	worse := c > known.change
	if worse {
		known.change, known.err = c, err
	}
	known.mu.Unlock()
	if worse && p.Notify != nil {
		p.Notify(known.read())
	}
}

// entry returns what is collected of a statement, nil when there are too many.
func (p *Preview) entry(text string) *previewed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.found[text]; known != nil {
		return known
	}
	if len(p.found) >= maxPreviewed || len(text) > maxPreview {
		p.omitted.Add(1)
		return nil
	}
	if p.found == nil {
		p.found = map[string]*previewed{}
	}
	known := &previewed{text: strings.Clone(text)}
	known.times.Store(1)
	p.found[known.text] = known
	return known
}

func (e *previewed) read() Previewed {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Previewed{Text: e.text, Times: e.times.Load(), Change: e.change, Err: e.err}
}

// Statements returns what was found so far, the worst first, and of those the most
// frequent.
func (p *Preview) Statements() []Previewed {
	p.mu.RLock()
	found := slices.Collect(maps.Values(p.found))
	p.mu.RUnlock()
	all := make([]Previewed, len(found))
	for i, e := range found {
		all[i] = e.read()
	}
	slices.SortFunc(all, func(a, b Previewed) int {
		return cmp.Or(cmp.Compare(b.Change, a.Change), cmp.Compare(b.Times, a.Times), strings.Compare(a.Text, b.Text))
	})
	return all
}

// Omitted returns how many statements that shards would treat otherwise were not kept,
// as there were too many or as they were longer than 4 KiB without their values.
func (p *Preview) Omitted() int64 { return p.omitted.Load() }
