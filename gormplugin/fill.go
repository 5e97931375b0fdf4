// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
)

// fill has the callbacks that set the keys of new rows.
type fill struct {
	plans     *plans
	batches   batches
	mysql     bool // MySQL's and MariaDB's upserts react to every unique key
	returning bool // the database has RETURNING
	verify    bool
	routing   *routing // nil: no table is sharded
}

// register registers the callbacks. Keys are reserved before gorm opens its default
// transaction, because a generator that shares the pool could otherwise wait for a connection
// that the transaction holds. They are assigned after the model's own BeforeCreate hooks, so
// that the hooks may set the fields themselves.
func (f *fill) register(db *gorm.DB) error {
	assign, repair := filled(f.assign), filled(f.repair)
	before, after := assign, repair
	if f.routing != nil { // one callback each, because gorm does not keep the order of several
		before = func(db *gorm.DB) { assign(db); f.routing.hintCreate(db) }
		after = func(db *gorm.DB) { restoreContext(db); repair(db) }
	}
	create := db.Callback().Create()
	return errors.Join(
		create.Before("*").Register("shardid:reserve", f.reserve),
		create.Before("gorm:before_create").Register("shardid:enter", filled(func(db *gorm.DB, fl *filling) { fl.enter(db) })),
		create.Before("gorm:create").Register("shardid:assign", before),
		create.Before("gorm:save_after_associations").Register("shardid:repair", after),
		create.Before("gorm:commit_or_rollback_transaction").Register("shardid:judge", filled(recordFailure)),
		create.After("*").Register("shardid:settle", filled(f.settle)),
	)
}

// filled returns a callback for the statements that are filled.
func filled(do func(*gorm.DB, *filling)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		if fl := stateOf(db.Statement); fl != nil {
			do(db, fl)
		}
	}
}

// reserve draws keys for all rows without one.
func (f *fill) reserve(db *gorm.DB) {
	stmt := db.Statement
	delete(stmt.Clauses, stateName) // the state of a statement of which this one is a copy
	if db.Error != nil {
		return
	}
	c, _ := stmt.Context.Value(callKey{}).(*call)
	if c != nil && c.off {
		return
	}
	p := f.plan(stmt, c)
	if p == nil || p.err == nil && len(p.fields)+len(p.relations) == 0 {
		return
	}
	if err := f.begin(db, p, c != nil); err != nil {
		fail(db, err)
	}
}

// plan returns the plan of the model, nil if nothing is filled.
func (f *fill) plan(stmt *gorm.Statement, c *call) *plan {
	s := stmt.Schema
	if s == nil && len(f.plans.tables) > 0 {
		if _, ok := mapsOf(stmt.Dest); ok {
			s = f.plans.tables[stmt.Table]
		}
	}
	switch {
	case s == nil:
		return nil
	case c != nil:
		return f.plans.with(s, c.gen)
	}
	return f.plans.of(s)
}

// begin creates the state of the statement.
func (f *fill) begin(db *gorm.DB, p *plan, with bool) (err error) {
	if p.err != nil {
		return p.err
	}
	stmt := db.Statement
	var r rows
	if len(p.fields) > 0 {
		r, err = rowsOf(stmt)
	}
	fl := p.fillingOf(r)
	if err == nil {
		err = f.fetch(db, fl)
	}
	if err == nil && (len(p.fields) > 0 || fl.createScope != nil) {
		fl.attach(stmt, with)
		return nil
	}
	fl.clearKeys(stmt.Context)
	fl.release()
	return err
}

// fetch draws all keys whose number is known beforehand.
func (f *fill) fetch(db *gorm.DB, fl *filling) error {
	_, fl.inTx = db.Statement.ConnPool.(gorm.TxCommitter)
	err := f.findTable(fl, db.Statement)
	if err == nil {
		err = fl.reserve(db.Statement)
	}
	if err == nil {
		fl.createScope, err = f.drawForAssociations(db, fl)
	}
	if err == nil {
		err = fl.assign(db.Statement, true)
	}
	return err
}

// attach stores fl in the statement, and changes the context for statements that run inside it.
func (fl *filling) attach(stmt *gorm.Statement, with bool) {
	stmt.Clauses[stateName] = clause.Clause{Expression: fl}
	if !with && fl.createScope == nil {
		return
	}
	fl.context = stmt.Context
	if with {
		stmt.Context = context.WithValue(stmt.Context, callKey{}, nil) // inner statements follow their own tags
	}
	if fl.createScope != nil {
		stmt.Context = context.WithValue(stmt.Context, scopeKey{}, fl.createScope)
	}
}

// assign assigns the reserved keys to the rows that still have none, and makes gorm write them
// like keys that the caller had set.
func (f *fill) assign(db *gorm.DB, fl *filling) {
	stmt := db.Statement
	fl.schema, fl.selects = stmt.Schema, stmt.Selects
	if db.Error != nil {
		return
	}
	fl.followMove(stmt)
	if err := f.give(db, fl); err != nil {
		fail(db, err)
	}
}

// give assigns the keys and prepares the statement for them, with a copy of its schema. gorm parses
// the model again for each statement, so even a panic does not leave the copy in place.
func (f *fill) give(db *gorm.DB, fl *filling) error {
	stmt := db.Statement
	if err := fl.assign(stmt, false); err != nil {
		return err
	}
	numbered := func(p *keyColumn) bool { return p.numbered }
	switch {
	case len(fl.keyColumns) == 0:
	case fl.schema != nil && slices.ContainsFunc(fl.keyColumns, numbered):
		stmt.Schema = fl.plan.source
	case slices.ContainsFunc(fl.keyColumns, (*keyColumn).omits) || !fl.assignedAny() && f.returnsUpdated(stmt):
	case fl.rows.many || fl.schema == nil:
		stmt.Schema = fl.plan.maps
	default:
		stmt.Schema = fl.plan.withoutDefaults
	}
	fl.conflict = f.conflictOf(fl, stmt)
	fl.sent = !db.DryRun
	return nil
}

// resend is for a statement that the router refused because its table was switched meanwhile;
// nothing was written. It fills the rows by the router's present state and makes gorm build and
// send the statement again.
func (f *fill) resend(db *gorm.DB, fl *filling) {
	fl.restore(db.Statement)
	fl.conflict, fl.sent = nil, false
	sendAgain(db, func(db *gorm.DB) { f.assign(db, fl); f.routing.hintCreate(db) }, db.Callback().Create().Get("gorm:create"))
	restoreContext(db)
}

// findTable finds the statement's table as it is at the statement's begin.
func (f *fill) findTable(fl *filling, stmt *gorm.Statement) error {
	if f.routing == nil {
		return nil
	}
	fl.router = f.routing.router
	fl.table, _ = fl.router.Snapshot().Lookup(stmt.Table)
	if fl.table == nil || fl.inTx && len(fl.table.Map.Targets()) > 0 {
		return nil // a transaction may hold locks that a switch waits for
	}
	err := fl.router.Load(stmt.Context)
	fl.table, _ = fl.router.Snapshot().Lookup(stmt.Table)
	return err
}

// returnsUpdated returns true when gorm counts the rows of an upsert by the returned rows,
// although the database counts otherwise: MariaDB counts two for an updated row and none for a
// row that was already equal. Rows that all have their key are then written as without the
// plugin.
func (f *fill) returnsUpdated(stmt *gorm.Statement) bool {
	if !f.mysql || !f.returning {
		return false
	}
	on, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return on.UpdateAll || len(on.DoUpdates) > 0
}

// repair runs directly after the INSERT. It finds out which keys are in the table.
func (f *fill) repair(db *gorm.DB, fl *filling) {
	if f.routing != nil && (errors.Is(db.Error, sharding.ErrNotNumbered) || errors.Is(db.Error, writehint.ErrNumbered)) {
		f.resend(db, fl)
	}
	fl.restore(db.Statement)
	switch {
	case !fl.sent:
	case db.Error != nil:
		fl.refused = wroteNothing(db, fl.rows.len())
	case fl.conflict != nil && fl.conflict.resolve != nil:
		_ = db.AddError(fl.conflict.resolve(db))
	}
}

// settle ends the statement's filling.
func (f *fill) settle(db *gorm.DB, fl *filling) {
	stmt := db.Statement
	delete(stmt.Clauses, stateName)
	if fl.context != nil {
		stmt.Context = fl.context
	}
	for _, child := range fl.createScope.close() { // their rows are rolled back with those of the statement
		if fl.rolledBack(db) || db.DryRun {
			child.clearKeys(stmt.Context)
		}
		child.release()
	}
	undone := fl.isUndone(db)
	if undone {
		fl.clearKeys(stmt.Context)
	}
	if !fl.inTx || undone && db.Error == nil || !f.remember(db, fl) {
		fl.release()
	}
}

// remember stores the state of a statement where the end of the surrounding transaction is
// known. It returns false when it is not known.
func (f *fill) remember(db *gorm.DB, fl *filling) bool {
	if scope := scopeOf(db.Statement); scope != nil {
		scope.add(fl)
		return true
	}
	return f.batches.settle(db, fl)
}
