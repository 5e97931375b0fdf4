package gormplugin

import "gorm.io/gorm/schema"

// inMap finds the field in a map of column values, which gorm accepts by the
// column's and by the field's name, that of the last field which has it. The
// returned name is the one in the map, or the column's if the map has neither; of
// two that are there the one with a value counts.
func inMap(m map[string]any, f *schema.Field) (name string, value any, ok bool) {
	value, ok = m[f.DBName]
	if ok && !isEmpty(value) {
		return f.DBName, value, true
	}
	if other, there := m[f.Name]; there && (!ok || !isEmpty(other)) && isNamed(f) {
		return f.Name, other, true
	}
	return f.DBName, value, ok
}

// isNamed reports whether gorm takes the field's name for it, and not for one of
// another embedded struct. A copy of the field has the same column.
func isNamed(f *schema.Field) bool {
	named := f.Schema.FieldsByName[f.Name]
	return named != nil && named.DBName == f.DBName
}
