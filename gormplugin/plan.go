package gormplugin

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// plan is what is to be filled in a model, worked out once per model. It is
// immutable.
type plan struct {
	fields  []managed
	err     error // a tag that cannot be honoured; every create of the model returns it
	schema  *schema.Schema
	private *schema.Schema // for gorm:create
	maps    *schema.Schema // the same for maps that gorm must not scan into
	source  *schema.Schema // for gorm:create as long as the source of a migration numbers the key
	kids    []*schema.Relationship
}

// plans makes plans and keeps them. gorm parses a model once, so its schema is
// the key.
type plans struct {
	set    keygen.Set
	auto   bool
	models map[reflect.Type]map[string]string // registered tags, by type and field
	cache  sync.Map                           // *schema.Schema → *plan
	latest atomic.Pointer[plan]               // asked for: most programs insert many rows of a model in a row
}

func (p *plans) of(s *schema.Schema) *plan {
	if found := p.latest.Load(); found != nil && found.schema == s {
		return found
	}
	found, ok := p.cache.Load(s)
	if !ok {
		found, _ = p.cache.LoadOrStore(s, p.make(s))
	}
	p.latest.Store(found.(*plan))
	return found.(*plan)
}

func (p *plans) make(s *schema.Schema) *plan {
	made := &plan{schema: s}
	for _, f := range s.Fields {
		m, ok, err := p.field(s, f)
		if err != nil {
			return &plan{schema: s, err: &FieldError{s.Name, f.Name, err}}
		}
		if ok {
			made.fields = append(made.fields, m)
		}
	}
	made.complete()
	made.kids = p.kids(s)
	return made
}

// complete adds what follows from the fields.
func (p *plan) complete() {
	if len(p.fields) > 0 {
		p.private = private(p.schema, p.fields)
		p.maps = withoutReturned(p.private)
		p.source = numbered(p.schema, p.fields)
	}
}

// field works out how one field is filled; false says that it is not managed.
func (p *plans) field(s *schema.Schema, f *schema.Field) (managed, bool, error) {
	tag, found, err := p.tag(s, f)
	if err != nil || !found || tag.Never || !isColumn(s, f) || !f.Creatable {
		return managed{}, false, err
	}
	m, err := manage(s, f, tag, func(kind *keyfield.Type) (generator, error) { return generatorOf(p.set, tag, kind) })
	return m, err == nil, err
}

// isColumn reports whether the field is the one that its column is written from:
// an embedded struct's field may be hidden by one of the same name.
func isColumn(s *schema.Schema, f *schema.Field) bool {
	return f.DBName != "" && s.FieldsByDBName[f.DBName] == f
}

// tag returns what is said about a field: by the registration, by its own tags,
// or by Auto, in this order.
func (p *plans) tag(s *schema.Schema, f *schema.Field) (keyfield.Tag, bool, error) {
	if text, registered := registeredTag(s, p.models[s.ModelType], f); registered {
		tag, err := keyfield.ParseTag(text)
		return tag, true, err
	}
	tag, found, err := keyfield.ReadTag(f.Tag)
	if found || err != nil {
		return tag, found, err
	}
	return keyfield.Tag{}, p.auto && isAuto(s, f), nil
}

// isAuto reports whether f is a model's only key, of 64 bits, which gorm would
// leave to AUTO_INCREMENT.
func isAuto(s *schema.Schema, f *schema.Field) bool {
	integer := f.GORMDataType == schema.Int || f.GORMDataType == schema.Uint
	return integer && f.Size == 64 && f.AutoIncrement && len(s.PrimaryFields) == 1 && s.PrimaryFields[0] == f
}

// kids returns the relations through which a create can reach managed fields of
// other rows.
func (p *plans) kids(s *schema.Schema) []*schema.Relationship {
	return slices.DeleteFunc(relations(s), func(rel *schema.Relationship) bool { return !p.leads(rel, map[*schema.Schema]bool{}) })
}

// relations returns those that gorm saves with a row.
func relations(s *schema.Schema) []*schema.Relationship {
	r := &s.Relationships
	return slices.Concat(r.BelongsTo, r.HasOne, r.HasMany, r.Many2Many)
}

// leads reports whether rows that a relation leads to, those of its join table, or rows
// saved with them, have a managed field.
func (p *plans) leads(rel *schema.Relationship, seen map[*schema.Schema]bool) bool {
	if rel.JoinTable != nil && p.manages(rel.JoinTable) {
		return true
	}
	s := rel.FieldSchema
	if seen[s] {
		return false
	}
	seen[s] = true
	return p.manages(s) || slices.ContainsFunc(relations(s), func(next *schema.Relationship) bool { return p.leads(next, seen) })
}

// manages reports whether the model itself has a managed field. One whose tag is
// wrong counts: its own create returns the error.
func (p *plans) manages(s *schema.Schema) bool {
	return slices.ContainsFunc(s.Fields, func(f *schema.Field) bool {
		_, managed, err := p.field(s, f)
		return managed || err != nil
	})
}
