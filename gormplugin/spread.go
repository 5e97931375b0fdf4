// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// spread is for a DO NOTHING that returns columns. The database returns only the inserted rows, in
// order, and gorm puts the first of them into the first struct, even if that row was skipped. The
// result is called after the INSERT. It assigns the returned values to the rows to which they belong,
// and empties the keys of the other rows.
func (c *conflict) spread(stmt *gorm.Statement) func(*gorm.DB) error {
	var fields []*schema.Field
	returning, _ := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	for _, column := range returning.Columns {
		if f := c.of.plan.schema.LookUpField(column.Name); f != nil {
			fields = append(fields, f)
		}
	}
	unique := 0 // index of a field whose values differ
	for _, p := range c.uncertain {
		unique = max(unique, slices.Index(fields, p.field.Field))
	}
	key := func(values []reflect.Value) any { return canonical(values[unique].Interface()) }
	ctx, all := stmt.Context, c.of.rows
	before := all.values(ctx, fields, all.len())
	return func(db *gorm.DB) error {
		returned := all.values(ctx, fields, min(int(db.RowsAffected), len(before)))
		row := make(map[any]int, len(before))
		for i, values := range before {
			row[key(values)] = i
			if i < len(returned) {
				all.setValues(ctx, fields, i, values)
			}
		}
		inserted := make(map[any]bool, len(returned)) // by key, because one struct may be in several elements
		for _, values := range returned {
			inserted[key(values)] = true
			if i, ok := row[key(values)]; ok {
				all.setValues(ctx, fields, i, values)
			}
		}
		return c.empty(db, func(p *keyColumn, k int) bool { return inserted[key(before[p.assignedRows[k]])] })
	}
}

// values returns copies of these fields of the first n rows.
func (r rows) values(ctx context.Context, fields []*schema.Field, n int) [][]reflect.Value {
	all := make([][]reflect.Value, n)
	for i := range all {
		for _, f := range fields {
			held := reflect.New(f.FieldType).Elem()
			held.Set(f.ReflectValueOf(ctx, r.at(i)))
			all[i] = append(all[i], held)
		}
	}
	return all
}

func (r rows) setValues(ctx context.Context, fields []*schema.Field, i int, values []reflect.Value) {
	for j, f := range fields {
		f.ReflectValueOf(ctx, r.at(i)).Set(values[j])
	}
}
