package sqlxhook

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// key is a field of a struct type that a generator fills.
type key struct {
	column string
	field  field
	typ    keyfield.Type
	gen    keygen.Generator[int64]
}

// keysOf returns the managed fields of a row type in field order. Maps have
// none: nothing says which of their keys is one.
func (h *Hook) keysOf(t reflect.Type) ([]key, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	var keys []key
	for _, fi := range h.columnsOf(t) {
		tag, found, err := tagOf(fi)
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
	typ, err := keyfield.Of(fi.Field.Type)
	if err != nil {
		return key{}, err
	}
	gen, err := h.generators.Lookup(tag.Name)
	if err != nil {
		return key{}, err
	}
	f := field{name: t.Name() + "." + fi.Field.Name, index: fi.Index}
	return key{column: fi.Path, field: f, typ: typ, gen: gen}, nil
}

// tagOf reads `keygen:"name"` and `db:"id,keygen=name"`.
func tagOf(fi *reflectx.FieldInfo) (tag keyfield.Tag, found bool, err error) {
	if !isTagged(fi) {
		return keyfield.Tag{}, false, nil
	}
	text, tagged := fi.Field.Tag.Lookup("keygen")
	option, opted := fi.Options["keygen"]
	if !tagged {
		text = option
	}
	if tag, err = keyfield.ParseTag(text); err != nil {
		return keyfield.Tag{}, false, fmt.Errorf("%w: %w", ErrTag, err)
	}
	if tagged && opted {
		if other, err := keyfield.ParseTag(option); err != nil || other != tag {
			return keyfield.Tag{}, false, fmt.Errorf("%w: keygen:%q and the db tag's keygen=%s disagree; keep one", ErrTag, text, option)
		}
	}
	return tag, true, nil
}

func isTagged(fi *reflectx.FieldInfo) bool {
	_, tagged := fi.Field.Tag.Lookup("keygen")
	_, opted := fi.Options["keygen"]
	return tagged || opted
}

// columnsOf returns the fields of a struct type that are columns of its own
// table: not the fields of nested structs ("user.id"), and no relations.
func (h *Hook) columnsOf(t reflect.Type) []*reflectx.FieldInfo {
	var columns []*reflectx.FieldInfo
	m := h.mapper.TypeMap(t)
	for _, fi := range m.Index {
		// An outer field hides an embedded one of the same name, as in Go.
		own := m.Names[fi.Path] == fi && !strings.Contains(fi.Path, ".")
		if own && (isTagged(fi) || !isRelation(fi.Field.Type)) {
			columns = append(columns, fi)
		}
	}
	return columns
}

var (
	valuerType = reflect.TypeFor[driver.Valuer]()
	timeType   = reflect.TypeFor[time.Time]()
)

// isRelation reports whether t holds other rows rather than a value.
func isRelation(t reflect.Type) bool {
	if t.Implements(valuerType) || reflect.PointerTo(t).Implements(valuerType) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return isRelation(t.Elem())
	case reflect.Struct:
		return t != timeType
	}
	return false
}
