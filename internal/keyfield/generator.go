// SPDX-License-Identifier: Apache-2.0

package keyfield

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/shardid/shardid/keygen"
)

// Generator makes the keys of one field. It is immutable and safe for concurrent use.
type Generator interface {
	// Source returns the kind of its keys.
	Source() Source
	// Bucketed returns the generator if its ids can contain a slot.
	Bucketed() (keygen.Bucketed, bool)
	// NewKeys returns an empty list of its keys.
	NewKeys() Keys
}

// Keys are keys that the generator of one field has made.
type Keys interface {
	Len() int
	// Draw adds n keys, in one reservation. After an error it has added none.
	Draw(ctx context.Context, n int) error
	// AddIDs adds n ids that fill makes, and none after an error. It serves only generators that are
	// Bucketed.
	AddIDs(n int, fill func(ids []int64) error) error
	// Take adds up to n keys that it removes from the beginning of another list of the same field.
	Take(from Keys, n int)
	// Truncate removes all keys but the first n, and keeps the memory.
	Truncate(n int)
	// Fit returns an error if a key, from the first one on, does not fit the field.
	Fit(first int) error
	// Put stores the i-th key in the field v; see [Type.Set].
	Put(i int, v reflect.Value) error
}

// Find returns the generator with the tag's name that fills fields of the type. If generators of
// several kinds have the name, it is the one whose keys have the field's own kind, otherwise one
// whose keys the field can hold. If none of them fits, the error wraps ErrType. If there is none of
// the name, the error is that of the set.
func Find(set keygen.Set, tag Tag, t *Type) (Generator, error) {
	ints, noInts := set.Lookup(tag.Name)
	texts, noTexts := set.LookupText(tag.Name)
	binaries, noBinaries := set.LookupBinary(tag.Name)
	switch { // the most specific kind is first: numbers can be stored in many types as digits
	case noBinaries == nil && t.holds(Binaries) && !tag.Text():
		return Given(binaries, t)
	case noTexts == nil && t.holds(Texts) && !tag.Text():
		return Given(texts, t)
	case noInts == nil || noTexts == nil || noBinaries == nil:
		return Given(ints, t)
	case t.holds(Ints):
		return nil, noInts
	case t.holds(Texts):
		return nil, noTexts
	}
	return nil, noBinaries
}

// Given returns gen, a keygen.Generator, as the generator of fields of the type. If they cannot hold
// its keys, the error wraps ErrType.
func Given(gen any, t *Type) (Generator, error) {
	switch gen := gen.(type) {
	case keygen.Generator[int64]:
		if t.holds(Ints) {
			return &generator[int64]{gen, t, Ints, (*Type).Set}, nil
		}
	case keygen.Generator[string]:
		if t.holds(Texts) {
			return &generator[string]{gen, t, Texts, (*Type).SetText}, nil
		}
	case keygen.Generator[[16]byte]:
		if t.holds(Binaries) {
			return &generator[[16]byte]{gen, t, Binaries, (*Type).SetBinary}, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", t.elem, ErrType)
}

type generator[K comparable] struct {
	of     keygen.Generator[K]
	typ    *Type
	source Source
	set    func(*Type, reflect.Value, K) error
}

func (g *generator[K]) Source() Source { return g.source }

func (g *generator[K]) Bucketed() (keygen.Bucketed, bool) {
	b, ok := g.of.(keygen.Bucketed)
	return b, ok && g.source == Ints
}

func (g *generator[K]) NewKeys() Keys { return &keys[K]{generator: g} }

type keys[K comparable] struct {
	generator *generator[K]
	all       []K
}

func (k *keys[K]) Len() int { return len(k.all) }

func (k *keys[K]) Draw(ctx context.Context, n int) error {
	return k.add(n, func(keys []K) error { return keygen.Fill(ctx, k.generator.of, keys) })
}

func (k *keys[K]) AddIDs(n int, fill func(ids []int64) error) error {
	return any(k).(*keys[int64]).add(n, fill)
}

var errZero = errors.New("the generator returned the zero key, which means that there is no key; a Generator must return an error instead")

func (k *keys[K]) add(n int, fill func([]K) error) error {
	first := len(k.all)
	k.all = slices.Grow(k.all, n)[:first+n]
	added := k.all[first:]
	clear(added)
	err := fill(added)
	var zero K
	if err == nil && slices.Contains(added, zero) {
		err = errZero
	}
	if err != nil {
		k.Truncate(first)
	}
	return err
}

func (k *keys[K]) Take(from Keys, n int) {
	other := from.(*keys[K])
	n = min(n, len(other.all))
	k.all = append(k.all, other.all[:n]...)
	other.all = other.all[n:]
}

func (k *keys[K]) Truncate(n int) { k.all = k.all[:n] }

func (k *keys[K]) Fit(first int) error {
	if !k.generator.typ.overflow {
		return nil
	}
	own := *k.generator.typ
	own.depth = 0
	scratch := reflect.New(own.elem).Elem()
	for _, key := range k.all[first:] {
		if err := k.generator.set(&own, scratch, key); err != nil {
			return err
		}
	}
	return nil
}

func (k *keys[K]) Put(i int, v reflect.Value) error {
	return k.generator.set(k.generator.typ, v, k.all[i])
}
