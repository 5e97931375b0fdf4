// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// routing passes information to package shardsql, which sees only the texts of statements: the
// sharding keys of models that a statement identifies by their primary keys, and which rows are
// new. It is a gorm plugin of its own, because it belongs to one *gorm.DB. It is immutable
// after its installation.
type routing struct {
	router *sharding.Router
	home   *sql.DB // the pool that the *gorm.DB was opened with
}

const routingName = pluginName + ":routing"

// Name returns "shardid:routing".
func (r *routing) Name() string { return routingName }

// maxIdle bounds the idle connections in the pool of the routed database. Each is a few words
// of memory, and holds no connection of an underlying database.
const maxIdle = 256

// install replaces the pool that db was opened with by the router's databases. The former pool
// remains the home of all other tables.
func (r *routing) install(db *gorm.DB, c *Config) error {
	pool := db.ConnPool
	prepared, cached := pool.(*gorm.PreparedStmtDB)
	if cached {
		pool = prepared.ConnPool
	}
	home, ok := pool.(*sql.DB)
	if !ok {
		return fmt.Errorf("a Router needs a *gorm.DB that was opened with a *sql.DB, not with a %T", db.ConnPool)
	}
	if db.Callback().Create().Get("gorm:db_resolver") != nil {
		return errors.New("dbresolver is in use already, and would choose connections before statements are routed; call Use with this plugin first")
	}
	engine := shardsql.Config{Router: c.Router, Home: home, Replicas: c.Replicas, Observer: c.Observer}
	if err := engine.Check(); err != nil {
		return err
	}
	routed := shardsql.OpenDB(engine)
	routed.SetMaxIdleConns(maxIdle)
	db.ConnPool = routed
	if cached {
		prepared.ConnPool, db.ConnPool = routed, prepared
	}
	db.Statement.ConnPool = db.ConnPool
	r.home = home
	if _, again := db.Plugins[routingName]; again { // dbresolver initializes all plugins for each database that it opens
		return r.Initialize(db)
	}
	return db.Use(r)
}

// Initialize registers the callbacks, except those that fill registers for creates.
func (r *routing) Initialize(db *gorm.DB) error {
	cb := db.Callback()
	return errors.Join(
		cb.Create().After("gorm:save_after_associations").Register("shardid:omit", r.hintOmit),
		cb.Update().After("gorm:save_after_associations").Register("shardid:omit", r.hintOmit),
		cb.Update().Before("gorm:update").Register("shardid:tell", r.hintWrite),
		cb.Update().Before("gorm:save_after_associations").Register("shardid:overtaken", r.overtaken(r.hintWrite, cb.Update().Get, "gorm:update")),
		cb.Update().After("gorm:update").Register("shardid:told", restoreContext),
		cb.Delete().Before("gorm:delete").Register("shardid:tell", r.hintWrite),
		cb.Delete().Before("gorm:after_delete").Register("shardid:overtaken", r.overtaken(r.hintWrite, cb.Delete().Get, "gorm:delete")),
		cb.Delete().After("gorm:delete").Register("shardid:told", restoreContext),
		cb.Query().Before("gorm:query").Register("shardid:tell", r.read),
		cb.Query().Before("gorm:preload").Register("shardid:overtaken", r.overtaken(r.read, cb.Query().Get, "gorm:query")),
		cb.Query().After("gorm:query").Register("shardid:told", restoreContext),
		cb.Row().Before("gorm:row").Register("shardid:tell", r.read),
		cb.Row().After("gorm:row").Register("shardid:told", restoreContext),
		cb.Raw().After("gorm:raw").Register("shardid:told", restoreContext),
	)
}

// hintCreate adds the hint which rows of a create are new.
func (r *routing) hintCreate(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || !r.isRouted(stmt.Table) {
		return
	}
	t, refusal := r.keyed(stmt)
	if refusal != nil && t.Origin() == nil {
		fail(db, refusal)
		return
	}
	h := writehint.Hint{Refusal: refusal}
	if fl := stateOf(stmt); fl != nil {
		h.Column, h.Fresh = fl.freshRows()
		h.Fills = slices.ContainsFunc(fl.keyColumns, func(p *keyColumn) bool { return p.numbered && !p.leftOut })
	}
	passHint(db, h)
}

// hintWrite adds a condition on the sharding keys of the models that an update or a delete names. A
// delete may name a value and a model; the first of them that has keys counts.
func (r *routing) hintWrite(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || !r.isRouted(stmt.Table) {
		return
	}
	keyed, later := r.addKeys(stmt, stmt.ReflectValue)
	if both := stmt.ReflectValue.CanAddr() && stmt.Model != nil && stmt.Dest != stmt.Model; both && !keyed && !later {
		keyed, later = r.addKeys(stmt, reflect.Indirect(reflect.ValueOf(stmt.Model))) // gorm uses its primary key, too
	}
	saveContext(stmt).undo = r.keysBefore(stmt)
	passHint(db, writehint.Hint{Keyed: keyed, Model: stmt.Schema != nil, Completes: later})
}

// read adds a condition on the sharding key of the model whose primary key a query uses.
func (r *routing) read(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil {
		return
	}
	if _, write := stmt.Settings.Load("gorm:db_resolver:write"); write { // dbresolver's own setting
		replaceContext(sharding.Primary(stmt.Context), stmt)
	}
	if stmt.ReflectValue.Kind() == reflect.Struct {
		if _, later := r.addKeys(stmt, stmt.ReflectValue); later {
			passHint(db, writehint.Hint{Completes: true})
		}
	}
}

// overtaken returns a callback that sends a statement again which the switch of a migration has overtaken: gorm
// built it while the source served the table, so it lacks the condition on the sharding keys of its
// models, and the shards refused it. Nothing was written. tell gives the statement this condition, and
// get returns gorm's callback of this name, which builds and sends it.
func (r *routing) overtaken(tell func(*gorm.DB), get func(string) func(*gorm.DB), name string) func(*gorm.DB) {
	return func(db *gorm.DB) {
		stmt := db.Statement
		var refusal *sharding.RouteError
		if db.Error == nil || !errors.As(db.Error, &refusal) || !writehint.Of(stmt.Context, stmt.Table).Completes || len(stmt.Joins) > 0 {
			return // gorm would add joins twice
		}
		if t, ok := r.router.Snapshot().Lookup(stmt.Table); !ok || t.Origin() != nil {
			return
		}
		restoreContext(db)
		sendAgain(db, tell, get(name))
	}
}

// sendAgain makes gorm build and send a statement again of which nothing was written.
func sendAgain(db *gorm.DB, tell, send func(*gorm.DB)) {
	db.Error = nil
	db.Statement.SQL.Reset()
	db.Statement.Vars = nil
	tell(db)
	send(db)
}

// isRouted returns true when the router knows the table.
func (r *routing) isRouted(table string) bool {
	_, sharded := r.router.Snapshot().Lookup(table)
	return sharded || r.router.IsBroadcast(table)
}

// freshRows returns the indexes of the rows for which an id was generated just now, and its
// column: the primary key if there are several.
func (fl *filling) freshRows() (column string, numbers []int) {
	var of *keyColumn
	for _, p := range fl.keyColumns {
		if p.used() > 0 && (of == nil || p.field.PrimaryKey && !of.field.PrimaryKey) {
			of = p
		}
	}
	if of == nil {
		return "", nil
	}
	return of.field.DBName, slices.Sorted(slices.Values(of.assignedRows))
}

// passHint puts a hint for shardsql into the statement's context.
func passHint(db *gorm.DB, h writehint.Hint) {
	h.Table = db.Statement.Table
	_, h.Single = db.InstanceGet("gorm:started_transaction")
	replaceContext(writehint.With(db.Statement.Context, h), db.Statement)
}

// contextName is the name of a statement's own context among its clauses, which are not copied
// into other statements.
const contextName = "shardid:context"

// savedContext is a statement's own context, the one with a hint that replaces it, and a function that
// undoes a change of the sharding key in its model.
type savedContext struct {
	context.Context                 //nolint:containedctx // it is put back
	hinted          context.Context //nolint:containedctx // to be recognized
	undo            func()
}

// Build writes nothing.
func (*savedContext) Build(clause.Builder) {}

func saveContext(stmt *gorm.Statement) *savedContext {
	own, already := stmt.Clauses[contextName].Expression.(*savedContext)
	if !already {
		own = &savedContext{Context: stmt.Context}
		stmt.Clauses[contextName] = clause.Clause{Expression: own}
	}
	return own
}

// replaceContext gives the statement another context, until restoreContext, until restoreContext.
func replaceContext(hinted context.Context, stmt *gorm.Statement) {
	saveContext(stmt).hinted = hinted
	stmt.Context = hinted
}

// restoreContext restores the statement's own context, unless another plugin has put one around it,
// which that plugin looks for later: then it only ends the hint. If a change of the sharding key was
// refused, it restores the model, too. It applies gorm's translation of errors to the error of a shard.
func restoreContext(db *gorm.DB) {
	stmt := db.Statement
	if own, ok := stmt.Clauses[contextName].Expression.(*savedContext); ok {
		if own.hinted != nil && stmt.Context == own.hinted {
			stmt.Context = own.Context
		}
		writehint.End(own.hinted)
		delete(stmt.Clauses, contextName)
		if own.undo != nil && errors.Is(db.Error, sharding.ErrKeyChange) {
			own.undo()
		}
	}
	shard, ok := db.Error.(*sharding.ShardError) //nolint:errorlint // one within another error is gorm's
	if t, translates := db.Dialector.(gorm.ErrorTranslator); ok && translates && db.TranslateError {
		db.Error = &sharding.ShardError{Target: shard.Target, Err: t.Translate(shard.Err)} // translators know only the driver's own error
	}
}

// isNumbered returns true when the source of a migration numbers a table's column and still
// serves the table.
func isNumbered(t *sharding.Table, column string) bool {
	return t != nil && t.Origin() != nil && strings.EqualFold(t.Origin().Numbered, column)
}
