package gormplugin

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/shardid/shardid/keygen"
)

// filling is the state of one create statement, from the reservation of its
// ids to its end.
type filling struct {
	plan    *plan
	rows    rows
	ids     [][]int64 // per field: reserved and not yet assigned
	given   [][]int   // per field: rows that were given an id
	selects []string  // the statement's Selects before a key was added
	added   bool
	sent    bool // the INSERT may have reached the database
}

// stateKey finds a statement's filling in its settings. gorm copies settings
// into the statements of associations, so the statement is part of the key.
type stateKey struct{ stmt *gorm.Statement }

// fill holds the callbacks that give ids to new rows.
type fill struct {
	plans plans
}

// register puts the callbacks in their places: ids are reserved before gorm
// opens its default transaction, because a generator that shares the pool would
// wait for a connection that this very transaction holds; they are assigned
// after the model's own BeforeCreate hooks, which so have the last word.
func (f *fill) register(db *gorm.DB) error {
	create := db.Callback().Create()
	if err := create.Before("*").Register("shardid:reserve", f.reserve); err != nil {
		return err
	}
	if err := create.Before("gorm:create").Register("shardid:assign", f.assign); err != nil {
		return err
	}
	if err := create.Before("gorm:save_after_associations").Register("shardid:undo", f.undo); err != nil {
		return err
	}
	return create.After("*").Register("shardid:settle", f.settle)
}

// reserve draws ids for all rows that have none, in one call per field.
func (f *fill) reserve(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	p := f.plans.of(stmt.Schema)
	if p.err != nil {
		_ = db.AddError(p.err)
		return
	}
	if len(p.fields) == 0 {
		return
	}
	r, err := rowsOf(stmt)
	if err != nil {
		_ = db.AddError(err)
		return
	}
	fl := &filling{plan: p, rows: r, ids: make([][]int64, len(p.fields)), given: make([][]int, len(p.fields))}
	if err := fl.reserve(stmt); err != nil {
		_ = db.AddError(err)
		return
	}
	stmt.Settings.Store(stateKey{stmt}, fl)
}

func (fl *filling) reserve(stmt *gorm.Statement) error {
	for i, field := range fl.plan.fields {
		if omitted(stmt, field) {
			continue
		}
		n := fl.empty(stmt.Context, field)
		if n > 0 && fl.rows.many {
			return field.fail(ErrMapSlice)
		}
		ids, err := field.draw(stmt.Context, n)
		if err != nil {
			return err
		}
		fl.ids[i] = ids
	}
	return nil
}

// draw takes n ids from the field's generator and makes sure that they fit.
func (m managed) draw(ctx context.Context, n int) ([]int64, error) {
	if n == 0 {
		return nil, nil
	}
	ids := make([]int64, n)
	if err := keygen.Fill(ctx, m.gen, ids); err != nil {
		return nil, m.fail(err)
	}
	if !m.kind.Narrow() {
		return ids, nil
	}
	scratch := reflect.New(m.FieldType).Elem()
	for _, id := range ids {
		if err := m.kind.Set(scratch, id); err != nil {
			return nil, m.fail(err)
		}
	}
	return ids, nil
}

// assign gives the reserved ids to the rows that are still without.
func (f *fill) assign(db *gorm.DB) {
	fl := state(db)
	if fl == nil || db.Error != nil {
		return
	}
	for i := range fl.plan.fields {
		if err := fl.assign(db.Statement, i); err != nil {
			fl.takeBack(db.Statement.Context)
			_ = db.AddError(err)
			return
		}
	}
	fl.sent = !db.DryRun
}

func (fl *filling) assign(stmt *gorm.Statement, i int) error {
	field := fl.plan.fields[i]
	if omitted(stmt, field) {
		return nil
	}
	fl.selectKey(stmt, field)
	empty := fl.empty(stmt.Context, field)
	if more := empty - len(fl.ids[i]); more > 0 { // a hook emptied or added rows
		extra, err := field.draw(stmt.Context, more)
		if err != nil {
			return err
		}
		fl.ids[i] = append(fl.ids[i], extra...)
	}
	fl.given[i] = make([]int, 0, empty)
	for row := range fl.rows.len() {
		if !fl.rows.empty(stmt.Context, row, field) {
			continue
		}
		if err := fl.rows.set(stmt.Context, row, field, fl.ids[i][len(fl.given[i])]); err != nil {
			return field.fail(err)
		}
		fl.given[i] = append(fl.given[i], row)
	}
	return nil
}

// empty counts the rows that have no id in this field.
func (fl *filling) empty(ctx context.Context, field managed) (n int) {
	for row := range fl.rows.len() {
		if fl.rows.empty(ctx, row, field) {
			n++
		}
	}
	return n
}

// omitted reports whether the statement leaves the field out on purpose.
func omitted(stmt *gorm.Statement, field managed) bool {
	if len(stmt.Omits) == 0 {
		return false
	}
	columns, _ := stmt.SelectAndOmitColumns(true, false)
	selected, named := columns[field.DBName]
	return named && !selected
}

// selectKey adds the field to a Select that does not name it: gorm would leave the id
// out, and the database would number the row in its own way.
func (fl *filling) selectKey(stmt *gorm.Statement, field managed) {
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

// undo runs right after the INSERT.
func (f *fill) undo(db *gorm.DB) {
	if fl := state(db); fl != nil && db.Error != nil && fl.sent && wroteNothing(db, fl.rows.len()) {
		fl.takeBack(db.Statement.Context)
	}
}

// settle ends the statement's filling.
func (f *fill) settle(db *gorm.DB) {
	fl := state(db)
	if fl == nil {
		return
	}
	if fl.added {
		db.Statement.Selects = fl.selects
	}
	if db.DryRun {
		fl.takeBack(db.Statement.Context)
	}
	db.Statement.Settings.Delete(stateKey{db.Statement})
}

// takeBack empties the fields that were filled, so that the value can be used
// as if Create had not been called.
func (fl *filling) takeBack(ctx context.Context) {
	for i, given := range fl.given {
		for _, row := range given {
			fl.rows.clear(ctx, row, fl.plan.fields[i])
		}
		fl.given[i] = nil
	}
}

func state(db *gorm.DB) *filling {
	if fl, ok := db.Statement.Settings.Load(stateKey{db.Statement}); ok {
		return fl.(*filling)
	}
	return nil
}
