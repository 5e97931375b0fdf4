// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// conflict describes what a statement does with rows that conflict with existing ones, and how
// to find out afterwards which of the generated keys are in the table. The key of a skipped row
// is not in the table, and an updated row keeps its own key.
type conflict struct {
	of        *filling
	by        *fill        // has the kind of the database
	skips     bool         // the statement skips conflicting rows
	uncertain []*keyColumn // columns whose generated keys may not be in the table
	// resolve empties, after the INSERT, the fields whose generated key is not in the table, or sets
	// them to the key of the existing row; nil when all keys are in the table.
	resolve func(*gorm.DB) error

	on        clause.Clause // ON CONFLICT of the caller; zero if there is none
	returning clause.Clause // RETURNING of the caller, likewise
	ownResult bool          // the statement's Result was set by keep
	unread    bool          // gorm does not read the returned rows, because the statement updates nothing
}

// conflictOf reads, before gorm:create builds the statement, what it does on a conflict, and
// changes it so that the database reports the result. It returns nil when no conflict is
// possible.
func (f *fill) conflictOf(fl *filling, stmt *gorm.Statement) *conflict {
	if len(stmt.Clauses) == 1 || !fl.assignedAny() {
		return nil // only the plugin's own clause is there
	}
	given, ok := stmt.Clauses["ON CONFLICT"]
	insert, _ := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	ignored := strings.Contains(strings.ToUpper(insert.Modifier), "IGNORE") // also SQLite's OR IGNORE
	if !ok && !ignored {
		return nil
	}
	on, readable := given.Expression.(clause.OnConflict)
	c := &conflict{of: fl, by: f, on: given, returning: stmt.Clauses["RETURNING"], skips: ignored || readable && on.DoNothing}
	c.uncertain = slices.DeleteFunc(slices.Clone(fl.keyColumns), func(p *keyColumn) bool { return p.used() == 0 })
	c.resolve = c.ask
	switch {
	case ignored:
		c.resolve = c.readCount
	case !c.isPossible(&on):
		return nil
	case !readable:
	case c.skips && !f.mysql:
		c.count(stmt, on)
	case f.returning && !fl.rows.many && (f.mysql || fl.rows.len() == 1 || len(on.Where.Exprs) == 0):
		c.returnKeys(stmt)
	case f.mysql && c.keep(stmt, on):
		c.resolve = c.readLastID
	}
	return c
}

// isPossible removes the columns of the conflict's target from the uncertain ones, because a row with
// a new key there cannot conflict. It returns true if others remain.
func (c *conflict) isPossible(on *clause.OnConflict) bool {
	if c.by.mysql || on.OnConstraint != "" {
		return true
	}
	target := on.Columns
	if len(target) == 0 && on.UpdateAll { // gorm then uses the primary key
		for _, f := range c.of.plan.schema.PrimaryFields {
			target = append(target, clause.Column{Name: f.DBName})
		}
	}
	c.uncertain = slices.DeleteFunc(c.uncertain, func(p *keyColumn) bool { return names(target, p.field.DBName) })
	return len(c.uncertain) > 0
}

func names(columns []clause.Column, column string) bool {
	return slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == column })
}

// count uses the number of affected rows. When other columns are returned, gorm changes that
// number: it assumes that rows which have a key were not inserted now. So count hides from gorm
// that rows may be skipped, and the returned values are assigned to their rows afterwards.
func (c *conflict) count(stmt *gorm.Statement, on clause.OnConflict) {
	c.resolve = c.readCount
	if !c.by.returning || !c.of.rows.structs.IsValid() || c.of.rows.len() == 1 || c.returning.Expression == nil && len(stmt.Schema.FieldsWithDefaultDBValue) == 0 {
		return
	}
	if c.returnKeys(stmt); c.resolve == nil {
		return
	}
	hidden := c.on
	hidden.Expression = struct{ clause.Expression }{on} // gorm does not recognise it as a DO NOTHING
	stmt.Clauses["ON CONFLICT"] = hidden
	c.resolve = c.spread(stmt)
}

// returnKeys makes the database return the uncertain keys, in addition to the columns that it
// returns anyway.
func (c *conflict) returnKeys(stmt *gorm.Statement) {
	c.resolve = c.readReturned
	hadOne := c.returning.Expression != nil
	returning, readable := c.returning.Expression.(clause.Returning)
	if hadOne && (!readable || len(returning.Columns) == 0) {
		if c.of.rows.structs.IsValid() && c.of.rows.structs.Kind() != reflect.Struct {
			c.resolve = nil // gorm rebuilds the slice from the returned rows
		}
		return
	}
	if !hadOne {
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			returning.Columns = append(returning.Columns, clause.Column{Name: f.DBName})
		}
	}
	for _, p := range c.uncertain {
		if name := p.field.DBName; !names(returning.Columns, name) {
			returning.Columns = append(slices.Clip(returning.Columns), clause.Column{Name: name})
		}
	}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: returning}
}

// keep assigns the key to itself and makes MySQL report its value as LastInsertId: the key of an
// existing row whose insertion became an update. It returns false when LastInsertId would not
// report the key.
func (c *conflict) keep(stmt *gorm.Statement, on clause.OnConflict) bool {
	f := c.uncertain[0].field
	prioritized := c.of.plan.schema.PrioritizedPrimaryField
	sets := func(a clause.Assignment) bool { return a.Column.Name == f.DBName }
	if len(c.uncertain) > 1 || !f.PrimaryKey || !isInteger(f.Field) || prioritized != nil && prioritized != f.Field || slices.ContainsFunc(on.DoUpdates, sets) {
		return false
	}
	on.DoNothing = false
	column := clause.Column{Name: f.DBName}
	on.DoUpdates = append(clause.Set{{Column: column, Value: gorm.Expr("LAST_INSERT_ID(?)", column)}}, on.DoUpdates...)
	stmt.AddClause(on)
	if stmt.Result == nil {
		stmt.Result, c.ownResult = gorm.WithResult(), true
	}
	return true
}

// restore restores the statement's own clauses, because the caller may use the statement again.
// The MySQL dialector rewrites clauses, too.
func (c *conflict) restore(stmt *gorm.Statement) {
	on, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	c.unread = on.DoNothing && c.of.rows.len() > 1
	for name, own := range map[string]clause.Clause{"ON CONFLICT": c.on, "RETURNING": c.returning} {
		if stmt.Clauses[name] = own; own.Expression == nil {
			delete(stmt.Clauses, name)
		}
	}
}
