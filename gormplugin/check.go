// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
//   - a table does not exist;
//   - a field or a column is too narrow for ids;
//   - the database still numbers a column (on SQLite, with AUTOINCREMENT);
//   - a model lacks its table's sharding key, or the key's column does not store and
//     compare keys as the table's rule does (by its type, its collation, or the precision
//     and zone of its times);
//   - the ids of a generator do not lead to their rows' shards; Check draws two ids to
//     test that;
//   - the column of a unique lookup lacks its unique index on a shard, or the lookup table does
//     not exist.
//
// It logs a warning for a unique key that holds within each shard only, and for a join table whose sharding key no
// reference of its relation fills, and returns no errors for them.
//
// Check continues after the first mistake. It reads a sharded table on every target up to the
// first error, unless its migration has not reached the switch. The errors are joined; those about
// a field are [FieldError]s.
func Check(db *gorm.DB, models ...any) error {
	p, ok := db.Config.Plugins[pluginName].(*Plugin)
	if !ok {
		return ErrNotLoaded
	}
	plans, err := p.config.plans(db)
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	c := &check{plans: plans, router: p.config.Router}
	if c.router != nil {
		if c.dialect, err = dialect.Named(db.Dialector.Name()); err != nil {
			return fmt.Errorf("gormplugin: %w", err)
		}
	}
	var errs []error
	for _, model := range models {
		errs = append(errs, c.check(db, model))
	}
	return errors.Join(errs...)
}

// check is one call of Check.
type check struct {
	*plans

	router  *sharding.Router // nil without sharded tables
	dialect dialect.Dialect  // with a router
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
	db = db.Session(&gorm.Session{NewDB: true}) // without the name of a table
	var table *sharding.Table
	if c.router != nil {
		table, _ = c.router.Snapshot().Lookup(s.Table)
		c.warnJoins(db, s)
	}
	if table != nil {
		err = checkKey(s, table)
	}
	made := c.make(s)
	switch {
	case made.err != nil:
		err = errors.Join(err, made.err)
	case len(made.fields) == 0 && !c.mayLackGenerator(s, table):
		err = errors.Join(err, fmt.Errorf("gormplugin: %s: %w", s, ErrUnmanaged))
	default:
		err = errors.Join(err, checkFields(db.Statement.Context, made, table))
	}
	return errors.Join(err, c.checkTables(db, made, table))
}

// mayLackGenerator reports whether the application may give all keys of a model itself: its table is
// routed, and no source of a migration numbers it or has done so.
func (c *check) mayLackGenerator(s *schema.Schema, table *sharding.Table) bool {
	if table == nil {
		return c.router != nil && c.router.IsBroadcast(s.Table)
	}
	origin := table.Origin()
	return table.Unnumbered() == "" && (origin == nil || origin.Numbered == "")
}

// checkFields checks the fields of a model.
func checkFields(ctx context.Context, made *plan, table *sharding.Table) error {
	var errs []error
	for _, m := range made.fields {
		if m.kind.Narrow() {
			errs = append(errs, m.fail(fmt.Errorf("%s: %w", m.FieldType, ErrOverflow)))
		}
		if columnCarriesSlot(table, m.DBName) {
			errs = append(errs, m.checkSlots(ctx, table))
		}
	}
	return errors.Join(errs...)
}

// checkTables checks the table, or all targets of a sharded table up to the first with an
// error. It skips a table that a migration's source still serves, because that source numbers
// its rows rightly.
func (c *check) checkTables(db *gorm.DB, made *plan, table *sharding.Table) error {
	if table == nil {
		return made.checkColumns(db, made.schema.Table, made.fields)
	}
	if table.Origin() != nil {
		return nil
	}
	fields := made.fields
	if key := made.schema.PrimaryFields; len(fields) == 0 && len(key) == 1 {
		fields = []*managed{{Field: key[0], model: made.schema.Name}} // shards that number it would give the same numbers
	}
	ctx, m := db.Statement.Context, newMigration(db)
	for i, target := range c.router.Targets(table.Name) {
		if i == 0 {
			c.warnUnique(db, table, target)
		}
		err := c.checkKeyColumns(ctx, table, target)
		if err != nil && !errors.Is(err, ErrKeyColumn) && !errors.Is(err, ErrCollation) { // the database does not answer
			return err
		}
		err = errors.Join(err, c.checkLookups(ctx, table, target))
		if errColumns := made.checkColumns(m.at(ctx, target), target.Table, fields); errColumns != nil {
			err = errors.Join(err, fmt.Errorf("shard %s: %w", target, errColumns))
		}
		if err != nil {
			return err
		}
	}
	return c.checkLookupTables(db, table)
}

// checkLookups refuses a shard that does not keep the values of a unique lookup unique itself.
func (c *check) checkLookups(ctx context.Context, t *sharding.Table, target sharding.Target) error {
	var errs []error
	for _, l := range t.Lookups {
		if !l.Unique {
			continue
		}
		has, err := dialect.HasUniqueKey(ctx, c.router.DB(target.DB), c.dialect, target.Table, l.Column)
		if err == nil && !has {
			err = fmt.Errorf("%w: column %s has no unique index; create one on each shard, for Migrate by the tag gorm:\"uniqueIndex\"", sharding.ErrLookup, l.Column)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("gormplugin: shard %s: %w", target, err))
		}
	}
	return errors.Join(errs...)
}

// warnUnique logs which unique keys hold within each shard only. An error is that of the checks after it.
func (c *check) warnUnique(db *gorm.DB, t *sharding.Table, target sharding.Target) {
	faults, _ := keycolumn.InspectUnique(db.Statement.Context, c.router.DB(target.DB), c.dialect, t, target.Table)
	for _, f := range faults {
		db.Logger.Warn(db.Statement.Context, "gormplugin: %s: %s; %s", t.Name, f.Message, f.Fix)
	}
}

// warnJoins logs which join tables get no sharding key from gorm. This is no error, because the program may insert their rows itself.
func (c *check) warnJoins(db *gorm.DB, s *schema.Schema) {
	for _, rel := range s.Relationships.Many2Many {
		if err := checkJoin(db, c.router, s, rel); err != nil {
			db.Logger.Warn(db.Statement.Context, "gormplugin: %v", err)
		}
	}
}

// checkLookupTables refuses lookup tables that the home database lacks.
func (c *check) checkLookupTables(db *gorm.DB, t *sharding.Table) error {
	var errs []error
	for _, l := range t.Lookups {
		if _, sharded := c.router.Snapshot().Lookup(l.Table); sharded {
			continue
		}
		if err := mustHaveTable(db, l.Table); err != nil {
			errs = append(errs, fmt.Errorf("gormplugin: the lookup table %s of %s: %w", l.Table, t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkColumns checks the columns of these fields.
func (p *plan) checkColumns(db *gorm.DB, table string, fields []*managed) error {
	if len(fields) == 0 {
		return nil
	}
	if err := mustHaveTable(db, table); err != nil {
		return fmt.Errorf("gormplugin: %s: table %s: %w", p.schema.Name, table, err)
	}
	columns, err := db.Migrator().ColumnTypes(table)
	var numbers bool
	if err == nil && db.Dialector.Name() == "sqlite" { // the driver does not report AUTOINCREMENT
		numbers, err = isAutoincrement(db.Session(&gorm.Session{NewDB: true}), table)
	}
	if err != nil {
		return fmt.Errorf("gormplugin: %s: %w", p.schema, err)
	}
	var errs []error
	for _, column := range columns {
		for _, m := range fields {
			if strings.EqualFold(m.DBName, column.Name()) {
				errs = append(errs, m.checkColumn(column, numbers))
			}
		}
	}
	return errors.Join(errs...)
}

// mustHaveTable returns ErrNoTable when there is no such table. gorm's HasTable says the same of a database that does
// not answer.
func mustHaveTable(db *gorm.DB, table string) error {
	if db.Migrator().HasTable(table) {
		return nil
	}
	var one int
	if err := db.Raw("SELECT 1").Scan(&one).Error; err != nil {
		return err
	}
	return ErrNoTable
}

// checkColumn checks the field's column; numbers says that the database numbers the primary key.
func (m *managed) checkColumn(c gorm.ColumnType, numbers bool) error {
	var errs []error
	numbered, _ := c.AutoIncrement()
	if primary, _ := c.PrimaryKey(); numbered || numbers && primary {
		errs = append(errs, m.fail(ErrAutoIncrement))
	}
	if ids := m.gen != nil && (m.GORMDataType == schema.Int || m.GORMDataType == schema.Uint); ids && isNarrow(c.DatabaseTypeName()) {
		errs = append(errs, m.fail(fmt.Errorf("column of type %s: %w", c.DatabaseTypeName(), ErrOverflow)))
	}
	return errors.Join(errs...)
}

// isNarrow returns true when a column type of MySQL or PostgreSQL has fewer than 64 bits.
// SQLite's INTEGER has 64 bits and is not in the list.
func isNarrow(name string) bool {
	narrow := []string{"tinyint", "smallint", "mediumint", "int", "int2", "int4", "smallserial", "serial"}
	return slices.Contains(narrow, strings.TrimPrefix(strings.ToLower(name), "unsigned "))
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
func (c *check) checkKeyColumns(ctx context.Context, t *sharding.Table, target sharding.Target) error {
	faults, err := keycolumn.Inspect(ctx, c.router.DB(target.DB), c.dialect, t, target.Table)
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

// isAutoincrement returns true when a table of SQLite numbers its rows with AUTOINCREMENT.
func isAutoincrement(db *gorm.DB, table string) (bool, error) {
	var text string
	err := db.Raw("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", table).Scan(&text).Error
	return sqltext.HasWord(text, sqltext.SQLite, "AUTOINCREMENT"), err
}
