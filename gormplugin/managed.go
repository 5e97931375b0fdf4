// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql/driver"
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// managed is a field that a generator fills. It is immutable.
type managed struct {
	*schema.Field

	model  string
	kind   keyfield.Type
	hooks  bool // filled before the model's own hooks run
	gen    generator
	number bool // in a map the id is an int64
}

// encodings are the encodings that tags may name.
var encodings = map[string]*keygen.Encoding{
	"":                 keygen.Decimal,
	keyfield.Dec:       keygen.Decimal,
	keyfield.Base36:    keygen.Base36,
	keyfield.Base62:    keygen.Base62,
	keyfield.Crockford: keygen.Crockford,
}

// manage returns the field, to be filled according to the tag.
func manage(s *schema.Schema, f *schema.Field, tag keyfield.Tag, find func(*keyfield.Type) (generator, error)) (managed, error) {
	kind, err := keyfield.Of(f.FieldType)
	if err != nil {
		return managed{}, err
	}
	if kind, err = kind.With(tag, encodings[tag.Encoding].Encode); err != nil {
		return managed{}, err
	}
	gen, err := find(&kind)
	if err != nil {
		return managed{}, err
	}
	if gen.source == keyfield.Binaries && !f.IndirectFieldType.Implements(reflect.TypeFor[driver.Valuer]()) && f.Serializer == nil {
		return managed{}, errNoValuer
	}
	m := managed{Field: f, model: s.Name, kind: kind, hooks: tag.Hooks, gen: gen}
	m.number = isInteger(f.IndirectFieldType.Kind())
	return m, nil
}

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

func (m *managed) fail(err error) error { return &FieldError{m.model, m.Name, err} }

// fits returns an error unless the keys from the first one on fit the field. It checks only
// narrow fields.
func (m *managed) fits(k *keys, first int) error {
	if !m.kind.Narrow() {
		return nil
	}
	scratch := reflect.New(m.FieldType).Elem()
	for i := first; i < k.len(); i++ {
		if err := k.put(i, &m.kind, scratch); err != nil {
			return m.fail(err)
		}
	}
	return nil
}

// draw adds n keys that fit the field.
func (m *managed) draw(ctx context.Context, k *keys, n int) error {
	if n <= 0 {
		return nil
	}
	first := k.len()
	if err := k.draw(ctx, &m.gen, n); err != nil {
		return m.fail(err)
	}
	return m.fits(k, first)
}

// columnValue returns the i-th key as a column value for a map.
func (m *managed) columnValue(k *keys, i int) (any, error) {
	scratch := reflect.New(m.FieldType).Elem()
	if err := k.put(i, &m.kind, scratch); err != nil {
		return nil, err
	}
	if m.number {
		return k.ints[i], nil
	}
	return scratch.Interface(), nil
}
