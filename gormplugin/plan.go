package gormplugin

import (
	"sync"

	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// plan is what a model's keygen tags ask for, worked out once per model.
type plan struct {
	fields []managed
	err    error // a tag that cannot be honoured; every create of the model returns it
}

// managed is one field that a generator fills.
type managed struct {
	*schema.Field
	model string
	kind  keyfield.Type
	gen   keygen.Generator[int64]
}

// plans caches plans. gorm parses a model once, so its schema is the key.
type plans struct {
	set   keygen.Set
	cache sync.Map // *schema.Schema → *plan
}

func (p *plans) of(s *schema.Schema) *plan {
	if found, ok := p.cache.Load(s); ok {
		return found.(*plan)
	}
	made, _ := p.cache.LoadOrStore(s, p.make(s))
	return made.(*plan)
}

func (p *plans) make(s *schema.Schema) *plan {
	made := &plan{}
	for _, f := range s.Fields {
		m, ok, err := p.field(s, f)
		if err != nil {
			return &plan{err: &FieldError{s.Name, f.Name, err}}
		}
		if ok {
			made.fields = append(made.fields, m)
		}
	}
	return made
}

// field reads the tag of one field; false says that the field is not managed.
func (p *plans) field(s *schema.Schema, f *schema.Field) (managed, bool, error) {
	text, tagged := f.Tag.Lookup("keygen")
	if !tagged {
		return managed{}, false, nil
	}
	tag, err := keyfield.ParseTag(text)
	if err != nil || tag.Never || f.DBName == "" || !f.Creatable {
		return managed{}, false, err
	}
	kind, err := keyfield.Of(f.FieldType)
	if err != nil {
		return managed{}, false, err
	}
	gen, err := p.set.Lookup(tag.Name)
	if err != nil {
		return managed{}, false, err
	}
	return managed{Field: f, model: s.Name, kind: kind, gen: gen}, true, nil
}

func (m managed) fail(err error) error { return &FieldError{m.model, m.Name, err} }
