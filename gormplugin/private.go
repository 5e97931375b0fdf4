package gormplugin

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"
)

// private returns a copy of the schema in which no managed field has a default
// value from the database. gorm assumes one for integer primary keys: it then
// writes the column last, asks for it with RETURNING and counts rows by what
// comes back, or computes it from LastInsertId over the ids that are there.
//
// The copy is one of the exported fields, made by reflection: it stays whole
// when gorm adds some, and the mutex in it is not copied. gorm:create, for which
// the copy is, reads exported fields only.
func private(s *schema.Schema, fields []managed) *schema.Schema {
	own := map[*schema.Field]*schema.Field{}
	for i := range fields {
		f := *fields[i].Field
		f.HasDefaultValue, f.AutoIncrement = false, false
		f.DefaultValueInterface = nil
		own[fields[i].Field] = &f
	}
	p := with(s, own)
	p.FieldsWithDefaultDBValue = slices.DeleteFunc(slices.Clone(s.FieldsWithDefaultDBValue), func(f *schema.Field) bool { return own[f] != nil })
	return p
}

// numbered returns a schema in which the database numbers the primary key, if that is a
// managed integer: the model's own, or a copy where gorm does not assume it, as for a
// keygen.ID or for autoIncrement:false, whose 0 it would write.
func numbered(s *schema.Schema, fields []managed) *schema.Schema {
	key := s.PrioritizedPrimaryField
	i := slices.IndexFunc(fields, func(m managed) bool { return m.Field == key })
	if i < 0 || key.HasDefaultValue || !isInteger(key.IndirectFieldType.Kind()) {
		return s
	}
	f := *key
	f.HasDefaultValue, f.AutoIncrement = true, true
	p := with(s, map[*schema.Field]*schema.Field{key: &f})
	p.FieldsWithDefaultDBValue = append(slices.Clone(s.FieldsWithDefaultDBValue), &f)
	return p
}

// with returns a copy of the schema that has other fields in place of some.
func with(s *schema.Schema, own map[*schema.Field]*schema.Field) *schema.Schema {
	p := &schema.Schema{}
	copyExported(reflect.ValueOf(p).Elem(), reflect.ValueOf(s).Elem())
	p.Fields = exchanged(s.Fields, own)
	p.PrimaryFields = exchanged(s.PrimaryFields, own)
	p.FieldsByName = exchangedMap(s.FieldsByName, own)
	p.FieldsByBindName = exchangedMap(s.FieldsByBindName, own)
	p.FieldsByDBName = exchangedMap(s.FieldsByDBName, own)
	p.PrioritizedPrimaryField = cmp.Or(own[s.PrioritizedPrimaryField], s.PrioritizedPrimaryField)
	return p
}

// withoutReturned returns a copy of the schema for maps: gorm cannot put what
// RETURNING gives into a slice of maps.
func withoutReturned(s *schema.Schema) *schema.Schema {
	p := &schema.Schema{}
	copyExported(reflect.ValueOf(p).Elem(), reflect.ValueOf(s).Elem())
	p.FieldsWithDefaultDBValue = nil
	return p
}

// copyExported copies exported fields, those of Relationships one by one because
// of its mutex, which the copy has its own of.
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

func exchanged(list []*schema.Field, own map[*schema.Field]*schema.Field) []*schema.Field {
	copied := slices.Clone(list)
	for i, f := range list {
		copied[i] = cmp.Or(own[f], f)
	}
	return copied
}

func exchangedMap(m map[string]*schema.Field, own map[*schema.Field]*schema.Field) map[string]*schema.Field {
	copied := maps.Clone(m)
	for name, f := range m {
		copied[name] = cmp.Or(own[f], f)
	}
	return copied
}
