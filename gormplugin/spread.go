package gormplugin

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// returnedRows remembers what rows hold in the columns that a DO NOTHING
// returns. The database returns the inserted rows only, in order, and gorm puts
// the first of them into the first struct, even if that one was skipped.
type returnedRows struct {
	fields []*schema.Field
	key    int // among the fields: one that every row has a value of its own in
	before [][]reflect.Value
}

// remember returns what the rows hold before the INSERT.
func (c *conflict) remember(stmt *gorm.Statement) *returnedRows {
	r := &returnedRows{}
	returning, _ := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	for _, column := range returning.Columns {
		if f := c.of.plan.schema.LookUpField(column.Name); f != nil {
			r.fields = append(r.fields, f)
		}
	}
	for _, p := range c.doubted {
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

// spread puts what was returned into the rows that it is of, and empties the
// keys of the others.
func (c *conflict) spread(db *gorm.DB) error {
	r, stmt := c.returned, db.Statement
	n := min(int(db.RowsAffected), len(r.before))
	got := r.read(stmt, c.of.rows, n)
	row := make(map[any]int, len(r.before))
	for i, values := range r.before {
		row[plain(values[r.key].Interface())] = i
		if i < n {
			r.write(stmt, c.of.rows.at(i), values)
		}
	}
	inserted := make(map[any]bool, n)
	for _, values := range got {
		key := plain(values[r.key].Interface())
		inserted[key] = true
		if i, ok := row[key]; ok {
			r.write(stmt, c.of.rows.at(i), values)
		}
	}
	return c.empty(db, func(p *part, k int) bool {
		return inserted[plain(r.before[p.given[k]][r.key].Interface())]
	})
}
