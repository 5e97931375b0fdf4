package keygen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set holds the generators that models name in their keygen tags. One Set
// serves gormplugin and sqlxhook alike. It must not be changed once in use.
type Set struct {
	// Default fills fields tagged `keygen:""`. Nil makes such a tag an error.
	Default Generator[int64]
	// Named fills fields tagged `keygen:"name"`.
	Named map[string]Generator[int64]
}

// Lookup returns the generator called name, "" being the default one, or an
// error that wraps [ErrUnknownGenerator] and lists the names there are.
func (s Set) Lookup(name string) (Generator[int64], error) {
	if name == "" {
		if s.Default == nil {
			return nil, fmt.Errorf("%w: the set has no Default; set it, or name one of [%s] in the tag", ErrUnknownGenerator, s.names())
		}
		return s.Default, nil
	}
	if g := s.Named[name]; g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("%w %q; the set has [%s]", ErrUnknownGenerator, name, s.names())
}

func (s Set) names() string {
	return strings.Join(slices.Sorted(maps.Keys(s.Named)), ", ")
}
