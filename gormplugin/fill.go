package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
)

// fill holds the callbacks that give keys to new rows.
type fill struct {
	plans     plans
	tables    map[string]*schema.Schema // registered, for maps without a model
	batches   batches
	free      sync.Pool // of *filling
	mysql     bool      // MySQL's and MariaDB's upserts react to every unique key
	returning bool      // the database has RETURNING
	verify    bool
	routing   *routing // nil: no table is sharded
}

func newFill(db *gorm.DB, c *Config) (*fill, error) {
	r, err := c.registry(db)
	if err != nil {
		return nil, err
	}
	f := &fill{
		plans:     plans{set: c.Generators, auto: c.Auto, models: r.tags},
		tables:    r.tables,
		free:      sync.Pool{New: func() any { return new(filling) }},
		mysql:     db.Dialector.Name() == "mysql",
		returning: slices.Contains(db.Callback().Create().Clauses, "RETURNING"),
		verify:    !c.NoVerify,
	}
	if c.Router != nil {
		f.routing = &routing{router: c.Router}
	}
	return f, nil
}

// register puts the callbacks in their places. Keys are reserved before gorm
// opens its default transaction, because a generator that shares the pool would
// wait for a connection that this very transaction holds; they are assigned
// after the model's own BeforeCreate hooks, which so have the last word.
func (f *fill) register(db *gorm.DB) error {
	assign, repair := f.assign, f.repair
	if f.routing != nil { // in one callback each: gorm sorts those after each other by chance
		assign = func(db *gorm.DB) { f.assign(db); f.routing.created(db) }
		repair = func(db *gorm.DB) { told(db); f.repair(db) }
	}
	create := db.Callback().Create()
	return errors.Join(
		create.Before("*").Register("shardid:reserve", f.reserve),
		create.Before("gorm:create").Register("shardid:assign", assign),
		create.Before("gorm:save_after_associations").Register("shardid:repair", repair),
		create.Before("gorm:commit_or_rollback_transaction").Register("shardid:judge", f.judge),
		create.After("*").Register("shardid:settle", f.settle),
	)
}

// reserve draws keys for all rows that have none.
func (f *fill) reserve(db *gorm.DB) {
	stmt := db.Statement
	if len(stmt.Clauses) > 0 {
		delete(stmt.Clauses, stateName) // of a statement that this one is a copy of
	}
	if db.Error != nil {
		return
	}
	call := callOf(stmt.Context)
	if call != nil && call.off {
		return
	}
	p := f.plan(stmt, call)
	if p == nil || p.err == nil && len(p.fields)+len(p.kids) == 0 {
		return
	}
	if err := f.begin(db, p, call != nil); err != nil {
		_ = db.AddError(err)
	}
}

// plan returns what is to be filled, nil if nothing is.
func (f *fill) plan(stmt *gorm.Statement, c *call) *plan {
	s := stmt.Schema
	if s == nil && len(f.tables) > 0 {
		if _, ok := mapsOf(stmt.Dest); ok {
			s = f.tables[stmt.Table]
		}
	}
	switch {
	case s == nil:
		return nil
	case c != nil:
		return f.plans.with(s, &c.gen)
	}
	return f.plans.of(s)
}

// begin makes and keeps the statement's state.
func (f *fill) begin(db *gorm.DB, p *plan, with bool) error {
	if p.err != nil {
		return p.err
	}
	stmt := db.Statement
	var r rows
	var err error
	if len(p.fields) > 0 {
		if r, err = rowsOf(stmt); err != nil && !(errors.Is(err, ErrNotAddressable) && r.keyed(p.fields)) {
			return err
		}
	}
	fl := f.free.Get().(*filling)
	fl.reset(p, r)
	fl.inTx = isTx(stmt.ConnPool)
	if err = f.pin(fl, stmt); err == nil {
		err = f.fetch(db, fl)
	}
	if err != nil {
		fl.takeBack(stmt.Context)
		f.release(fl)
		return err
	}
	if len(p.fields) > 0 || fl.family != nil {
		fl.enter(stmt, with)
	} else {
		f.release(fl)
	}
	return nil
}

// isTx reports whether a statement runs in a transaction.
func isTx(c gorm.ConnPool) bool {
	if _, pool := c.(*sql.DB); pool { // asking it for a method that it lacks takes longest
		return false
	}
	_, ok := c.(gorm.TxCommitter)
	return ok
}

// fetch draws all keys that can be foreseen.
func (f *fill) fetch(db *gorm.DB, fl *filling) error {
	err := fl.reserve(db.Statement)
	if err == nil {
		fl.family, err = f.stock(db, fl.plan, fl.inTx)
	}
	if err == nil {
		err = fl.assign(db.Statement, true)
	}
	return err
}

// enter keeps fl with the statement, and changes the context for what runs
// inside it.
func (fl *filling) enter(stmt *gorm.Statement, with bool) {
	stmt.Clauses[stateName] = clause.Clause{Expression: fl}
	if !with && fl.family == nil {
		return
	}
	fl.context = stmt.Context
	if with {
		stmt.Context = inner(stmt.Context)
	}
	if fl.family != nil {
		stmt.Context = context.WithValue(stmt.Context, familyKey{}, fl.family)
	}
}

func (f *fill) release(fl *filling) {
	fl.forget()
	f.free.Put(fl)
}

// assign gives the reserved keys to the rows that are still without, and has
// gorm write them as it writes keys that were there from the beginning.
func (f *fill) assign(db *gorm.DB) {
	stmt := db.Statement
	fl := stateOf(stmt)
	if fl == nil || db.Error != nil {
		return
	}
	if f.routing != nil {
		fl.follow(stmt, f.routing.router.Snapshot())
	}
	if err := f.give(db, fl); err != nil {
		_ = db.AddError(err)
	}
}

// give assigns the keys and prepares the statement for them.
func (f *fill) give(db *gorm.DB, fl *filling) error {
	stmt := db.Statement
	if err := fl.assign(stmt, false); err != nil {
		return err
	}
	fl.schema = stmt.Schema
	switch {
	case len(fl.parts) == 0:
	case fl.schema != nil && fl.numbered():
		fl.swapped, stmt.Schema = true, fl.plan.source
	case !fl.omits() && (fl.gave() || !f.returnsUpdated(stmt)):
		fl.swap(stmt)
	}
	fl.conflict = f.meet(fl, stmt)
	fl.sent = !db.DryRun
	return nil
}

// again fills the rows of a statement that a migration's switch has overtaken, by what
// the router knows now, and has gorm write and send it once more. It has done nothing.
func (f *fill) again(db *gorm.DB, fl *filling) {
	stmt := db.Statement
	fl.retract(stmt)
	fl.follow(stmt, f.routing.router.Snapshot())
	db.Error = f.give(db, fl)
	if db.Error != nil {
		return
	}
	stmt.SQL.Reset()
	stmt.Vars = nil
	f.routing.created(db)
	db.Callback().Create().Get("gorm:create")(db)
	told(db)
}

// pin has the statement go by what the router knows when it begins.
func (f *fill) pin(fl *filling, stmt *gorm.Statement) error {
	if f.routing == nil {
		return nil
	}
	fl.router = f.routing.router
	fl.pin(fl.router.Snapshot(), stmt.Table)
	if fl.table == nil || isTx(stmt.ConnPool) && len(fl.table.Map.Targets()) > 0 {
		return nil // a transaction may hold locks that a switch waits for
	}
	if err := fl.router.Load(stmt.Context); err != nil {
		return err
	}
	if now := fl.router.Snapshot(); now != fl.snapshot {
		fl.pin(now, stmt.Table)
	}
	return nil
}

// returnsUpdated reports whether gorm counts the rows of an upsert by what comes
// back, although the database would count otherwise: MariaDB says two for an
// updated row and none for one that was as it is to be. Rows that all have their
// key are written as ever then.
func (f *fill) returnsUpdated(stmt *gorm.Statement) bool {
	if !f.mysql || !f.returning {
		return false
	}
	on, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return on.UpdateAll || len(on.DoUpdates) > 0
}

// swap puts the private schema in place of the statement's. Execute parses the
// model anew for each statement, so that not even a panic lets it get away.
func (fl *filling) swap(stmt *gorm.Statement) {
	fl.swapped = true
	stmt.Schema = fl.plan.private
	if fl.rows.many || fl.schema == nil {
		stmt.Schema = fl.plan.maps
	}
}

// repair runs right after the INSERT: it finds out which keys are in the table.
func (f *fill) repair(db *gorm.DB) {
	stmt := db.Statement
	fl := stateOf(stmt)
	if fl == nil {
		return
	}
	if f.routing != nil && (errors.Is(db.Error, sharding.ErrNotNumbered) || errors.Is(db.Error, writehint.ErrNumbered)) {
		f.again(db, fl)
	}
	if fl.swapped {
		stmt.Schema = fl.schema
	}
	if fl.conflict != nil {
		fl.conflict.restore(stmt)
	}
	switch {
	case !fl.sent:
	case db.Error != nil:
		fl.refused = wroteNothing(db, fl.rows.len())
	case fl.conflict != nil:
		if err := fl.conflict.resolve(db); err != nil {
			_ = db.AddError(err)
		}
	}
}

// settle ends the statement's filling.
func (f *fill) settle(db *gorm.DB) {
	stmt := db.Statement
	fl := stateOf(stmt)
	if fl == nil {
		return
	}
	delete(stmt.Clauses, stateName)
	if fl.added {
		stmt.Selects = fl.selects
	}
	if fl.context != nil {
		stmt.Context = fl.context
	}
	if fl.family != nil {
		f.end(fl, db)
	}
	undone := fl.isUndone(db)
	if undone {
		fl.takeBack(stmt.Context)
	}
	if !fl.inTx || undone && db.Error == nil || !f.remember(db, fl) {
		f.release(fl)
	}
}

// end takes the keys back from the rows of the family when the transaction they
// were in was rolled back.
func (f *fill) end(head *filling, db *gorm.DB) {
	for _, child := range head.family.leave() {
		if head.rolledBack(db) || db.DryRun {
			child.takeBack(db.Statement.Context)
		}
		f.release(child)
	}
}

// remember keeps the state of a statement for those who know how the transaction
// around it ends; false when nobody does.
func (f *fill) remember(db *gorm.DB, fl *filling) bool {
	if family := familyOf(db.Statement.Context); family != nil {
		if db.Error == nil || fl.gave() {
			family.add(fl)
			return true
		}
		return false
	}
	return f.batches.settle(db, fl)
}
