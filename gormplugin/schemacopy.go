// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"
)

// withoutDefaults returns a copy of the schema in which no managed field has a default value
// from the database. gorm assumes one for integer primary keys. It then writes the column last,
// requests it with RETURNING and counts the returned rows, or overwrites existing ids with ones
// computed from LastInsertId.
//
// The copy is made by reflection over the exported fields, so it stays complete when gorm adds
// fields, and the mutex in the schema is not copied. gorm:create, which uses the copy, reads
// only exported fields.
func withoutDefaults(s *schema.Schema, fields []*managed) *schema.Schema {
	own := map[*schema.Field]*schema.Field{}
	for _, m := range fields {
		f := *m.Field
		f.HasDefaultValue, f.AutoIncrement = false, false
		f.DefaultValueInterface = nil
		own[m.Field] = &f
	}
	p := with(s, own)
	p.FieldsWithDefaultDBValue = slices.DeleteFunc(p.FieldsWithDefaultDBValue, func(f *schema.Field) bool { return !f.HasDefaultValue })
	return p
}

// numbered returns a schema in which the database numbers the primary key, if that is a managed
// integer. It is the model's own schema, or a copy if gorm does not assume that, as for a
// keygen.ID or autoIncrement:false, for which gorm would write 0.
func numbered(s *schema.Schema, fields []*managed) *schema.Schema {
	key := s.PrioritizedPrimaryField
	i := slices.IndexFunc(fields, func(m *managed) bool { return m.Field == key })
	if i < 0 || key.HasDefaultValue || !isInteger(key) {
		return s
	}
	f := *key
	f.HasDefaultValue, f.AutoIncrement = true, true
	p := with(s, map[*schema.Field]*schema.Field{key: &f})
	p.FieldsWithDefaultDBValue = append(p.FieldsWithDefaultDBValue, &f)
	return p
}

// with returns a copy of the schema in which some fields are replaced.
func with(s *schema.Schema, own map[*schema.Field]*schema.Field) *schema.Schema {
	p := copyOf(s)
	for _, list := range []*[]*schema.Field{&p.Fields, &p.PrimaryFields, &p.FieldsWithDefaultDBValue} {
		*list = slices.Clone(*list)
		for i, f := range *list {
			(*list)[i] = cmp.Or(own[f], f)
		}
	}
	for _, named := range []*map[string]*schema.Field{&p.FieldsByName, &p.FieldsByBindName, &p.FieldsByDBName} {
		*named = maps.Clone(*named)
		for name, f := range *named {
			(*named)[name] = cmp.Or(own[f], f)
		}
	}
	p.PrioritizedPrimaryField = cmp.Or(own[s.PrioritizedPrimaryField], s.PrioritizedPrimaryField)
	return p
}

func copyOf(s *schema.Schema) *schema.Schema {
	p := &schema.Schema{}
	copyExported(reflect.ValueOf(p).Elem(), reflect.ValueOf(s).Elem())
	return p
}

// copyExported copies exported fields. It copies those of Relationships one by one, because
// that struct contains a mutex.
func copyExported(to, from reflect.Value) {
	t := from.Type()
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case !f.IsExported() || f.Name == "Mux":
		case f.Type == reflect.TypeFor[schema.Relationships]():
			copyExported(to.Field(i), from.Field(i))
		default:
			to.Field(i).Set(from.Field(i))
		}
	}
}
