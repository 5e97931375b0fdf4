// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/nilness"
)

// Set holds the generators that models name in their keygen tags, one map per kind of key. One
// name may be in several maps: a field takes the generator for its own kind. gormplugin and
// sqlxhook share one Set. It must not be changed once in use.
type Set struct {
	// Default fills fields tagged `keygen:""`. Nil makes such a tag an error.
	Default Generator[int64]
	// Named fills fields tagged `keygen:"name"`: integers, and strings that hold the id's
	// digits in the text form that the tag names.
	Named map[string]Generator[int64]
	// Text fills strings tagged `keygen:"name"`; the name "" is the default for strings.
	Text map[string]Generator[string]
	// Binary fills [16]byte and types derived from it, such as UUIDs, tagged `keygen:"name"`;
	// the name "" is the default for these.
	Binary map[string]Generator[[16]byte]
}

// Lookup returns the generator of int64 ids called name; "" names the default one. If there is
// none, the error wraps [ErrUnknownGenerator] and lists the existing names.
func (s Set) Lookup(name string) (Generator[int64], error) {
	if name == "" {
		if nilness.Is(s.Default) {
			return nil, fmt.Errorf("%w: the set has no Default; set it%s", ErrUnknownGenerator, otherwise(s.Named))
		}
		return s.Default, nil
	}
	return lookup(s.Named, "", name)
}

// otherwise returns a hint to the names that a tag could use instead of the default.
func otherwise[K any](named map[string]Generator[K]) string {
	if len(named) == 0 {
		return ""
	}
	return ", or name one of [" + names(named) + "] in the tag"
}

// Check returns an error that wraps [ErrUnknownGenerator] when a generator of the set is nil or
// a nil pointer, because it would fail or panic at the first key. A set without a Default is
// valid.
func (s Set) Check() error {
	errs := []error{checkNil("Named", s.Named), checkNil("Text", s.Text), checkNil("Binary", s.Binary)}
	if s.Default != nil && nilness.Is(s.Default) {
		errs = append(errs, fmt.Errorf("%w: Default is a nil %T; make the generator before the set is used", ErrUnknownGenerator, s.Default))
	}
	return errors.Join(errs...)
}

func checkNil[K any](kind string, of map[string]Generator[K]) error {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if nilness.Is(of[name]) {
			return fmt.Errorf("%w: %s[%q] is nil; make the generator before the set is used", ErrUnknownGenerator, kind, name)
		}
	}
	return nil
}

// LookupText returns the generator of strings called name, with the errors of [Set.Lookup].
func (s Set) LookupText(name string) (Generator[string], error) {
	return lookup(s.Text, "string ", name)
}

// LookupBinary returns the generator of 16 bytes called name, with the errors of [Set.Lookup].
func (s Set) LookupBinary(name string) (Generator[[16]byte], error) {
	return lookup(s.Binary, "[16]byte ", name)
}

func lookup[K any](m map[string]Generator[K], kind, name string) (Generator[K], error) {
	g, listed := m[name]
	switch {
	case listed && !nilness.Is(g):
		return g, nil
	case listed:
		return nil, fmt.Errorf("%w: the set's %s%q is nil; give it a generator before the set is used", ErrUnknownGenerator, kind, name)
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("%w %q; the set names no %sgenerators; add it before the set is used", ErrUnknownGenerator, name, kind)
	}
	return nil, fmt.Errorf("%w %q; the set has %s[%s]", ErrUnknownGenerator, name, kind, names(m))
}

func names[K any](m map[string]Generator[K]) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
