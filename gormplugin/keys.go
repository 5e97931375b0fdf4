// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// generator is a generator of one of the three kinds of keys.
type generator struct {
	source   keyfield.Source
	ints     keygen.Generator[int64]
	texts    keygen.Generator[string]
	binaries keygen.Generator[[16]byte]
}

// generatorOf returns the generator that fills a field of the kind with the tag.
func generatorOf(set keygen.Set, tag keyfield.Tag, kind *keyfield.Type) (generator, error) {
	var g generator
	var missing [3]error
	g.ints, missing[keyfield.Ints] = set.Lookup(tag.Name)
	g.texts, missing[keyfield.Texts] = set.LookupText(tag.Name)
	g.binaries, missing[keyfield.Binaries] = set.LookupBinary(tag.Name)
	source, err := kind.Choose(tag, func(s keyfield.Source) bool { return missing[s] == nil })
	if err == nil {
		g.source = source
		return g, nil
	}
	if missing[0] != nil && missing[1] != nil && missing[2] != nil {
		return g, missing[wanted(tag, kind)]
	}
	return g, err
}

// wanted returns the kind of keys that the field would accept first.
func wanted(tag keyfield.Tag, kind *keyfield.Type) keyfield.Source {
	for _, s := range [...]keyfield.Source{keyfield.Ints, keyfield.Texts, keyfield.Binaries} {
		if _, err := kind.Choose(tag, func(offered keyfield.Source) bool { return offered == s }); err == nil {
			return s
		}
	}
	return keyfield.Ints
}

// keys are keys of one generator that were drawn and not all used. Only the slice for the
// generator's kind is in use.
type keys struct {
	ints     []int64
	texts    []string
	binaries [][16]byte
	source   keyfield.Source
}

func (k *keys) len() int {
	switch k.source {
	case keyfield.Texts:
		return len(k.texts)
	case keyfield.Binaries:
		return len(k.binaries)
	}
	return len(k.ints)
}

// reset makes k an empty list of keys of g, and keeps its memory.
func (k *keys) reset(g *generator) {
	k.source = g.source
	k.ints, k.texts, k.binaries = k.ints[:0], k.texts[:0], k.binaries[:0]
}

// draw adds n keys, in one reservation.
func (k *keys) draw(ctx context.Context, g *generator, n int) (err error) {
	switch k.source {
	case keyfield.Texts:
		k.texts, err = drawn(ctx, g.texts, k.texts, n)
	case keyfield.Binaries:
		k.binaries, err = drawn(ctx, g.binaries, k.binaries, n)
	default:
		k.ints, err = drawn(ctx, g.ints, k.ints, n)
	}
	return err
}

var errZeroKey = errors.New("the generator returned the zero key, which means that there is no key; a Generator must return an error instead")

func drawn[K comparable](ctx context.Context, g keygen.Generator[K], to []K, n int) ([]K, error) {
	before := len(to)
	to = slices.Grow(to, n)[:before+n]
	clear(to[before:])
	if err := keygen.Fill(ctx, g, to[before:]); err != nil {
		return to[:before], err
	}
	var zero K
	if slices.Contains(to[before:], zero) {
		return to[:before], errZeroKey
	}
	return to, nil
}

// take moves up to n keys from k's end to the end of to.
func (k *keys) take(to *keys, n int) {
	n = min(n, k.len())
	k.ints, to.ints = moved(k.ints, to.ints, n, k.source == keyfield.Ints)
	k.texts, to.texts = moved(k.texts, to.texts, n, k.source == keyfield.Texts)
	k.binaries, to.binaries = moved(k.binaries, to.binaries, n, k.source == keyfield.Binaries)
}

func moved[K any](from, to []K, n int, used bool) (rest, more []K) {
	if !used {
		return from, to
	}
	return from[n:], append(to, from[:n]...)
}

// put stores the i-th key in the field v.
func (k *keys) put(i int, kind *keyfield.Type, v reflect.Value) error {
	switch k.source {
	case keyfield.Texts:
		return kind.SetText(v, k.texts[i])
	case keyfield.Binaries:
		return kind.SetBinary(v, k.binaries[i])
	}
	return kind.Set(v, k.ints[i])
}
