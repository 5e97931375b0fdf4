package gormplugin

import (
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Check finds, when a program starts, what would go wrong at the first insert or
// later: the plugin was not loaded, a model of which nothing is filled, a tag
// that names an unknown generator, a field or a column too narrow for ids, and a
// column that the database still numbers. Tables that do not exist are not
// looked at. The errors are joined; those about a field are [FieldError]s.
func Check(db *gorm.DB, models ...any) error {
	p, ok := db.Config.Plugins[pluginName].(*Plugin)
	if !ok {
		return ErrNotLoaded
	}
	r, err := p.config.registry(db)
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	plans := &plans{set: p.config.Generators, auto: p.config.Auto, models: r.tags}
	var errs []error
	for _, model := range models {
		errs = append(errs, plans.check(db, model))
	}
	return errors.Join(errs...)
}

func (p *plans) check(db *gorm.DB, model any) error {
	s, err := parse(db, model)
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	made := p.make(s)
	if made.err != nil {
		return made.err
	}
	if len(made.fields) == 0 {
		return fmt.Errorf("gormplugin: %s: %w", s, ErrUnmanaged)
	}
	var errs []error
	for i := range made.fields {
		if m := &made.fields[i]; m.kind.Narrow() {
			errs = append(errs, m.fail(fmt.Errorf("%s: %w", m.FieldType, ErrOverflow)))
		}
	}
	return errors.Join(append(errs, made.checkColumns(db, model))...)
}

// checkColumns looks at the table.
func (p *plan) checkColumns(db *gorm.DB, model any) error {
	migrator := db.Session(&gorm.Session{NewDB: true}).Migrator()
	if !migrator.HasTable(model) {
		return nil
	}
	columns, err := migrator.ColumnTypes(model)
	if err != nil {
		return fmt.Errorf("gormplugin: %s: %w", p.schema, err)
	}
	var errs []error
	for _, column := range columns {
		for i := range p.fields {
			if m := &p.fields[i]; strings.EqualFold(m.DBName, column.Name()) {
				errs = append(errs, m.checkColumn(column))
			}
		}
	}
	return errors.Join(errs...)
}

func (m *managed) checkColumn(c gorm.ColumnType) error {
	var errs []error
	if numbered, known := c.AutoIncrement(); known && numbered {
		errs = append(errs, m.fail(ErrAutoIncrement))
	}
	if m.GORMDataType == schema.Int || m.GORMDataType == schema.Uint {
		if isNarrow(c.DatabaseTypeName()) {
			errs = append(errs, m.fail(fmt.Errorf("column of type %s: %w", c.DatabaseTypeName(), ErrOverflow)))
		}
	}
	return errors.Join(errs...)
}

// isNarrow reports whether a column type of MySQL or PostgreSQL has fewer than
// 64 bits. SQLite's INTEGER has all of them, and no other name for them here.
func isNarrow(name string) bool {
	switch strings.ToLower(strings.TrimPrefix(strings.ToLower(name), "unsigned ")) {
	case "tinyint", "smallint", "mediumint", "int", "int2", "int4", "smallserial", "serial":
		return true
	}
	return false
}
