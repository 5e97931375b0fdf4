// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// Model registers a model: a struct whose tags the application cannot edit, or a table that is
// also written with Table("…").Create of maps.
type Model struct {
	// Struct is a value of the model's type or a pointer to one, as db.Create takes it. It is
	// required; only its type matters.
	Struct any

	// Tags are keygen tags by field name: "ID", or "Base.ID" in an embedded struct, for which
	// "ID" is enough if it is unambiguous. They replace the fields' own tags. Defaults to nil:
	// only the struct's own tags count.
	Tags map[string]string
}

// plans returns the plans of all models, with the checked Config.Models.
func (c *Config) plans(db *gorm.DB) (*plans, error) {
	p := &plans{set: c.Generators, auto: c.Auto, models: map[reflect.Type]map[string]keyfield.Tag{}, tables: map[string]*schema.Schema{}}
	var errs []error
	for i, m := range c.Models {
		if err := p.register(db, m); err != nil {
			errs = append(errs, fmt.Errorf("Config.Models[%d]: %w", i, err))
		}
	}
	return p, errors.Join(errs...)
}

func (p *plans) register(db *gorm.DB, m Model) error {
	s, err := parse(db, m.Struct)
	if err != nil {
		return err
	}
	if _, twice := p.models[s.ModelType]; twice {
		return fmt.Errorf("%s is registered twice", s.ModelType)
	}
	tags := map[string]keyfield.Tag{}
	for name, text := range m.Tags {
		f, err := fieldOf(s, name)
		if err != nil {
			return err
		}
		tag, err := keyfield.ParseTag(text)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", s.ModelType, name, err)
		}
		if _, twice := tags[f.BindName()]; !twice || name == f.BindName() {
			tags[f.BindName()] = tag
		}
	}
	p.models[s.ModelType] = tags
	p.tables[s.Table] = s
	if _, table, ok := strings.Cut(s.Table, "."); ok {
		p.tables[table] = s // gorm's Table("shop.orders") stores the second part
	}
	return nil
}

// parse returns gorm's schema of the model.
func parse(db *gorm.DB, model any) (*schema.Schema, error) {
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(model); err != nil {
		return nil, fmt.Errorf("%T: %w", model, err)
	}
	return stmt.Schema, nil
}

// parseNamed is parse for db.Table("orders"), which names the table of the model.
func parseNamed(db *gorm.DB, model any) (*schema.Schema, error) {
	s, err := parse(db, model)
	if err != nil || db.Statement == nil || db.Statement.Table == "" {
		return s, err
	}
	named := copyOf(s)
	named.Table = db.Statement.Table
	return named, nil
}

// fieldOf returns the field with a name: the model's own one, or otherwise the only one in its
// embedded structs.
func fieldOf(s *schema.Schema, name string) (*schema.Field, error) {
	if f := s.FieldsByBindName[name]; f != nil && isColumn(s, f) {
		return f, nil
	}
	found := slices.DeleteFunc(slices.Clone(s.Fields), func(f *schema.Field) bool { return f.Name != name || !isColumn(s, f) })
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s has no column for a field %q", s.ModelType, name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s has several fields %q; write %q or %q", s.ModelType, name, found[0].BindName(), found[1].BindName())
}

// Base is a primary key that the default generator fills. Embed it instead of gorm.Model's ID:
//
//	type Order struct {
//		gormplugin.Base
//		Total int64
//	}
//
// AutoMigrate makes the column a BIGINT without AUTO_INCREMENT. In JSON the id is a string,
// because JavaScript rounds large numbers.
type Base struct {
	ID keygen.ID `gorm:"primaryKey" json:"id" keygen:""`
}
