package sqlxhook

import (
	"strings"
	"sync"

	"github.com/shardid/shardid/sharding"
)

// layout is what a snapshot of the router means for the names in statements. It
// is safe for concurrent use.
type layout struct {
	snapshot   *sharding.Snapshot
	physical   map[string]bool // names of physical tables, in lower case
	owners     map[sharding.Target]string
	nowhere    *binding // of handles that lead to no shard
	everywhere *binding // of the handle that leads to all of them

	mu     sync.RWMutex
	shards map[sharding.Target]*binding // guarded by mu
}

// binding says which tables a handle may name and what they are called there.
// There is one per target and layout, so that plans can be told apart by it. It
// is safe for concurrent use: all that changes is what it remembers.
type binding struct {
	layout *layout
	target sharding.Target   // zero for nowhere and everywhere
	tables map[string]string // logical name in lower case to physical name

	mu    sync.RWMutex
	texts map[string]expanded // of statements that were expanded; guarded by mu
}

// maxExpanded bounds the statements that a binding keeps, for programs that make
// their SQL text anew for each call.
const maxExpanded = 256

// recall returns what a statement was expanded to before.
func (b *binding) recall(query string) (expanded, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	x, found := b.texts[query]
	return x, found
}

// keep keeps what a statement is expanded to. A full memory is emptied: which
// statements are wanted shows at once.
func (b *binding) keep(query string, x expanded) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.texts == nil || len(b.texts) >= maxExpanded {
		b.texts = map[string]expanded{}
	}
	b.texts[query] = x
}

func newLayout(s *sharding.Snapshot) *layout {
	l := &layout{snapshot: s, physical: map[string]bool{}, owners: map[sharding.Target]string{}, shards: map[sharding.Target]*binding{}}
	l.nowhere, l.everywhere = &binding{layout: l}, &binding{layout: l}
	for _, t := range s.Tables() {
		for _, target := range s.Targets(t.Name) {
			l.physical[strings.ToLower(target.Table)] = true
			l.owners[target] = t.Name
		}
	}
	return l
}

// layout returns the layout of the router's present snapshot, nil without a
// router.
func (h *Hook) layout() *layout {
	if h.router == nil {
		return nil
	}
	s := h.router.Snapshot()
	l := h.known.Load()
	if l == nil || l.snapshot != s {
		l = newLayout(s)
		h.known.Store(l)
	}
	return l
}

// shard returns the binding of a target, which must be one of the table's.
func (l *layout) shard(table string, target sharding.Target) *binding {
	l.mu.RLock()
	b := l.shards[target]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	b = &binding{layout: l, target: target, tables: map[string]string{}}
	for _, t := range l.snapshot.Tables() {
		if !l.snapshot.SameGroup(table, t.Name) {
			continue
		}
		if here, placed, err := l.snapshot.Hinted(t.Name, sharding.Hint{On: target}); err == nil && placed {
			b.tables[strings.ToLower(t.Name)] = here.Table
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.shards[target]; first != nil {
		return first
	}
	l.shards[target] = b
	return b
}

// table returns the table that a statement sent with b means by a name, which is
// its logical or its physical one.
func (b *binding) table(name string) (*sharding.Table, bool) {
	if t, ok := b.layout.snapshot.Lookup(name); ok {
		return t, true
	}
	for logical, physical := range b.tables {
		if strings.EqualFold(physical, name) {
			return b.layout.snapshot.Lookup(logical)
		}
	}
	return nil, false
}

// holds returns the target of a table that b may name.
func (b *binding) holds(t *sharding.Table) sharding.Target {
	return sharding.Target{DB: b.target.DB, Table: b.tables[strings.ToLower(t.Name)]}
}

// owns reports whether name is that of a physical table of b.
func (b *binding) owns(name string) bool {
	_, logical := b.layout.snapshot.Lookup(name)
	_, known := b.table(name)
	return known && !logical
}
