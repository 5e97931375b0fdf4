package gormplugin

import "gorm.io/gorm/schema"

// inMap finds the field in a map of column values, which gorm accepts by the
// column's and by the field's name. The returned name is the one in the map, or
// the column's if the map has neither.
func inMap(m map[string]any, f *schema.Field) (name string, value any, ok bool) {
	if value, ok = m[f.DBName]; ok {
		return f.DBName, value, true
	}
	if value, ok = m[f.Name]; ok {
		return f.Name, value, true
	}
	return f.DBName, nil, false
}
