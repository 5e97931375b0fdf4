package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// filling is the state of one create statement, from the reservation of its keys
// to its end. It lies among the statement's clauses, under a name that gorm
// builds nothing for: unlike settings, clauses are not copied into the
// statements of associations, and putting one there costs no memory.
type filling struct {
	plan  *plan
	rows  rows
	parts []part
	// snapshot is what the router knew when it was decided which fields are to be
	// filled; nil without a router.
	snapshot *sharding.Snapshot
	table    *sharding.Table // of the snapshot; nil for one that is not sharded
	router   *sharding.Router
	inTx     bool // the statement is part of a transaction begun by others
	sent     bool // the INSERT may have reached the database
	refused  bool // its error proves that it wrote nothing

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
		if part.omit = fl.leaves(stmt, part.field); part.omit {
			continue
		}
		if part.slotted = carries(fl.table, part.field.DBName); part.slotted {
			continue // once the rows have their sharding keys
		}
		need := part.empty()
		from.give(part.field, &part.keys, need)
		if err := fl.draw(stmt.Context, part, need-part.keys.len()); err != nil {
			return err
		}
	}
	return nil
}

// draw takes n more keys from the field's generator.
func (fl *filling) draw(ctx context.Context, p *part, n int) error {
	if n <= 0 {
		return nil
	}
	return fl.patiently(ctx, func(ctx context.Context) error { return p.field.draw(ctx, &p.keys, n) })
}

// patiently draws keys. Inside a transaction it does not wait for ever.
func (fl *filling) patiently(ctx context.Context, draw func(context.Context) error) error {
	if !fl.inTx {
		return draw(ctx)
	}
	patient := &patient{Context: ctx}
	defer patient.end()
	err := draw(patient)
	if errors.Is(err, context.DeadlineExceeded) {
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
		if part.slotted {
			if err := fl.carry(stmt, part, hooks); err != nil {
				return err
			}
		}
		missing, err := part.assign(stmt.Context)
		if err == nil && !part.slotted && missing > 0 { // a hook emptied or added rows
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

// leaves reports whether the field is not to be filled: the caller leaves it out,
// or the database numbers it as long as the source of a migration serves.
func (fl *filling) leaves(stmt *gorm.Statement, field *managed) bool {
	return omitted(stmt, field) || isNumbered(fl.table, field.DBName)
}

// pin has the statement go by a snapshot.
func (fl *filling) pin(snapshot *sharding.Snapshot, table string) {
	fl.snapshot = snapshot
	fl.table, _ = snapshot.Lookup(table)
}

// follow changes which fields are filled when the table has moved since the
// statement began.
func (fl *filling) follow(stmt *gorm.Statement, now *sharding.Snapshot) {
	if fl.snapshot == now {
		return
	}
	fl.pin(now, stmt.Table)
	for i := range fl.parts {
		p := &fl.parts[i]
		p.slotted = carries(fl.table, p.field.DBName)
		if p.omit = fl.leaves(stmt, p.field); p.omit {
			p.takeBack(stmt.Context, func(k int) bool { return !p.isOwn(stmt.Context, k) })
			p.restart()
		}
	}
}

// retract undoes what assign has changed of the statement.
func (fl *filling) retract(stmt *gorm.Statement) {
	if fl.swapped {
		stmt.Schema, fl.swapped = fl.schema, false
	}
	if fl.conflict != nil {
		fl.conflict.restore(stmt)
		fl.conflict = nil
	}
	if fl.added {
		stmt.Selects, fl.added = fl.selects, false
	}
	fl.sent = false
}

// numbered reports whether the source of a migration numbers a managed field.
func (fl *filling) numbered() bool {
	return slices.ContainsFunc(fl.parts, func(p part) bool { return isNumbered(fl.table, p.field.DBName) })
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
