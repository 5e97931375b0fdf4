package gormplugin

import (
	"hash/maphash"
	"sync/atomic"
)

// memory keeps what was found out about texts: an application sends few different
// ones, as values are parameters. Each text has one place, from which a newer one
// drives it away, so a text may have to be looked at again. It is safe for
// concurrent use.
type memory[V any] struct {
	seed   maphash.Seed
	most   int // bytes of a text; longer ones are often batches, which differ
	places [512]atomic.Pointer[known[V]]
}

type known[V any] struct {
	text  string
	value V
}

func newMemory[V any](most int) *memory[V] {
	return &memory[V]{seed: maphash.MakeSeed(), most: most}
}

func (m *memory[V]) place(text string) *atomic.Pointer[known[V]] {
	return &m.places[maphash.String(m.seed, text)%uint64(len(m.places))]
}

// get returns what is known about the text, nil if nothing is. It is shared: do
// not write to it.
func (m *memory[V]) get(text string) *V {
	if len(text) > m.most {
		return nil
	}
	if k := m.place(text).Load(); k != nil && k.text == text {
		return &k.value
	}
	return nil
}

// put returns the value's place, in which it is shared from now on.
func (m *memory[V]) put(text string, value V) *V {
	k := &known[V]{text, value}
	if len(text) <= m.most {
		m.place(text).Store(k)
	}
	return &k.value
}
