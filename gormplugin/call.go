// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// With returns a context under which a create fills the primary key of its rows from gen,
// whatever the model's tags say. The primary key must be a single field. Rows of associations,
// and rows that hooks create, follow their own tags.
//
//	db.WithContext(gormplugin.With(ctx, imported)).Create(&orders)
func With[K int64 | string | [16]byte](ctx context.Context, gen keygen.Generator[K]) context.Context {
	return context.WithValue(ctx, callKey{}, &call{gen: gen})
}

// Off returns a context under which creates fill no keys, including those of associations: the
// caller or the database sets every key.
func Off(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, &call{off: true})
}

// call is the setting of With or Off in a context.
type call struct {
	off bool
	gen any // a keygen.Generator
}

type callKey struct{}

// with returns the plan of one call whose key comes from gen.
func (p *plans) with(s *schema.Schema, gen any) *plan {
	if gen == nil {
		return &plan{err: errors.New("gormplugin: the generator of With is nil")}
	}
	model := p.of(s)
	if model.err != nil {
		return model
	}
	key := keyOf(model)
	if key == nil {
		return &plan{err: fmt.Errorf("gormplugin: With: %s: %w: it has no single primary key that a create may write", s.Name, gorm.ErrPrimaryKeyRequired)}
	}
	m, err := manage(s, key, keyfield.Tag{}, func(kind *keyfield.Type) (keyfield.Generator, error) { return keyfield.Given(gen, kind) })
	if err != nil {
		return &plan{err: &FieldError{s.Name, key.Name, err}}
	}
	others := slices.DeleteFunc(slices.Clone(model.fields), func(other *managed) bool { return other.Field == key })
	return planOf(s, append([]*managed{m}, others...))
}

// keyOf returns the single primary key of the plan's model; if the model has several, the
// managed one.
func keyOf(p *plan) *schema.Field {
	keys := slices.DeleteFunc(slices.Clone(p.fields), func(m *managed) bool { return !m.PrimaryKey })
	switch primary := p.schema.PrimaryFields; {
	case len(keys) == 1:
		return keys[0].Field
	case len(primary) == 1 && primary[0].Creatable:
		return primary[0]
	}
	return nil
}
