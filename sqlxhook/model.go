// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/internal/keyfield"
)

// key is a field of a struct type that a generator fills.
type key struct {
	column  string
	field   field
	typ     keyfield.Type
	gen     keyfield.Generator
	slots   *slots // of the rows, that the keys contain; nil unless they do
	integer bool   // the field holds int64 ids as numbers
	plain   bool   // the field is an integer, so it is zero when it is empty

	numbered bool // the database makes the key
}

// keysOf returns the managed fields of a row type in the order of the fields. Maps have no
// managed fields, because they have no tags.
func (h *Hook) keysOf(m *reflectx.Mapper, t reflect.Type) ([]key, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	var keys []key
	for _, fi := range columnsOf(m, t) {
		tag, found, err := keyfield.ReadTag(fi.Field.Tag)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrTag, err)
		}
		if err == nil && found && !tag.Never {
			var k key
			if k, err = h.keyOf(t, fi, tag); err == nil {
				keys = append(keys, k)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, fi.Field.Name, err)
		}
	}
	return keys, nil
}

func (h *Hook) keyOf(t reflect.Type, fi *reflectx.FieldInfo, tag keyfield.Tag) (key, error) {
	typ, err := keyfield.Of(fi.Field.Type, tag)
	if err != nil {
		return key{}, err
	}
	gen, err := keyfield.Find(h.generators, tag, &typ)
	if err != nil {
		return key{}, err
	}
	k := key{column: fi.Path, field: structField(t.Name()+"."+fi.Field.Name, t, fi.Index), typ: typ, gen: gen}
	k.plain = isInteger(fi.Field.Type.Kind())
	k.integer = gen.Source() == keyfield.Ints && !typ.IsText()
	return k, nil
}

// columnsOf returns the fields of a struct type that are columns of its own table. It
// omits relations and the fields of nested structs ("user.id").
func columnsOf(m *reflectx.Mapper, t reflect.Type) []*reflectx.FieldInfo {
	var columns []*reflectx.FieldInfo
	fields := m.TypeMap(t)
	for _, fi := range fields.Index {
		// An outer field hides an embedded one of the same name, as in Go.
		own := fields.Names[fi.Path] == fi && !strings.Contains(fi.Path, ".")
		if own && (isTagged(fi) || !isRelation(fi.Field.Type)) {
			columns = append(columns, fi)
		}
	}
	return columns
}

// isTagged reports whether a field has a keygen tag. An invalid tag counts, so that keysOf
// reports its error.
func isTagged(fi *reflectx.FieldInfo) bool {
	_, found, err := keyfield.ReadTag(fi.Field.Tag)
	return found || err != nil
}

// isRelation reports whether t holds other rows rather than a value. A struct with a text
// form, such as netip.Addr or time.Time, is a value, even when only the driver knows how to
// store it.
func isRelation(t reflect.Type) bool {
	if p := reflect.PointerTo(t); isValuer(p) || p.Implements(textType) { // the method set of *t includes that of t
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return isRelation(t.Elem())
	}
	return t.Kind() == reflect.Struct
}
