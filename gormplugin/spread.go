// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// returnedRows stores the rows' values in the columns that a DO NOTHING returns. The database
// returns only the inserted rows, in order, and gorm puts the first of them into the first
// struct, even if that row was skipped.
type returnedRows struct {
	fields []*schema.Field
	key    int // index of a field whose values are distinct
	before [][]reflect.Value
}

// remember returns the rows' values before the INSERT.
func (c *conflict) remember(stmt *gorm.Statement) *returnedRows {
	r := &returnedRows{}
	returning, _ := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	for _, column := range returning.Columns {
		if f := c.of.plan.schema.LookUpField(column.Name); f != nil {
			r.fields = append(r.fields, f)
		}
	}
	for _, p := range c.uncertain {
		r.key = max(r.key, slices.Index(r.fields, p.field.Field))
	}
	r.before = r.read(stmt, c.of.rows, c.of.rows.len())
	return r
}

// read returns copies of the fields of the first n rows.
func (r *returnedRows) read(stmt *gorm.Statement, from rows, n int) [][]reflect.Value {
	all := make([][]reflect.Value, n)
	for i := range all {
		for _, f := range r.fields {
			held := reflect.New(f.FieldType).Elem()
			held.Set(f.ReflectValueOf(stmt.Context, from.at(i)))
			all[i] = append(all[i], held)
		}
	}
	return all
}

func (r *returnedRows) write(stmt *gorm.Statement, to reflect.Value, values []reflect.Value) {
	for j, f := range r.fields {
		f.ReflectValueOf(stmt.Context, to).Set(values[j])
	}
}

// spread assigns the returned values to the rows to which they belong, and empties the keys of
// the other rows.
func (c *conflict) spread(db *gorm.DB) error {
	r, stmt := c.returned, db.Statement
	n := min(int(db.RowsAffected), len(r.before))
	got := r.read(stmt, c.of.rows, n)
	row := make(map[any]int, len(r.before))
	for i, values := range r.before {
		row[canonical(values[r.key].Interface())] = i
		if i < n {
			r.write(stmt, c.of.rows.at(i), values)
		}
	}
	inserted := make(map[any]bool, n) // by key, because one struct may be in several elements
	for _, values := range got {
		key := canonical(values[r.key].Interface())
		inserted[key] = true
		if i, ok := row[key]; ok {
			r.write(stmt, c.of.rows.at(i), values)
		}
	}
	return c.empty(db, func(p *keyColumn, k int) bool {
		return inserted[canonical(r.before[p.assignedRows[k]][r.key].Interface())]
	})
}
