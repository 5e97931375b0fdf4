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

// routing tells the engine below gorm, which reads texts, what only gorm knows: the
// sharding keys of models that a statement names by their primary keys, and which rows
// are new. It is a plugin of its own, beside that which installs it, as it belongs to
// one *gorm.DB. It is immutable once installed.
type routing struct {
	router *sharding.Router
	home   *sql.DB // what the *gorm.DB was opened with
}

const routingName = pluginName + ":routing"

// Name returns "shardid:routing".
func (r *routing) Name() string { return routingName }

// maxIdle bounds the connections that the pool of the routed database keeps. They are
// a few words each, and hold no connection of the databases behind them.
const maxIdle = 256

// install puts the databases of the router in place of the pool that db was opened
// with, which stays the home of all other tables.
func (r *routing) install(db *gorm.DB, c *Config) error {
	home, prepared := homeOf(db)
	if home == nil {
		return fmt.Errorf("a Router needs a *gorm.DB that was opened with a *sql.DB, not with a %T", db.ConnPool)
	}
	if db.Callback().Create().Get("gorm:db_resolver") != nil {
		return errors.New("dbresolver is in use already, and would choose connections before statements are routed; give this plugin to Use before it")
	}
	engine := shardsql.Config{Router: c.Router, Home: home, Replicas: c.Replicas}
	if err := engine.Check(); err != nil {
		return err
	}
	routed := shardsql.OpenDB(engine)
	routed.SetMaxIdleConns(maxIdle)
	db.ConnPool = routed
	if prepared != nil {
		prepared.ConnPool, db.ConnPool = routed, prepared
	}
	db.Statement.ConnPool = db.ConnPool
	r.home = home
	if _, again := db.Plugins[routingName]; again { // dbresolver initializes plugins for each database that it opens
		return r.Initialize(db)
	}
	return db.Use(r)
}

// homeOf returns the *sql.DB that db was opened with, and gorm's cache of prepared
// statements before it if there is one.
func homeOf(db *gorm.DB) (home *sql.DB, prepared *gorm.PreparedStmtDB) {
	c := db.ConnPool
	if p, ok := c.(*gorm.PreparedStmtDB); ok {
		c, prepared = p.ConnPool, p
	}
	home, _ = c.(*sql.DB)
	return home, prepared
}

// Initialize registers the callbacks, but those of creates, which are beside the filling.
func (r *routing) Initialize(db *gorm.DB) error {
	cb := db.Callback()
	return errors.Join(
		cb.Update().Before("gorm:update").Register("shardid:tell", r.changed),
		cb.Update().After("gorm:update").Register("shardid:told", told),
		cb.Delete().Before("gorm:delete").Register("shardid:tell", r.changed),
		cb.Delete().After("gorm:delete").Register("shardid:told", told),
		cb.Query().Before("gorm:query").Register("shardid:tell", r.read),
		cb.Query().After("gorm:query").Register("shardid:told", told),
		cb.Row().Before("gorm:row").Register("shardid:tell", r.read),
		cb.Row().After("gorm:row").Register("shardid:told", told),
		cb.Raw().After("gorm:raw").Register("shardid:told", told),
	)
}

// created says which rows of a create are new.
func (r *routing) created(db *gorm.DB) {
	if db.Error != nil || !r.knows(db.Statement.Table) {
		return
	}
	if err := r.keyed(db.Statement); err != nil {
		_ = db.AddError(err) // it is db's now
		return
	}
	column, fresh := freshRows(db.Statement)
	tell(db, writehint.Hint{Fresh: fresh, Column: column, Completes: numbersLater(db.Statement)})
}

// changed adds the sharding keys of the models that an update or a delete names.
func (r *routing) changed(db *gorm.DB) {
	if db.Error != nil || !r.knows(db.Statement.Table) {
		return
	}
	keyed, later := r.addKeys(db.Statement)
	keep(db.Statement, r.keysBefore(db.Statement))
	tell(db, writehint.Hint{Keyed: keyed, Model: db.Statement.Schema != nil, Completes: later})
}

// read adds the sharding key of the model whose primary key a query goes by.
func (r *routing) read(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil {
		return
	}
	if _, write := stmt.Settings.Load("gorm:db_resolver:write"); write { // dbresolver's own setting
		keep(stmt, nil)
		stmt.Context = sharding.Primary(stmt.Context)
	}
	if r.knows(stmt.Table) && stmt.ReflectValue.Kind() == reflect.Struct {
		if _, later := r.addKeys(stmt); later {
			tell(db, writehint.Hint{Completes: true})
		}
	}
}

// knows reports whether the router knows the table.
func (r *routing) knows(table string) bool {
	if table == "" {
		return false
	}
	_, sharded := r.router.Snapshot().Lookup(table)
	return sharded || r.router.IsBroadcast(table)
}

// freshRows returns the numbers of the rows of which a generator made an id just now,
// and its column: that of the primary key if it made several.
func freshRows(stmt *gorm.Statement) (column string, numbers []int) {
	fl := stateOf(stmt)
	if fl == nil {
		return "", nil
	}
	var of *part
	for i := range fl.parts {
		if p := &fl.parts[i]; p.used() > 0 && (of == nil || p.field.PrimaryKey && !of.field.PrimaryKey) {
			of = p
		}
	}
	if of == nil {
		return "", nil
	}
	return of.field.DBName, slices.Sorted(slices.Values(of.given))
}

// tell gives the engine a hint about the statement in its context, until told puts the
// context back.
func tell(db *gorm.DB, h writehint.Hint) {
	stmt := db.Statement
	h.Table = stmt.Table
	if h.Single = isTx(stmt.ConnPool); h.Single {
		_, h.Single = db.InstanceGet("gorm:started_transaction")
	}
	if len(h.Fresh) == 0 && !h.Keyed && !h.Model && !h.Single && !h.Completes {
		return
	}
	keep(stmt, nil)
	stmt.Context = writehint.With(stmt.Context, h)
}

// contextName is where a statement's own context lies among its clauses: these are not
// copied into other statements.
const contextName = "shardid:context"

// kept is a statement's own context, and what undoes a change of the sharding key in
// its model.
type kept struct {
	context.Context //nolint:containedctx // it is put back
	undo            func()
}

// Build writes nothing.
func (kept) Build(clause.Builder) {}

func keep(stmt *gorm.Statement, undo func()) {
	if _, already := stmt.Clauses[contextName]; !already {
		stmt.Clauses[contextName] = clause.Clause{Expression: kept{stmt.Context, undo}}
	}
}

// told puts the statement's own context back, and sees to how it failed.
func told(db *gorm.DB) {
	stmt := db.Statement
	if own, ok := stmt.Clauses[contextName].Expression.(kept); ok {
		stmt.Context = own.Context
		delete(stmt.Clauses, contextName)
		restore(db, own.undo)
	}
	translate(db)
}

// isNumbered reports whether a table's column is numbered by the source of a
// migration, which still serves it.
func isNumbered(t *sharding.Table, column string) bool {
	return t != nil && t.Origin() != nil && strings.EqualFold(t.Origin().Numbered, column)
}

// numbersLater reports whether a generator makes a key of the rows as soon as the source
// of a migration does not number them.
func numbersLater(stmt *gorm.Statement) bool {
	fl := stateOf(stmt)
	return fl != nil && fl.numbered()
}

// translate does what gorm does with errors of a database where they are those of a
// shard: gorm's translators know the driver's own error only.
func translate(db *gorm.DB) {
	shard, ok := db.Error.(*sharding.ShardError) //nolint:errorlint // one within another error is gorm's
	if !ok || !db.TranslateError {
		return
	}
	if t, ok := db.Dialector.(gorm.ErrorTranslator); ok {
		db.Error = &sharding.ShardError{Target: shard.Target, Err: t.Translate(shard.Err)}
	}
}
