package gormplugin

import (
	"errors"
	"reflect"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// translate does what gorm does with errors of a database where they are those of a
// shard: gorm's translators know the driver's own error only.
func translate(db *gorm.DB) {
	shard, ok := db.Error.(*sharding.ShardError) //nolint:errorlint // one within another error is gorm's
	if !ok || !db.TranslateError {
		return
	}
	if t, ok := db.Dialector.(gorm.ErrorTranslator); ok {
		db.Error = &sharding.ShardError{Target: shard.Target, Err: t.Translate(shard.Err)}
	}
}

// keysBefore returns what puts back the sharding keys that gorm sets in the model of an
// update before it sends it. A model that kept a key which was refused would be stored
// a second time by the next Save.
func (r *routing) keysBefore(stmt *gorm.Statement) func() {
	t, ok := r.router.Snapshot().Lookup(stmt.Table)
	model := stmt.ReflectValue
	if !ok || stmt.Schema == nil || model.Kind() != reflect.Struct || !model.CanSet() || model.Type() != stmt.Schema.ModelType {
		return nil
	}
	columns := []string{t.Key}
	for _, also := range t.Also {
		columns = append(columns, also.Column)
	}
	var fields, values []reflect.Value
	for _, column := range columns {
		if f := columnField(stmt.Schema, column); f != nil {
			value := f.ReflectValueOf(stmt.Context, model)
			fields, values = append(fields, value), append(values, reflect.ValueOf(value.Interface()))
		}
	}
	return func() {
		for i, f := range fields {
			f.Set(values[i])
		}
	}
}

// restore calls undo where a change of the sharding key was refused.
func restore(db *gorm.DB, undo func()) {
	if undo != nil && errors.Is(db.Error, sharding.ErrKeyChange) {
		undo()
	}
}
