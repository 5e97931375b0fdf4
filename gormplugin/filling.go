package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/keygen"
)

// filling is the state of one create statement, from the reservation of its keys
// to its end. It lies among the statement's clauses, under a name that gorm
// builds nothing for: unlike settings, clauses are not copied into the
// statements of associations, and putting one there costs no memory.
type filling struct {
	plan    *plan
	rows    rows
	parts   []part
	inTx    bool // the statement is part of a transaction begun by others
	sent    bool // the INSERT may have reached the database
	refused bool // its error proves that it wrote nothing

	schema  *schema.Schema // the statement's own
	swapped bool
	context context.Context //nolint:containedctx // the statement's own, to be put back
	selects []string        // the statement's Selects before a key was added
	added   bool

	family   *family   // of which the statement is the head
	conflict *conflict // nil when the statement can meet no row
	outcome  outcome
}

var _ clause.Expression = (*filling)(nil)

// Build writes nothing.
func (*filling) Build(clause.Builder) {}

// stateName is where a statement's filling lies among its clauses.
const stateName = "shardid:filling"

func stateOf(stmt *gorm.Statement) *filling {
	fl, _ := stmt.Clauses[stateName].Expression.(*filling)
	return fl
}

// reset makes fl, which is new or has forgotten everything, the state of a
// statement.
func (fl *filling) reset(p *plan, r rows) {
	fl.plan, fl.rows = p, r
	fl.parts = slices.Grow(fl.parts[:0], len(p.fields))[:len(p.fields)]
	for i := range fl.parts {
		fl.parts[i].reset(&p.fields[i], r)
	}
}

// forget drops everything of the statement's but memory.
func (fl *filling) forget() {
	parts := fl.parts
	for i := range parts {
		parts[i].forget()
	}
	*fl = filling{parts: parts[:0]}
}

// reserve draws keys for all rows that have none, one time per field.
func (fl *filling) reserve(stmt *gorm.Statement) error {
	var from *family
	if fl.inTx {
		from = familyOf(stmt.Context)
	}
	for i := range fl.parts {
		part := &fl.parts[i]
		if part.omit = omitted(stmt, part.field); part.omit {
			continue
		}
		need := part.empty()
		from.give(part.field, &part.keys, need)
		if err := fl.draw(stmt.Context, part, need-part.keys.len()); err != nil {
			return err
		}
	}
	return nil
}

// draw takes n more keys from the field's generator. Inside a transaction it
// does not wait for ever.
func (fl *filling) draw(ctx context.Context, p *part, n int) error {
	if n <= 0 {
		return nil
	}
	if !fl.inTx {
		return p.field.draw(ctx, &p.keys, n)
	}
	patient := &patient{Context: ctx}
	defer patient.end()
	err := p.field.draw(patient, &p.keys, n)
	if err != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, keygen.ErrStarved)) {
		return fmt.Errorf("%w: %w", ErrInTransaction, err)
	}
	return err
}

// assign gives the keys to the rows of all fields, or of those only that are
// filled before hooks.
func (fl *filling) assign(stmt *gorm.Statement, hooks bool) error {
	for i := range fl.parts {
		part := &fl.parts[i]
		if part.omit || hooks && !part.field.hooks {
			continue
		}
		if !hooks {
			fl.selectKey(stmt, part.field)
		}
		missing, err := part.assign(stmt.Context)
		if err == nil && missing > 0 { // a hook emptied or added rows
			if err = fl.draw(stmt.Context, part, missing); err == nil {
				_, err = part.assign(stmt.Context)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeBack empties the fields that were filled, so that the value can be used
// as if Create had not been called.
func (fl *filling) takeBack(ctx context.Context) {
	for i := range fl.parts {
		fl.parts[i].takeBack(ctx, nil)
		fl.parts[i].forget()
	}
}

// gave reports whether any row was given a key.
func (fl *filling) gave() bool {
	for i := range fl.parts {
		if fl.parts[i].used() > 0 {
			return true
		}
	}
	return false
}

// omits reports whether the statement leaves a managed field out on purpose.
func (fl *filling) omits() bool {
	for i := range fl.parts {
		if fl.parts[i].omit {
			return true
		}
	}
	return false
}

// omitted reports whether the statement leaves the field out on purpose.
func omitted(stmt *gorm.Statement, field *managed) bool {
	if len(stmt.Omits) == 0 {
		return false
	}
	columns, _ := stmt.SelectAndOmitColumns(true, false)
	selected, named := columns[field.DBName]
	return named && !selected
}

// selectKey adds the field to a Select that does not name it: gorm would leave
// the key out, and the database would number the row in its own way.
func (fl *filling) selectKey(stmt *gorm.Statement, field *managed) {
	if len(stmt.Selects) == 0 {
		return
	}
	columns, restricted := stmt.SelectAndOmitColumns(true, false)
	if _, named := columns[field.DBName]; named || !restricted {
		return
	}
	if !fl.added {
		fl.selects, fl.added = stmt.Selects, true
	}
	stmt.Selects = append(slices.Clip(stmt.Selects), field.DBName)
}
