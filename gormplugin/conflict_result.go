// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// readCount uses the number of affected rows, or a SELECT if some rows were affected and some not.
func (c *conflict) readCount(db *gorm.DB) error {
	switch db.RowsAffected {
	case 0:
		return c.empty(db, nil)
	case int64(c.of.rows.len()):
		return nil
	}
	return c.ask(db)
}

// readReturned finds returned keys that differ from the generated ones, over which RETURNING wrote
// them: they belong to existing rows. MariaDB also returns skipped rows, and gorm counts them.
func (c *conflict) readReturned(db *gorm.DB) error {
	switch {
	case c.unread:
		return c.ask(db)
	case db.RowsAffected == 0:
		return c.empty(db, nil)
	case !c.skips:
		return nil
	}
	ctx := db.Statement.Context
	first := c.uncertain[0] // one field is enough to count rows
	for k := range first.used() {
		if !first.isOwn(ctx, k) {
			db.RowsAffected--
		}
	}
	if r := db.Statement.Result; r != nil {
		r.RowsAffected = db.RowsAffected
	}
	return nil
}

// readLastID gets the key of an existing row from LastInsertId. That is the key of the last
// such row, or otherwise the last row's own key, or 0 in a table without AUTO_INCREMENT.
func (c *conflict) readLastID(db *gorm.DB) error {
	stmt := db.Statement
	result := stmt.Result
	if c.ownResult {
		stmt.Result = nil
	}
	if result == nil || result.Result == nil {
		return c.ask(db)
	}
	id, err := result.Result.LastInsertId()
	if err != nil {
		return c.ask(db)
	}
	p := c.uncertain[0]
	last := p.used() - 1
	switch {
	case id == 0, p.assignedRows[last] == c.of.rows.len()-1 && id == canonical(p.value(stmt.Context, last)):
		return nil
	case c.of.rows.len() == 1:
		return p.set(stmt.Context, p.assignedRows[0], func(v reflect.Value) error { return p.field.kind.Set(v, id) })
	case db.RowsAffected == 0:
		return c.empty(db, nil)
	}
	return c.ask(db)
}

// ask finds the keys by a SELECT.
func (c *conflict) ask(db *gorm.DB) error {
	if !c.by.verify {
		return c.empty(db, nil)
	}
	found := map[*keyColumn]map[any]bool{}
	for _, p := range c.uncertain {
		keys, err := p.find(db)
		var refused *sharding.RouteError
		if errors.As(err, &refused) {
			return c.empty(db, nil)
		}
		if err != nil {
			return p.field.fail(err)
		}
		found[p] = keys
	}
	ctx := db.Statement.Context
	return c.empty(db, func(p *keyColumn, k int) bool { return found[p][p.field.canonical(p.value(ctx, k))] })
}

// empty empties the uncertain fields, except in rows for which keep returns true. If a row was
// skipped for an association, that is an error, because the foreign key would refer to no row.
func (c *conflict) empty(db *gorm.DB, keep func(p *keyColumn, k int) bool) (err error) {
	for _, p := range c.uncertain {
		taken := p.clearKeys(db.Statement.Context, func(k int) bool { return keep != nil && keep(p, k) })
		if taken > 0 && c.skips && p.field.PrimaryKey && isAssociation(db.Statement) {
			err = p.field.fail(ErrSkipped)
		}
	}
	return err
}

// find returns which of the keys are in the table. It uses the connection that wrote the rows,
// because a replica may not have them yet, and calls no callback of another plugin, which could
// choose a connection. A table with another sharding key gets a condition on that, too.
func (p *keyColumn) find(db *gorm.DB) (map[any]bool, error) {
	fl, of := p.filling, db.Statement
	column := clause.Column{Name: p.field.DBName}
	values := make([]any, p.used())
	for k := range values {
		values[k] = p.value(of.Context, k)
	}
	where := clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: values}}}
	if t := fl.table; t != nil && !strings.EqualFold(t.Key, p.field.DBName) {
		keys, err := fl.shardingKeys(of, p.assignedRows)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(keys, func(key any) bool { return !isExact(of, t, key) }) {
			where.Exprs = append(where.Exprs, clause.IN{Column: clause.Column{Name: t.Key}, Values: distinct(keys)})
		}
	}
	query := db.Session(&gorm.Session{NewDB: true, Context: sharding.Primary(of.Context)}).Clauses(clause.Select{Columns: []clause.Column{column}}, where)
	stmt := query.Statement
	kind := p.field.FieldType
	if p.field.Serializer != nil {
		kind = reflect.TypeFor[any]()
	}
	keys := reflect.New(reflect.SliceOf(kind))
	stmt.Dest, stmt.ReflectValue = keys.Interface(), keys.Elem()
	stmt.Table, stmt.TableExpr, stmt.BuildClauses = of.Table, of.TableExpr, db.Callback().Query().Clauses
	begin := time.Now()
	callbacks.Query(query)
	db.Logger.Trace(stmt.Context, begin, func() (string, int64) {
		return db.Dialector.Explain(stmt.SQL.String(), stmt.Vars...), query.RowsAffected
	}, query.Error)
	found := map[any]bool{}
	for i := range keys.Elem().Len() {
		found[p.field.canonical(keys.Elem().Index(i).Interface())] = true
	}
	return found, query.Error
}

// distinct removes duplicate keys.
func distinct(keys []any) []any {
	if len(keys) == 1 {
		return keys
	}
	seen := make(map[any]bool, len(keys))
	return slices.DeleteFunc(keys, func(key any) bool {
		k := canonical(key)
		again := k != nil && seen[k]
		seen[k] = true
		return again
	})
}

// isAssociation returns true when gorm runs the statement for an association. It reads the list
// of such rows in gorm's settings, which persist when a *gorm.DB is used again.
func isAssociation(stmt *gorm.Statement) bool {
	setting, ok := stmt.Settings.Load("gorm:saved_association_map")
	saved, readable := setting.(*map[reflect.Value]bool)
	if !readable {
		return ok
	}
	row := stmt.ReflectValue
	if row.Kind() == reflect.Slice && row.Len() > 0 {
		row = reflect.Indirect(row.Index(0))
	}
	return row.CanAddr() && (*saved)[row.Addr()]
}
