package sqlxhook

import (
	"context"
	"reflect"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// filling is what a call has stored in its rows, so that it can be taken back.
type filling struct {
	stored []stored
}

type stored struct {
	field reflect.Value
	isNil bool // it was a nil pointer
}

// undo empties the fields again. It is only right while no statement with the
// ids was sent: later a retry with new ids could write the rows twice.
func (f *filling) undo() {
	for _, s := range f.stored {
		v := s.field
		for !s.isNil && v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		v.SetZero()
	}
	f.stored = nil
}

// fill gives every row of r without a key one, with one keygen.Fill per key.
// On an error the rows are as they were.
func fill(ctx context.Context, keys []key, r *rows) (filling, error) {
	var f filling
	for i := range keys {
		if err := f.fill(ctx, &keys[i], r); err != nil {
			f.undo()
			return filling{}, err
		}
	}
	return f, nil
}

func (f *filling) fill(ctx context.Context, k *key, r *rows) error {
	empty, err := k.empty(r)
	if err != nil || len(empty) == 0 {
		return err
	}
	ids := make([]int64, len(empty))
	if err := keygen.Fill(ctx, k.gen, ids); err != nil {
		return err
	}
	for i, row := range empty {
		v, err := k.field.of(r.at(row))
		if err == nil {
			err = f.set(k.typ, v, ids[i])
		}
		if err != nil {
			return &RowError{Row: row, Field: k.field.name, Err: err}
		}
	}
	return nil
}

func (f *filling) set(t keyfield.Type, v reflect.Value, id int64) error {
	isNil := v.Kind() == reflect.Pointer && v.IsNil()
	if err := t.Set(v, id); err != nil {
		return err
	}
	f.stored = append(f.stored, stored{v, isNil})
	return nil
}

// empty returns the rows whose key is empty, all of which can take one.
func (k *key) empty(r *rows) ([]int, error) {
	var empty []int
	for i := range r.n {
		v, err := k.field.of(r.at(i))
		switch {
		case err != nil:
		case !k.typ.IsEmpty(v):
			continue
		case !v.CanSet():
			err = ErrNotAddressable
		}
		if err != nil {
			return nil, &RowError{Row: i, Field: k.field.name, Err: err}
		}
		empty = append(empty, i)
	}
	return empty, nil
}

// ids returns the keys of all rows in order, nil when nothing is managed. With
// several managed fields the first one counts.
func ids(keys []key, r *rows) []int64 {
	if len(keys) == 0 {
		return nil
	}
	out := make([]int64, r.n)
	for i := range out {
		if v, err := keys[0].field.of(r.at(i)); err == nil {
			out[i] = asID(v)
		}
	}
	return out
}

// anyEmpty reports whether a row lacks one of the keys.
func anyEmpty(keys []key, r *rows) (bool, error) {
	for i := range keys {
		if empty, err := keys[i].empty(r); err != nil || len(empty) > 0 {
			return true, err
		}
	}
	return false, nil
}
