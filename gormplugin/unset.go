package gormplugin

import (
	"reflect"

	"gorm.io/gorm"
)

// keyed refuses structs to create whose sharding key is not set: a field that is zero
// says nothing, and gorm would store the row under the key 0. (A pointer to 0, or a map
// with it, says 0.)
func (r *routing) keyed(stmt *gorm.Statement) error {
	t, ok := r.router.Snapshot().Lookup(stmt.Table)
	if !ok || t.Origin() != nil || stmt.Schema == nil || stmt.SQL.Len() > 0 {
		return nil
	}
	if _, maps := mapsOf(stmt.Dest); maps {
		return nil
	}
	key := columnField(stmt.Schema, t.Key)
	all := rows{structs: stmt.ReflectValue}
	if key == nil || !all.structs.IsValid() || all.check(stmt) != nil {
		return nil //nolint:nilerr // gorm, or the engine, refuses it
	}
	for i := range all.len() {
		row := all.at(i)
		if !row.IsValid() || row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType {
			continue
		}
		if _, zero := key.ValueOf(stmt.Context, row); zero {
			return missingKey("create", t, i, key)
		}
	}
	return nil
}
