// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
)

// managed is a field that a generator fills. It is immutable.
type managed struct {
	*schema.Field

	model string
	kind  keyfield.Type
	hooks bool // filled before the model's own hooks run
	gen   keyfield.Generator
}

// manage returns the field, to be filled according to the tag.
func manage(s *schema.Schema, f *schema.Field, tag keyfield.Tag, find func(*keyfield.Type) (keyfield.Generator, error)) (*managed, error) {
	kind, err := keyfield.Of(f.FieldType, tag)
	if err != nil {
		return nil, err
	}
	gen, err := find(&kind)
	if err != nil {
		return nil, err
	}
	if gen.Source() == keyfield.Binaries && !f.IndirectFieldType.Implements(reflect.TypeFor[driver.Valuer]()) && f.Serializer == nil {
		return nil, fmt.Errorf("a [16]byte without the method driver.Valuer cannot be sent to a database: %w", keyfield.ErrType)
	}
	return &managed{Field: f, model: s.Name, kind: kind, hooks: tag.Hooks, gen: gen}, nil
}

// isInteger returns true when the database gets an integer for the field, and not what a driver.Valuer or a serializer makes of it.
func isInteger(f *schema.Field) bool {
	one := reflect.New(f.IndirectFieldType)
	switch v := one.Elem(); {
	case f.Serializer != nil:
		return false
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	default:
		return false
	}
	valuer, ok := one.Interface().(driver.Valuer)
	if !ok {
		return true
	}
	value, err := valuer.Value()
	_, ok = value.(int64)
	return ok && err == nil
}

// valueWith returns the value that the field of a row has with the key that put stores in it.
func (m *managed) valueWith(ctx context.Context, put func(reflect.Value) error) (any, error) {
	row := reflect.New(m.Schema.ModelType).Elem()
	err := put(m.ReflectValueOf(ctx, row))
	value, _ := m.ValueOf(ctx, row)
	return value, err
}

// canonical returns a value of the field in a comparable form, also one that the database returns for a field with a serializer.
func (m *managed) canonical(value any) any {
	if m.Serializer == nil {
		return canonical(value)
	}
	if valuer, ok := value.(driver.Valuer); ok {
		value, _ = valuer.Value()
	}
	if text, ok := value.([]byte); ok {
		return string(text)
	}
	return fmt.Sprint(value)
}

func (m *managed) fail(err error) error { return &FieldError{m.model, m.Name, err} }

// draw adds n keys that fit the field.
func (m *managed) draw(ctx context.Context, k keyfield.Keys, n int) error {
	first := k.Len()
	err := k.Draw(ctx, n)
	if err == nil {
		err = k.Fit(first)
	}
	if err != nil {
		return m.fail(err)
	}
	return nil
}
