package gormplugin

import (
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// conflict is what a statement does with rows that meet one that is there
// already, and how it is found out afterwards which of the generated keys are
// in the table: a skipped row's is in none, and an updated row keeps its own.
type conflict struct {
	of      *filling
	by      *fill // knows the database
	proof   proof
	skips   bool    // by leaving the row out
	doubted []*part // whose keys may be in no row

	on        clause.Clause // ON CONFLICT as given
	hasOn     bool
	returning clause.Clause // RETURNING as given
	hadOne    bool          // there was one
	added     bool          // it was changed
	result    bool          // the statement's Result is ours
	returned  *returnedRows // for spread
}

// proof is how it is found out which keys are in the table.
type proof uint8

const (
	certain  proof = iota // all of them are
	counted               // by the number of rows; in between by asking
	returned              // RETURNING wrote the rows' keys over the generated ones
	spread                // RETURNING did so for the rows that were not skipped
	lastID                // LastInsertId is an existing row's key, if there was one
	asked                 // by a SELECT
)

// meet reads what the statement does on a conflict, before gorm:create builds it, and
// has the database say what it did. It returns nil when it can meet no row.
func (f *fill) meet(fl *filling, stmt *gorm.Statement) *conflict {
	if len(stmt.Clauses) == 1 || !fl.gave() {
		return nil // there is nothing but our own clause
	}
	if ignores(stmt) {
		c := &conflict{of: fl, by: f, proof: counted, skips: true}
		c.doubtAll()
		return c
	}
	given, ok := stmt.Clauses["ON CONFLICT"]
	if !ok {
		return nil
	}
	on, readable := given.Expression.(clause.OnConflict)
	c := &conflict{of: fl, by: f, on: given, hasOn: true, proof: asked, skips: readable && on.DoNothing}
	if !c.doubt(&on) {
		return nil
	}
	switch {
	case !readable:
	case c.skips && !f.mysql:
		c.count(stmt, on)
	case f.returning && !fl.rows.many && (f.mysql || fl.rows.len() == 1 || len(on.Where.Exprs) == 0):
		c.returnKeys(stmt)
	case f.mysql && c.keep(stmt, on):
		c.proof = lastID
	}
	return c
}

// ignores reports whether the INSERT itself leaves rows out: INSERT IGNORE, and
// SQLite's INSERT OR IGNORE.
func ignores(stmt *gorm.Statement) bool {
	insert, _ := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	return strings.Contains(strings.ToUpper(insert.Modifier), "IGNORE")
}

func (c *conflict) doubtAll() {
	for i := range c.of.parts {
		if p := &c.of.parts[i]; p.used() > 0 {
			c.doubted = append(c.doubted, p)
		}
	}
}

// doubt finds the parts whose keys may be in no row. Where the conflict has a
// target, a row with a fresh key in the target's columns meets no other.
func (c *conflict) doubt(on *clause.OnConflict) bool {
	c.doubtAll()
	if c.by.mysql || on.OnConstraint != "" {
		return true
	}
	target := on.Columns
	if len(target) == 0 && on.UpdateAll { // gorm then takes the primary key
		for _, f := range c.of.plan.schema.PrimaryFields {
			target = append(target, clause.Column{Name: f.DBName})
		}
	}
	c.doubted = slices.DeleteFunc(c.doubted, func(p *part) bool { return names(target, p.field.DBName) })
	return len(c.doubted) > 0
}

func names(columns []clause.Column, column string) bool {
	return slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == column })
}

// count has the number of rows tell. Only where other columns are returned that
// number is not the database's: gorm believes that rows which have a key were
// not inserted now. So it does not learn that rows may be skipped, and what
// comes back is put in its place afterwards.
func (c *conflict) count(stmt *gorm.Statement, on clause.OnConflict) {
	c.proof = counted
	_, had := stmt.Clauses["RETURNING"]
	if !c.by.returning || !c.of.rows.structs.IsValid() || c.of.rows.len() == 1 || !had && len(stmt.Schema.FieldsWithDefaultDBValue) == 0 {
		return
	}
	if c.returnKeys(stmt); c.proof != returned {
		return
	}
	c.proof = spread
	hidden := c.on
	hidden.Expression = skipping{on}
	stmt.Clauses["ON CONFLICT"] = hidden
	c.returned = c.remember(stmt)
}

// skipping is a DO NOTHING that gorm does not recognise.
type skipping struct{ on clause.OnConflict }

func (s skipping) Build(b clause.Builder) { s.on.Build(b) }

// returnKeys has the database return the doubted keys, beside what it would
// return anyhow.
func (c *conflict) returnKeys(stmt *gorm.Statement) {
	c.proof = returned
	c.returning, c.hadOne = stmt.Clauses["RETURNING"]
	returning, readable := c.returning.Expression.(clause.Returning)
	if c.hadOne && (!readable || len(returning.Columns) == 0) {
		if c.of.rows.structs.IsValid() && c.of.rows.structs.Kind() != reflect.Struct {
			c.proof = certain // gorm makes the slice anew of all that comes back
		}
		return
	}
	if !c.hadOne {
		for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
			returning.Columns = append(returning.Columns, clause.Column{Name: f.DBName})
		}
	}
	for _, p := range c.doubted {
		if name := p.field.DBName; !names(returning.Columns, name) {
			returning.Columns = append(slices.Clip(returning.Columns), clause.Column{Name: name})
		}
	}
	c.added = true
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: returning}
}

// keptKey assigns a column to itself and has MySQL tell its value as the
// LastInsertId: that of an existing row whose insertion became an update.
type keptKey struct{ column string }

func (k keptKey) Build(b clause.Builder) {
	_, _ = b.WriteString("LAST_INSERT_ID(")
	b.WriteQuoted(clause.Column{Name: k.column})
	_ = b.WriteByte(')')
}

// keep adds that assignment; false when it would not tell.
func (c *conflict) keep(stmt *gorm.Statement, on clause.OnConflict) bool {
	if len(c.doubted) > 1 {
		return false
	}
	f := c.doubted[0].field
	prioritized := c.of.plan.schema.PrioritizedPrimaryField
	if !f.PrimaryKey || !f.number || prioritized != nil && prioritized != f.Field {
		return false
	}
	if slices.ContainsFunc(on.DoUpdates, func(a clause.Assignment) bool { return a.Column.Name == f.DBName }) {
		return false
	}
	on.DoNothing = false
	on.DoUpdates = append(clause.Set{{Column: clause.Column{Name: f.DBName}, Value: keptKey{f.DBName}}}, on.DoUpdates...)
	changed := c.on
	changed.Expression = on
	stmt.Clauses["ON CONFLICT"] = changed
	if stmt.Result == nil {
		stmt.Result, c.result = gorm.WithResult(), true
	}
	return true
}

// restore gives the statement its own clauses back, which a user may go on
// using; the MySQL dialector rewrites them, too.
func (c *conflict) restore(stmt *gorm.Statement) {
	if c.hasOn {
		on, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
		if on.DoNothing && c.proof == returned && c.of.rows.len() > 1 {
			c.proof = asked // there was nothing to update, and gorm read nothing of what came back
		}
		stmt.Clauses["ON CONFLICT"] = c.on
	}
	switch {
	case c.added && c.hadOne:
		stmt.Clauses["RETURNING"] = c.returning
	case c.added:
		delete(stmt.Clauses, "RETURNING")
	}
}
