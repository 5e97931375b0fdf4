// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"reflect"

	"github.com/shardid/shardid/keygen"
)

// filling is what a call has stored in its rows, so that it can be taken back.
type filling struct {
	first filled // most rows have one key
	more  []filled
}

// filled is what was stored in one field of the rows.
type filled struct {
	key  *key
	rows []int
	was  []reflect.Value // what the field, or what it points to, held; not valid for a nil pointer. Nil when all held zero.
}

func (f *filling) add(d filled) {
	if f.first.key == nil {
		f.first = d
		return
	}
	f.more = append(f.more, d)
}

// fill gives every row of r without a key one, with one keygen.Fill per key.
// On an error the rows are as they were.
func (f *filling) fill(ctx context.Context, keys []key, r *rows) error {
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

func (f *filling) fillKey(ctx context.Context, k *key, r *rows) error {
	empty, err := k.empty(r)
	if err != nil || len(empty) == 0 {
		return err
	}
	store, err := k.supply.draw(ctx, *r, empty)
	if err != nil {
		return err
	}
	done := filled{key: k}
	for i, row := range empty {
		v, err := k.field.of(r.at(row))
		if err == nil {
			if !k.plain {
				done.was = append(done.was, held(v))
			}
			err = store(i, v)
		}
		if err != nil {
			done.rows = empty[:i]
			f.add(done)
			return &RowError{Row: row, Field: k.field.name, Err: err}
		}
	}
	done.rows = empty
	f.add(done)
	return nil
}

// isEmpty reports whether row i has no key.
func (k *key) isEmpty(r *rows, i int) (bool, error) {
	v, err := k.field.in(r, i)
	switch {
	case err != nil || !k.typ.IsEmpty(v):
		return false, err
	case !v.CanSet():
		return false, &RowError{Row: i, Field: k.field.name, Err: ErrNotAddressable}
	}
	return true, nil
}

// held returns a copy of what v holds or points to, not valid if that is
// nothing.
func held(v reflect.Value) reflect.Value {
	v, ok := follow(v)
	if !ok {
		return v
	}
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	return was
}

// undo empties the fields again. It is only right while no statement with the
// ids was sent: later a retry with new ids could write the rows twice.
func (f *filling) undo(r *rows) {
	for i := range f.more {
		f.more[i].undo(r)
	}
	f.first.undo(r)
	*f = filling{}
}

func (d *filled) undo(r *rows) {
	for i, row := range d.rows {
		v, err := d.key.field.of(r.at(row))
		switch {
		case err != nil: // it was found before
		case d.was == nil || !d.was[i].IsValid():
			v.SetZero()
		default:
			v, _ = follow(v)
			v.Set(d.was[i])
		}
	}
}

// empty returns the rows whose key is empty, all of which can take one.
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

// ids returns the keys of all rows in order, nil when nothing is managed or when
// the keys are no integers. With several managed fields the first one counts.
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
		id, ok := int64(0), false
		if err == nil {
			id, ok = asID(v)
		}
		if !ok {
			return nil
		}
		out[i] = id
	}
	return out
}

// supply draws keys of any kind.
type supply interface {
	// draw draws keys for the empty rows of r and returns what stores the i-th of
	// them in a field.
	draw(ctx context.Context, r rows, empty []int) (store func(i int, v reflect.Value) error, err error)
}

// source is a generator of keys of type K, and how a field takes one.
type source[K any] struct {
	gen keygen.Generator[K]
	set func(v reflect.Value, key K) error
}

func (s source[K]) draw(ctx context.Context, _ rows, empty []int) (func(int, reflect.Value) error, error) {
	keys, err := s.keys(ctx, len(empty))
	return func(i int, v reflect.Value) error { return s.set(v, keys[i]) }, err
}

func (s source[K]) keys(ctx context.Context, n int) ([]K, error) {
	keys := make([]K, n)
	return keys, keygen.Fill(ctx, s.gen, keys)
}

// sequence is the source of ids.
type sequence struct{ source[int64] }

var _ supply = sequence{}
