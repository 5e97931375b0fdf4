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
	p := &schema.Schema{}
	copyExported(reflect.ValueOf(p).Elem(), reflect.ValueOf(s).Elem())
	p.Fields = exchanged(s.Fields, own)
	p.PrimaryFields = exchanged(s.PrimaryFields, own)
	p.FieldsByName = exchangedMap(s.FieldsByName, own)
	p.FieldsByBindName = exchangedMap(s.FieldsByBindName, own)
	p.FieldsByDBName = exchangedMap(s.FieldsByDBName, own)
	p.PrioritizedPrimaryField = cmp.Or(own[s.PrioritizedPrimaryField], s.PrioritizedPrimaryField)
	p.FieldsWithDefaultDBValue = slices.DeleteFunc(slices.Clone(s.FieldsWithDefaultDBValue), func(f *schema.Field) bool { return own[f] != nil })
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
