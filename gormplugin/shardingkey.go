// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// addKeys adds a condition on the sharding keys of the models that gorm identifies by their
// primary keys, because primary keys alone lead to no shard. It returns whether it did. The
// result later means that it will do so once the source of a migration no longer serves the
// table.
func (r *routing) addKeys(stmt *gorm.Statement, models reflect.Value) (added, later bool) {
	t, ok := r.router.Snapshot().Lookup(stmt.Table)
	if !ok || stmt.Schema == nil || stmt.SQL.Len() > 0 {
		return false, false
	}
	key := columnField(stmt.Schema, t.Key)
	if key == nil || key.PrimaryKey {
		return false, false
	}
	named := rows{structs: models}
	if named.check(stmt) != nil {
		return false, false
	}
	keys, ok := keysOf(stmt, t, key, named)
	if !ok || t.Origin() != nil {
		return false, ok
	}
	column := clause.Column{Table: clause.CurrentTable, Name: key.DBName}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: keys}}})
	return true, false
}

// keysOf returns the distinct sharding keys of the rows. It returns false unless every row has
// its primary key and its sharding key as the column stores it, and also if the primary keys lead
// to the shards.
func keysOf(stmt *gorm.Statement, t *sharding.Table, key *schema.Field, named rows) ([]any, bool) {
	var keys []any
	leads := true
	for i := range named.len() {
		row := named.at(i)
		for _, f := range stmt.Schema.PrimaryFields {
			value, zero := f.ValueOf(stmt.Context, row)
			if zero {
				return nil, false
			}
			if leads {
				_, err := t.SlotBy(f.DBName, value)
				leads = err == nil
			}
		}
		value, zero := key.ValueOf(stmt.Context, row)
		if zero || !isExact(stmt, t, value) {
			return nil, false
		}
		keys = append(keys, value)
	}
	return distinct(keys), len(keys) > 0 && !leads
}

// isExact returns true when a condition on a sharding key finds the row that was stored with it. A
// column of times has rounded them to its precision, and SQLite compares times as texts.
func isExact(stmt *gorm.Statement, t *sharding.Table, key any) bool {
	rule, times := t.Rule.(sharding.IntervalRule)
	if !times {
		return true
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(key)
	at, ok := value.(time.Time)
	if err != nil || !ok || stmt.DB.Name() == "sqlite" {
		return false
	}
	_, offset := at.In(rule.Zone()).Zone()
	clock := at.UTC().Add(time.Duration(offset) * time.Second)
	return clock.Equal(clock.Truncate(rule.Precision()))
}

// keyed refuses structs to create whose sharding key is zero, because gorm would store the row
// under the key 0. (A pointer to 0, or a map with 0, is a deliberate 0, and CreatedAt is set by gorm.)
// It also returns the table.
// While the source of a migration serves it, the error says what will be refused after the switch;
// it is nil without a preview.
func (r *routing) keyed(stmt *gorm.Statement) (*sharding.Table, error) {
	snapshot := r.router.Snapshot()
	t, ok := snapshot.Lookup(stmt.Table)
	if !ok || stmt.Schema == nil || stmt.SQL.Len() > 0 {
		return nil, nil
	}
	if t.Origin() != nil && (snapshot.Switched() == nil || isNumbered(t, t.Key)) {
		return t, nil
	}
	key := columnField(stmt.Schema, t.Key)
	if key != nil && leavesOut(stmt, key.DBName) {
		return t, &sharding.RouteError{Op: "create", Table: t.Name, Column: t.Key, Err: sharding.ErrMissingKey, Hint: "Select or Omit leaves it out; name " + t.Key + " in Select, or take it out of Omit"}
	}
	if _, maps := mapsOf(stmt.Dest); maps || key == nil || key.AutoCreateTime > 0 {
		return t, nil
	}
	all := rows{structs: stmt.ReflectValue}
	if all.check(stmt) != nil {
		return t, nil //nolint:nilerr // gorm or shardsql refuses it
	}
	for i := range all.len() {
		// Field.ValueOf would allocate every key.
		if value, ok := fieldAt(all.at(i), key); !ok || value.IsZero() {
			return t, missingKey(t, i, key)
		}
	}
	return t, nil
}

// leavesOut returns true when Select or Omit leaves a column or a relation out of a create.
func leavesOut(stmt *gorm.Statement, name string) bool {
	selected, named, restricted := chosen(stmt, name)
	return !selected && (named || restricted)
}

// chosen returns whether Select or Omit names a column or a relation, and whether it is selected
// then. A Select is restricted to what it names.
func chosen(stmt *gorm.Statement, name string) (selected, named, restricted bool) {
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return false, false, false
	}
	columns, restricted := stmt.SelectAndOmitColumns(true, false)
	selected, named = columns[name]
	return selected, named, restricted
}

// keysBefore returns a function that restores the sharding keys that gorm sets in the model of
// an update before it sends it. If a refused key stayed in the model, the next Save would store
// the row a second time.
func (r *routing) keysBefore(stmt *gorm.Statement) func() {
	t, ok := r.router.Snapshot().Lookup(stmt.Table)
	model := stmt.ReflectValue
	if !ok || stmt.Schema == nil || model.Kind() != reflect.Struct || !model.CanSet() || model.Type() != stmt.Schema.ModelType {
		return nil
	}
	dest, isMap := stmt.Dest.(map[string]any)
	var fields, values []reflect.Value
	for _, f := range stmt.Schema.Fields {
		if _, _, sets := inMap(dest, f); isMap && !sets || !isColumn(stmt.Schema, f) || !t.Leads(f.DBName) {
			continue
		}
		value := f.ReflectValueOf(stmt.Context, model)
		fields, values = append(fields, value), append(values, reflect.ValueOf(value.Interface()))
	}
	if len(fields) == 0 {
		return nil
	}
	return func() {
		for i, f := range fields {
			f.Set(values[i])
		}
	}
}

// shardingKeys returns the sharding keys of the rows with these indexes.
func (fl *filling) shardingKeys(stmt *gorm.Statement, numbers []int) ([]any, error) {
	t := fl.table
	field := columnField(fl.plan.schema, t.Key)
	keys := make([]any, len(numbers))
	for n, i := range numbers {
		missing := true
		switch {
		case field != nil:
			keys[n], missing = fl.rows.get(stmt.Context, i, field)
		case fl.rows.maps != nil:
			keys[n] = fl.rows.maps[i][t.Key]
			missing = keys[n] == nil
		}
		if missing {
			return nil, missingKey(t, i, field)
		}
	}
	return keys, nil
}

// missingKey returns the error of a row without its sharding key.
func missingKey(t *sharding.Table, row int, field *schema.Field) error {
	hint := fmt.Sprintf("row %d: set %s before Create", row, t.Key)
	if field != nil {
		hint = fmt.Sprintf("row %d: set the field %s before Create", row, field.Name)
		if field.FieldType.Kind() != reflect.Pointer {
			hint += "; the zero value counts as none, unless the field is a pointer to it"
		}
	}
	return &sharding.RouteError{Op: "create", Table: t.Name, Column: t.Key, Err: sharding.ErrMissingKey, Hint: hint}
}

// columnField returns the model's field of a column, nil if it has none.
func columnField(s *schema.Schema, column string) *schema.Field {
	if f, ok := s.FieldsByDBName[column]; ok {
		return f
	}
	for name, f := range s.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}

// checkJoin refuses a relation of many and many whose join table is sharded by a column that no reference fills:
// gorm fills no other columns of the rows that it creates there, unless a hook of the join table's model does.
func checkJoin(db *gorm.DB, r *sharding.Router, s *schema.Schema, rel *schema.Relationship) error {
	join := rel.JoinTable
	t, sharded := r.Table(join.Table)
	refers := slices.ContainsFunc(rel.References, func(ref *schema.Reference) bool { return strings.EqualFold(ref.ForeignKey.DBName, t.Key) })
	hooked := columnField(join, t.Key) != nil && (join.BeforeCreate || join.BeforeSave)
	if !sharded || refers || hooked {
		return nil
	}
	return &sharding.RouteError{
		Op: "relation " + s.Name + "." + rel.Name + " to", Table: t.Name, Column: t.Key, Err: sharding.ErrMissingKey,
		Hint: joinHint(db, r, s, rel),
	}
}

// joinHint says how the rows of a join table come to lie with those of a model.
func joinHint(db *gorm.DB, r *sharding.Router, s *schema.Schema, rel *schema.Relationship) string {
	join, declared := r.Table(rel.JoinTable.Table)
	t, sharded := r.Table(s.Table)
	switch {
	case !sharded && declared:
		return "give the table a Key that refers to the rows of one side"
	case !sharded:
		return "add it to the router with sharding.Broadcast"
	}
	place := func(column string) string {
		if declared {
			return "give the table the Key " + column + " in the router"
		}
		return "add it to the router with the Key " + column + " in the Group of " + t.Name
	}
	key := columnField(s, t.Key)
	var own, foreign []string
	for _, ref := range rel.References {
		if !ref.OwnPrimaryKey {
			continue
		}
		if t.Leads(ref.PrimaryKey.DBName) {
			return place(ref.ForeignKey.DBName)
		}
		own, foreign = append(own, ref.PrimaryKey.Name), append(foreign, ref.ForeignKey.Name)
	}
	if key == nil {
		return "give " + s.Name + " a field of the column " + t.Key
	}
	tag := fmt.Sprintf(`tag the relation gorm:"many2many:%s;foreignKey:%s;joinForeignKey:%s"`, rel.JoinTable.Table,
		strings.Join(append(own, key.Name), ","), strings.Join(append(foreign, key.Name), ","))
	column := db.NamingStrategy.ColumnName(rel.JoinTable.Table, key.Name)
	if declared && strings.EqualFold(column, join.Key) {
		return tag
	}
	return tag + " and " + strings.Replace(place(column), "add it", "add the table", 1)
}
