// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// Check finds mistakes at the start of a program that would otherwise show at an insert or
// later:
//
//   - the plugin is not loaded, or no field of a model is filled; a sharded model and one of a
//     broadcast table may get their keys from the application, unless a database numbers the
//     primary key;
//   - a tag names an unknown generator;
//   - a field or a column is too narrow for ids;
//   - the database still numbers a column (on SQLite, with AUTOINCREMENT);
//   - a model lacks its table's sharding key, or the key's column does not store and
//     compare keys as the table's rule does (by its type, its collation, or the precision
//     and zone of its times);
//   - the ids of a generator do not lead to their rows' shards; Check draws two ids to
//     test that.
//
// Check continues after the first mistake. It reads a sharded table on every target up to the
// first error, unless its migration has not reached the switch. It skips tables that do not
// exist. The errors are joined; those about a field are [FieldError]s.
func Check(db *gorm.DB, models ...any) error {
	p, ok := db.Config.Plugins[pluginName].(*Plugin)
	if !ok {
		return ErrNotLoaded
	}
	plans, err := p.config.plans(db)
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	c := &check{plans, p.config.Router}
	var errs []error
	for _, model := range models {
		errs = append(errs, c.check(db, model))
	}
	return errors.Join(errs...)
}

// check is one call of Check.
type check struct {
	*plans

	router *sharding.Router
}

// sharded returns the sharded table of a model, nil if there is none.
func (c *check) sharded(s *schema.Schema) (*sharding.Table, error) {
	if c.router == nil {
		return nil, nil
	}
	t, ok := c.router.Snapshot().Lookup(s.Table)
	if !ok {
		return nil, nil
	}
	return t, checkKey(s, t)
}

// checkKey refuses a model that lacks the column of its table's sharding key.
func checkKey(s *schema.Schema, t *sharding.Table) error {
	if columnField(s, t.Key) != nil {
		return nil
	}
	return &sharding.RouteError{
		Op: "model " + s.Name + " for", Table: t.Name, Column: t.Key, Err: sharding.ErrMissingKey,
		Hint: "give the model a field of this column, or correct the table's Key",
	}
}

// check continues after an error as far as possible.
func (c *check) check(db *gorm.DB, model any) error {
	s, err := parseNamed(db, model)
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	table, err := c.sharded(s)
	made := c.make(s)
	switch {
	case made.err != nil:
		err = errors.Join(err, made.err)
	case len(made.fields) == 0 && !c.mayLackGenerator(s, table):
		err = errors.Join(err, fmt.Errorf("gormplugin: %s: %w", s, ErrUnmanaged))
	default:
		err = errors.Join(err, c.checkFields(db, made, table))
	}
	return errors.Join(err, c.checkTables(db, made, table))
}

// mayLackGenerator reports whether the application may give all keys of a model itself: its table is
// routed, and no source of a migration numbers it or has done so.
func (c *check) mayLackGenerator(s *schema.Schema, table *sharding.Table) bool {
	switch {
	case c.router == nil:
		return false
	case table == nil:
		return c.router.IsBroadcast(s.Table)
	}
	origin := table.Origin()
	return table.Unnumbered() == "" && (origin == nil || origin.Numbered == "")
}

// checkFields checks the fields of a model.
func (c *check) checkFields(db *gorm.DB, made *plan, table *sharding.Table) error {
	var errs []error
	for i := range made.fields {
		m := &made.fields[i]
		if m.kind.Narrow() {
			errs = append(errs, m.fail(fmt.Errorf("%s: %w", m.FieldType, ErrOverflow)))
		}
		if table != nil && table.Leads(m.DBName) && !strings.EqualFold(m.DBName, table.Key) {
			errs = append(errs, m.checkSlots(db.Statement.Context, table))
		}
	}
	return errors.Join(errs...)
}

// checkTables checks the table, or all targets of a sharded table up to the first with an
// error. It skips a table that a migration's source still serves, because that source numbers
// its rows rightly.
func (c *check) checkTables(db *gorm.DB, made *plan, table *sharding.Table) error {
	if table == nil {
		return made.checkColumns(db.Session(&gorm.Session{NewDB: true}), made.schema.Table)
	}
	if table.Origin() != nil {
		return nil
	}
	m := newMigration(db, c.router)
	for _, target := range c.router.Targets(table.Name) {
		err := c.checkKeyColumns(db, table, target)
		if _, errOpen := m.open(target.DB); errOpen != nil {
			return errors.Join(err, fmt.Errorf("gormplugin: shard %s: %w", target, errOpen))
		}
		at := m.at(db.Statement.Context, target)
		if errColumns := errors.Join(made.checkColumns(at, target.Table), made.checkNumbered(at, target.Table)); errColumns != nil {
			err = errors.Join(err, fmt.Errorf("shard %s: %w", target, errColumns))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkColumns checks the columns of a table that generators fill.
func (p *plan) checkColumns(db *gorm.DB, table string) error {
	if len(p.fields) == 0 {
		return nil
	}
	columns, err := p.columnsOf(db, table)
	errs := []error{err}
	for _, column := range columns {
		for i := range p.fields {
			if m := &p.fields[i]; strings.EqualFold(m.DBName, column.Name()) {
				errs = append(errs, m.checkColumn(column))
			}
		}
	}
	return errors.Join(errs...)
}

// checkNumbered refuses a shard that numbers the primary key of a model without a generator: rows
// of other shards would get the same numbers.
func (p *plan) checkNumbered(db *gorm.DB, table string) error {
	if len(p.fields) > 0 || len(p.schema.PrimaryFields) != 1 {
		return nil
	}
	key := p.schema.PrimaryFields[0]
	columns, err := p.columnsOf(db, table)
	for _, column := range columns {
		if column.numbered && strings.EqualFold(key.DBName, column.Name()) {
			err = &FieldError{p.schema.Name, key.Name, ErrAutoIncrement}
		}
	}
	return err
}

// column is a column of a table.
type column struct {
	gorm.ColumnType

	numbered bool // the database numbers it
}

// columnsOf returns the columns of a table, none if it does not exist.
func (p *plan) columnsOf(db *gorm.DB, table string) ([]column, error) {
	migrator := db.Migrator()
	if !migrator.HasTable(table) {
		return nil, nil
	}
	types, err := migrator.ColumnTypes(table)
	if err != nil {
		return nil, fmt.Errorf("gormplugin: %s: %w", p.schema, err)
	}
	var numbers bool
	if db.Dialector.Name() == "sqlite" { // the driver does not report AUTOINCREMENT
		if numbers, err = isAutoincrement(db.Session(&gorm.Session{NewDB: true, Context: db.Statement.Context}), table); err != nil {
			return nil, fmt.Errorf("gormplugin: %s: %w", p.schema, err)
		}
	}
	columns := make([]column, len(types))
	for i, c := range types {
		numbered, known := c.AutoIncrement()
		columns[i] = column{c, known && numbered || numbers && isPrimary(c)}
	}
	return columns, nil
}

func (m *managed) checkColumn(c column) error {
	var errs []error
	if c.numbered {
		errs = append(errs, m.fail(ErrAutoIncrement))
	}
	if m.GORMDataType == schema.Int || m.GORMDataType == schema.Uint {
		if isNarrow(c.DatabaseTypeName()) {
			errs = append(errs, m.fail(fmt.Errorf("column of type %s: %w", c.DatabaseTypeName(), ErrOverflow)))
		}
	}
	return errors.Join(errs...)
}

// isNarrow returns true when a column type of MySQL or PostgreSQL has fewer than 64 bits.
// SQLite's INTEGER has 64 bits and is not in the list.
func isNarrow(name string) bool {
	switch strings.TrimPrefix(strings.ToLower(name), "unsigned ") {
	case "tinyint", "smallint", "mediumint", "int", "int2", "int4", "smallserial", "serial":
		return true
	}
	return false
}

// isPrimary returns true for the primary key, the only column that AUTOINCREMENT can apply to.
func isPrimary(c gorm.ColumnType) bool {
	primary, known := c.PrimaryKey()
	return known && primary
}

// plainText matches a text type without a collation.
var plainText = regexp.MustCompile(`(?i)^(var)?char(\(\d+\))?$|^(tiny|medium|long)?text$`)

// compareBytes gives text columns that lead to a shard a binary collation, unless the model
// chooses the column's type. SQLite compares bytes by default.
func compareBytes(d gorm.Dialector, s *schema.Schema, t *sharding.Table) {
	if d.Name() != "mysql" {
		return
	}
	for _, column := range t.Texts() {
		f := columnField(s, column)
		if f == nil {
			continue
		}
		if text := d.DataTypeOf(f); plainText.MatchString(text) {
			f.DataType = schema.DataType(text + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
		}
	}
}

// checkKeyColumns refuses a table whose columns do not store and compare keys as its rules do.
// It leaves faults that concern only hypothetical keys to the command doctor.
func (c *check) checkKeyColumns(db *gorm.DB, t *sharding.Table, target sharding.Target) error {
	d, err := dialect.Named(db.Dialector.Name())
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	faults, err := keycolumn.Inspect(db.Statement.Context, c.router.DB(target.DB), d, t, target.Table)
	if err != nil {
		return fmt.Errorf("gormplugin: shard %s: %w", target, err)
	}
	var errs []error
	for _, f := range faults {
		sentinel := ErrKeyColumn
		if f.Collation {
			sentinel = ErrCollation
		}
		if f.Severity > keycolumn.Notice {
			errs = append(errs, fmt.Errorf("gormplugin: shard %s: column %s: %w: %s; %s", target, f.Column, sentinel, f.Message, f.Fix))
		}
	}
	return errors.Join(errs...)
}

// isAutoincrement returns true when a table of SQLite numbers its rows with AUTOINCREMENT,
// which no driver reports.
func isAutoincrement(db *gorm.DB, table string) (bool, error) {
	var texts []string
	err := db.Raw("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", table).Scan(&texts).Error
	if err != nil || len(texts) == 0 {
		return false, err
	}
	return sqltext.HasWord(texts[0], sqltext.SQLite, "AUTOINCREMENT"), nil
}
