package gormplugin

import "slices"

// keyset is what a condition proves about the rows it matches, in terms of E:
// the targets they lie on, say. It is always a superset of the truth, so that
// one element means that no matching row can lie elsewhere.
type keyset[E comparable] struct {
	all bool  // nothing is proven
	of  []E   // otherwise: each element once; none means that no row can match
	err error // why a condition on the key proves nothing
}

func unknown[E comparable](why error) keyset[E] { return keyset[E]{all: true, err: why} }

// add puts one element into a set that is not all.
func (k *keyset[E]) add(e E) {
	if !slices.Contains(k.of, e) {
		k.of = append(k.of, e)
	}
}

// and is what both conditions together prove.
func (k keyset[E]) and(o keyset[E]) keyset[E] {
	switch {
	case k.all && o.all:
		if k.err == nil {
			return o
		}
		return k
	case k.all:
		return o
	case o.all:
		return k
	}
	var both keyset[E]
	for _, e := range k.of {
		if slices.Contains(o.of, e) {
			both.of = append(both.of, e)
		}
	}
	return both
}

// or is what one or the other condition proves.
func (k keyset[E]) or(o keyset[E]) keyset[E] {
	if k.all {
		return k
	}
	if o.all || len(k.of) == 0 {
		return o
	}
	if len(o.of) == 0 {
		return k
	}
	either := keyset[E]{of: slices.Clone(k.of)}
	for _, e := range o.of {
		either.add(e)
	}
	return either
}

// only reports whether no element but e can be in the set.
func (k keyset[E]) only(e E) bool {
	return !k.all && (len(k.of) == 0 || len(k.of) == 1 && k.of[0] == e)
}
