// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"fmt"
	"reflect"
)

// filledKeys records the keys that a call has stored in its rows, so that it can remove them
// again.
type filledKeys struct {
	first filledKey // most rows have one key
	more  []filledKey
}

// filledKey records the values that were stored in one field of the rows.
type filledKey struct {
	key    *key
	rows   []int
	before []reflect.Value // the former values of the field, or of what it points to; invalid for a nil pointer. Nil if all were zero.
}

func (f *filledKeys) add(d filledKey) {
	if f.first.key == nil {
		f.first = d
		return
	}
	f.more = append(f.more, d)
}

// fill gives a key to every row of r that has none. It calls keygen.Fill once per key field.
// On an error the rows are unchanged.
func (f *filledKeys) fill(ctx context.Context, keys []key, r *rows) error {
	for i := range keys {
		if keys[i].numbered {
			continue
		}
		if err := f.fillKey(ctx, &keys[i], r); err != nil {
			f.undo(r)
			return err
		}
	}
	return nil
}

func (f *filledKeys) fillKey(ctx context.Context, k *key, r *rows) error {
	empty, err := k.empty(r)
	if err != nil || len(empty) == 0 {
		return err
	}
	keys := k.gen.NewKeys()
	if err := k.draw(ctx, keys, r, empty); err != nil {
		return fmt.Errorf("%s: %w", k.field.name, err)
	}
	done := filledKey{key: k}
	for i, row := range empty {
		v, err := k.field.of(r.at(row))
		if err == nil {
			if !k.plain {
				done.before = append(done.before, copyOf(v))
			}
			err = keys.Put(i, v)
		}
		if err != nil {
			done.rows = empty[:i]
			f.add(done)
			return k.field.fail(row, err)
		}
	}
	done.rows = empty
	f.add(done)
	return nil
}

// isEmpty reports whether row i has no key. It fails if the row needs a key and cannot store
// one.
func (k *key) isEmpty(r *rows, i int) (bool, error) {
	v, err := k.field.of(r.at(i))
	switch {
	case err != nil:
		return false, k.field.fail(i, err)
	case !k.typ.IsEmpty(v):
		return false, nil
	case !v.CanSet():
		return false, k.field.fail(i, ErrNotAddressable)
	}
	return true, nil
}

// copyOf returns a copy of what v holds or points to. The copy is invalid if v is nil.
func copyOf(v reflect.Value) reflect.Value {
	v, ok := follow(v)
	if !ok {
		return v
	}
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	return was
}

// undo restores the former values of the fields. It must not be called once a statement with
// the ids may have run: a retry with new ids could then write the rows twice.
func (f *filledKeys) undo(r *rows) {
	for i := range f.more {
		f.more[i].undo(r)
	}
	f.first.undo(r)
	*f = filledKeys{}
}

func (d *filledKey) undo(r *rows) {
	for i, row := range d.rows {
		v, _ := d.key.field.of(r.at(row)) // it was found when it was filled
		if d.before == nil || !d.before[i].IsValid() {
			v.SetZero()
			continue
		}
		v, _ = follow(v)
		v.Set(d.before[i])
	}
}

// empty returns the numbers of the rows whose key is empty. It fails if one of these rows
// cannot store a key.
func (k *key) empty(r *rows) ([]int, error) {
	var empty []int
	for i := range r.n {
		switch is, err := k.isEmpty(r, i); {
		case err != nil:
			return nil, err
		case !is:
			continue
		}
		if empty == nil {
			empty = make([]int, 0, r.n-i)
		}
		empty = append(empty, i)
	}
	return empty, nil
}

// ids returns the keys of all rows in order. It returns nil if the type has no managed key,
// or if a key is no integer. With several managed fields it returns the keys of the first.
func ids(keys []key, r *rows) []int64 {
	if len(keys) == 0 || !keys[0].integer {
		return nil
	}
	k := &keys[0]
	if k.numbered {
		if empty, err := k.empty(r); err != nil || len(empty) > 0 {
			return nil
		}
	}
	out := make([]int64, r.n)
	for i := range out {
		v, err := k.field.of(r.at(i))
		if err != nil {
			return nil
		}
		var ok bool
		if out[i], ok = asID(v); !ok {
			return nil
		}
	}
	return out
}
