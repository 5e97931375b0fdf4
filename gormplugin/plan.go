// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// plan says which fields of a model are filled and how. It is computed once per model and is
// immutable.
type plan struct {
	fields          []*managed
	err             error // an invalid tag; every create of the model returns it
	schema          *schema.Schema
	withoutDefaults *schema.Schema         // for gorm:create
	maps            *schema.Schema         // the same for slices of maps, into which gorm cannot scan
	source          *schema.Schema         // for gorm:create while the source of a migration numbers the key
	relations       []*schema.Relationship // that gorm saves with a row
	free            sync.Pool              // of *filling
}

// plans creates and caches plans. gorm parses a model once, so its schema is the cache key.
type plans struct {
	set    keygen.Set
	auto   bool
	models map[reflect.Type]map[string]keyfield.Tag // registered tags, by type and field
	tables map[string]*schema.Schema                // registered, by name, for maps without a model
	cache  sync.Map                                 // *schema.Schema → *plan
}

func (p *plans) of(s *schema.Schema) *plan {
	found, ok := p.cache.Load(s)
	if !ok {
		found, _ = p.cache.LoadOrStore(s, p.make(s))
	}
	return found.(*plan)
}

func (p *plans) make(s *schema.Schema) *plan {
	var fields []*managed
	for _, f := range s.Fields {
		m, err := p.field(s, f)
		if err != nil {
			return &plan{schema: s, err: &FieldError{s.Name, f.Name, err}}
		}
		if m != nil {
			fields = append(fields, m)
		}
	}
	return planOf(s, fields)
}

// planOf returns the plan of a model in which these fields are filled.
func planOf(s *schema.Schema, fields []*managed) *plan {
	p := &plan{schema: s, fields: fields, relations: relations(s)}
	if len(fields) > 0 {
		p.withoutDefaults = withoutDefaults(s, fields)
		p.maps = copyOf(p.withoutDefaults)
		p.maps.FieldsWithDefaultDBValue = nil
		p.source = numbered(s, fields)
	}
	return p
}

// field returns how a field is filled, nil if it is not managed.
func (p *plans) field(s *schema.Schema, f *schema.Field) (*managed, error) {
	tag, found, err := p.tag(s, f)
	if err != nil || !found || tag.Never || !isColumn(s, f) || !f.Creatable {
		return nil, err
	}
	return manage(s, f, tag, func(kind *keyfield.Type) (keyfield.Generator, error) { return keyfield.Find(p.set, tag, kind) })
}

// isColumn returns true when gorm writes a column from this field. A field of an embedded struct may
// be hidden by another of the same name.
func isColumn(s *schema.Schema, f *schema.Field) bool {
	return s.FieldsByDBName[f.DBName] == f
}

// tag returns a field's tag: from the registration, from its own tags, or from Auto, in this
// order.
func (p *plans) tag(s *schema.Schema, f *schema.Field) (keyfield.Tag, bool, error) {
	if tag, registered := p.models[s.ModelType][f.BindName()]; registered {
		return tag, true, nil
	}
	tag, found, err := keyfield.ReadTag(f.Tag)
	if found || err != nil {
		return tag, found, err
	}
	return keyfield.Tag{}, p.auto && isAuto(s, f), nil
}

// isAuto returns true when f is a model's only primary key, has 64 bits, and gorm would leave
// it to AUTO_INCREMENT.
func isAuto(s *schema.Schema, f *schema.Field) bool {
	integer := f.GORMDataType == schema.Int || f.GORMDataType == schema.Uint
	return integer && f.Size == 64 && f.AutoIncrement && len(s.PrimaryFields) == 1 && s.PrimaryFields[0] == f
}

// relations returns the relations that gorm saves with a row.
func relations(s *schema.Schema) []*schema.Relationship {
	r := &s.Relationships
	return slices.Concat(r.BelongsTo, r.HasOne, r.HasMany, r.Many2Many)
}
