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

// Preview collects the statements that shards will execute otherwise than the source of a
// [Migration], which still serves them: see [Migration].Preview. Statements that differ only in
// their values are one. It keeps the first 1,000 of them. The zero Preview is ready to use. It is
// safe for concurrent use.
type Preview struct {
	// Notify is called when a statement is found for the first time, and when its change becomes
	// worse. The statement waits meanwhile. Defaults to none.
	Notify func(Previewed)

	mu      sync.RWMutex
	found   map[string]*previewed
	omitted atomic.Int64
}

// Previewed is a statement that a [Preview] has found.
type Previewed struct {
	// Text is the statement with ? instead of its values.
	Text string
	// Times is how often it was sent since it was found.
	Times int64
	// Change is the worst change that was found.
	Change Change
	// Err is the refusal, if Change is WillBeRefused.
	Err error
}

// Change is the difference between the execution of a statement by the shards and by the source.
type Change int

// The changes are in ascending order; the last is the worst.
const (
	Unchanged     Change = iota // one shard executes it as the source does
	SeveralShards               // it goes to several shards, and their results are combined
	LooksFirst                  // other shards are searched first for rows with its unique keys
	WillBeRefused
)

// String describes the change in words.
func (c Change) String() string {
	if c < Unchanged || c > WillBeRefused {
		return "unknown"
	}
	return [...]string{"one shard", "several shards", "other shards are asked first", "refused"}[c]
}

// previewed is the collected data of a statement.
type previewed struct {
	text  string
	times atomic.Int64

	mu     sync.Mutex
	change Change
	err    error
}

// All fields but the first are fixed.
const (
	maxPreviewed = 1000
	maxPreview   = 4 << 10 // largest size of a text in bytes
	often        = 64      // a statement is planned each of its first 64 times, and then
	seldom       = 1024    // every 1,024th time
)

// Count counts a statement if it was found before, and reports whether it must be planned with its
// values: a statement that is refused need not be planned again; any other is planned the first 64
// times and then every 1,024th time. Package shardsql calls it.
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

// Add records the change of a statement for which Count returned true. Package shardsql calls it.
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

// entry returns the data of a statement, nil if there are too many.
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

// Statements returns the collected statements, the worst first, and of equal ones the most frequent
// first.
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

// Omitted returns the number of changed statements that were not kept, because there were too many
// or because they were longer than 4 KiB without their values.
func (p *Preview) Omitted() int64 { return p.omitted.Load() }
