package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// routing points statements on sharded tables at their shards. It is immutable
// once installed.
type routing struct {
	router   *sharding.Router
	guard    *guard
	home     *sql.DB
	pool     *pool
	replicas replicas
	prepared prepared
	texts    fragments
	defined  sync.Map // of sharding.Target to definition
	quote    func(name string) string
	seen     atomic.Pointer[view] // of the snapshot that was asked for last
	mysql    bool
	fill     *fill
}

func (r *routing) limits() sharding.Limits { return r.router.Limits() }

func (r *routing) bestEffort() bool { return r.router.TxMode() == sharding.BestEffort }

// install puts the router into db: a pool that guards and binds, and around
// each of gorm's core callbacks the one that routes. The core callbacks are the
// right place, as hooks and associations, which run their own statements, are
// outside of them.
func install(db *gorm.DB, c *Config, f *fill) error {
	home, prepares := homeOf(db)
	if home == nil {
		return fmt.Errorf("a Router needs a *gorm.DB that was opened with a *sql.DB, not with a %T", db.ConnPool)
	}
	if db.Callback().Create().Get("gorm:db_resolver") != nil {
		return errors.New("dbresolver is in use already, and would choose connections before statements are routed; give this plugin to Use before it")
	}
	g, err := newGuard(db.Dialector.Name(), c.Router)
	if err != nil {
		return err
	}
	r := &routing{
		router: c.Router, guard: &g, texts: newFragments(g.readings[0]), mysql: db.Dialector.Name() == "mysql", home: home, fill: f,
		prepared: prepared{size: db.PrepareStmtMaxSize, ttl: db.PrepareStmtTTL, of: map[*sql.DB]*gorm.PreparedStmtDB{}},
	}
	if r.replicas, err = newReplicas(c); err != nil {
		return err
	}
	r.pool = &pool{home: home, guard: &g, spans: r.bestEffort(), names: r.nameOf, prepares: prepares}
	stmt := &gorm.Statement{DB: db}
	r.quote = func(name string) string { return stmt.Quote(clause.Table{Name: name}) }
	if err := r.register(db); err != nil {
		return err
	}
	db.ClauseBuilders["INSERT"] = insertBuilder(db.ClauseBuilders["INSERT"])
	db.ClauseBuilders["UPDATE"] = updateBuilder(db.ClauseBuilders["UPDATE"])
	db.ClauseBuilders["WHERE"] = whereBuilder(db.ClauseBuilders["WHERE"])
	db.ClauseBuilders["FROM"] = fromBuilder(db.ClauseBuilders["FROM"])
	db.ClauseBuilders["VALUES"] = valuesBuilder(db.ClauseBuilders["VALUES"])
	db.ConnPool = r.pool
	db.Statement.ConnPool = db.ConnPool
	return nil
}

// homeOf returns the *sql.DB that db was opened with, and whether gorm prepares
// its statements.
func homeOf(db *gorm.DB) (home *sql.DB, prepares bool) {
	c := db.ConnPool
	if p, ok := c.(*gorm.PreparedStmtDB); ok {
		c, prepares = p.ConnPool, true
	}
	home, _ = c.(*sql.DB)
	return home, prepares
}

const homeName = "home"

// nameOf returns the router's name of a database.
func (r *routing) nameOf(db *sql.DB) string {
	for _, name := range r.router.Databases() {
		if r.router.DB(name) == db {
			return name
		}
	}
	return homeName
}

func (r *routing) register(db *gorm.DB) error {
	cb := db.Callback()
	return errors.Join(
		cb.Create().Replace("gorm:create", r.around("create", cb.Create().Get("gorm:create"))),
		cb.Query().Replace("gorm:query", r.around("query", cb.Query().Get("gorm:query"))),
		cb.Update().Replace("gorm:update", r.around("update", cb.Update().Get("gorm:update"))),
		cb.Delete().Replace("gorm:delete", r.around("delete", cb.Delete().Get("gorm:delete"))),
		cb.Row().Replace("gorm:row", r.around("row", cb.Row().Get("gorm:row"))),
		cb.Raw().Replace("gorm:raw", r.around("raw", cb.Raw().Get("gorm:raw"))),
	)
}

// around returns the callback that routes a statement and then runs core.
func (r *routing) around(op string, core func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		if db.Error != nil {
			core(db)
			return
		}
		if err := r.run(op, db, core); err != nil {
			_ = db.AddError(err)
		}
		if db.Error != nil {
			db.Error = sharding.SlotMoving(db.Error)
		}
		if op == "row" {
			keepRow(db)
		}
	}
}

// keepRow gives gorm's Row, which drops errors and returns nil, a row that
// carries our refusal.
func keepRow(db *gorm.DB) {
	var refused *sharding.RouteError
	if wantsRows, _ := db.Get("rows"); wantsRows == true || !errors.As(db.Error, &refused) {
		return
	}
	if _, ok := db.Statement.Dest.(*sql.Row); !ok {
		db.Statement.Dest = errorRow(refused)
	}
}

func (r *routing) run(op string, db *gorm.DB, core func(*gorm.DB)) error {
	stmt := db.Statement
	if err := r.unwritten(op, stmt); err != nil {
		return err
	}
	before := stmt.ConnPool
	defer func() { stmt.ConnPool = before }()
	next, err := r.conn(before)
	if err != nil {
		return err
	}
	return r.execute(op, db, core, next)
}

// unwritten refuses a query that another plugin had gorm write before it could be
// routed, as caches of queries do, which replace gorm's callback and go by the text.
// On the source of a migration it would pass, and fail after the switch.
func (r *routing) unwritten(op string, stmt *gorm.Statement) error {
	if op != "query" || stmt.SQL.Len() == 0 {
		return nil
	}
	_, selects := stmt.Clauses["SELECT"].Expression.(clause.Select)
	_, reads := stmt.Clauses["FROM"].Expression.(clause.From)
	t := r.guard.table(stmt.Table)
	if t == nil || !selects || !reads || sharding.HintOf(stmt.Context).Unsharded {
		return nil
	}
	return &sharding.RouteError{
		Op: op, Table: t.Name, Err: sharding.ErrRawTable,
		Hint: "another plugin has written the statement before it could be routed, as caches of queries do; give that plugin to Use before this one",
	}
}

// send plans the statement and has gorm build and send it.
func (r *routing) send(op string, db *gorm.DB, core func(*gorm.DB), next conn, snapshot *sharding.Snapshot) error {
	stmt := db.Statement
	hint := sharding.HintOf(stmt.Context)
	table := r.sharded(op, stmt, snapshot)
	if table == nil || hint.Unsharded || isSubquery(stmt) {
		stmt.ConnPool = r.unrouted(op, stmt, next, hint, snapshot)
		core(db)
		return nil
	}
	at, err := r.origin(table.table, next, hint, snapshot)
	if err != nil {
		return err
	}
	if at != nil {
		stmt.ConnPool = at
		core(db)
		return nil
	}
	s := &step{sharded: table, stmt: stmt, op: op, next: next, hint: said(hint)}
	return s.run(db, core)
}

// said returns the hint, nil when it says nothing.
func said(hint sharding.Hint) *sharding.Hint {
	if !hint.Placed() && !hint.All && !hint.Primary {
		return nil
	}
	kept := hint // only here it takes memory
	return &kept
}

// unrouted returns the connection for a statement that is on no sharded table,
// or that was written by hand.
func (r *routing) unrouted(op string, stmt *gorm.Statement, next conn, hint sharding.Hint, snapshot *sharding.Snapshot) gorm.ConnPool {
	switch {
	case hint.Unsharded:
		return unsplit{next: next, db: r.homeFor(next)}
	case (hint.Placed() || hint.All) && stmt.SQL.Len() > 0:
		return &rawStep{r, stmt, next, hint, snapshot}
	}
	if c := r.broadcast(op, stmt, next); c != nil {
		return c
	}
	return next
}

// conn returns what the statement was going to run on.
func (r *routing) conn(c gorm.ConnPool) (conn, error) {
	switch c := c.(type) {
	case *pool:
		return r.preparing(c, c.prepares), nil
	case *lazyTx:
		return r.preparing(c, c.pool.prepares), nil
	case *gorm.PreparedStmtDB:
		inner, err := r.conn(c.ConnPool)
		return r.preparing(inner, true), err
	case *gorm.PreparedStmtTX:
		inner, err := r.conn(c.Tx)
		return r.preparing(inner, true), err
	case *step: // a value that queries while gorm writes the statement it is in
		return c.next, nil
	case conn:
		return c, nil
	case *sql.DB: // of dbresolver, which has chosen for tables at home
		return &elsewhere{pool: r.pool, chosen: c}, nil
	}
	return foreign{ConnPool: c, guard: r.guard}, nil
}

func (r *routing) preparing(c conn, prepares bool) conn {
	if _, already := c.(preparing); already || !prepares {
		return c
	}
	if f, borrowed := c.(foreign); borrowed {
		return f
	}
	return preparing{conn: c, prepared: &r.prepared, home: r.homeFor(c), guard: r.guard}
}

// homeFor returns the database for what a connection is given that is on no shard.
// dbresolver opens its databases with the plugins in use: the pool that it chooses,
// and a transaction of that, have a home of their own.
func (r *routing) homeFor(c conn) *sql.DB {
	switch c := unprepared(c).(type) {
	case *pool:
		return c.home
	case *lazyTx:
		return c.pool.home
	}
	return r.home
}

// sharded returns the sharded table that a clause-built statement is on. Any
// other statement that names one is the guard's business.
func (r *routing) sharded(op string, stmt *gorm.Statement, snapshot *sharding.Snapshot) *sharded {
	if stmt.SQL.Len() > 0 {
		return nil
	}
	name, alias := r.tableOf(stmt)
	t := r.view(snapshot).of(name)
	switch {
	case t == nil, name == alias:
		return t
	case op == "create": // new rows have no use for it
		return nil
	}
	return t.as(alias)
}

// tableOf returns the table that a statement of clauses is on, and what qualifies
// the table's columns in it; "" for what is not a single table.
func (r *routing) tableOf(stmt *gorm.Statement) (name, alias string) {
	e := stmt.TableExpr
	switch {
	case e == nil:
		return stmt.Table, stmt.Table
	case len(e.Vars) > 0:
		return "", ""
	case e.SQL == stmt.Quote(stmt.Table):
		return stmt.Table, stmt.Table
	}
	return r.aliased(stmt, e.SQL)
}

// aliased reads a text that Table was given: orders [AS] o.
func (r *routing) aliased(stmt *gorm.Statement, text string) (name, alias string) {
	tokens, readable := r.tokensOf(text)
	if !readable || len(tokens) < 2 || !isName(tokens[0]) || strings.ContainsAny(text, "/#-") {
		return "", "" // a comment may be code for some servers
	}
	if alias, rest := joinAlias(text, tokens[1:]); alias == stmt.Table && len(rest) == 0 {
		return sqltext.Ident(text, tokens[0]), alias
	}
	return "", ""
}

// isSubquery reports whether gorm only wants the text, to put it into another
// statement. It keeps the logical name, which the guard of that statement finds:
// an error here would be lost, as gorm does not look for one. Nothing but the
// call stack tells such a statement from a dry run with the same logger.
func isSubquery(stmt *gorm.Statement) bool {
	if !stmt.DryRun || stmt.Logger != logger.Discard {
		return false
	}
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for executed := false; ; {
		frame, more := frames.Next()
		if executed {
			return strings.HasPrefix(frame.Function, "gorm.io/gorm.(*Statement).AddVar")
		}
		executed = frame.Function == "gorm.io/gorm.(*processor).Execute"
		if !more {
			return false
		}
	}
}

// also returns where rows lie that have a value in a column beside the key, nil
// for a column that does not tell.
func also(t *sharding.Table, column string) func(any) (sharding.Target, error) {
	if !t.Leads(column) {
		return nil
	}
	return func(value any) (sharding.Target, error) {
		target, err := t.TargetBy(column, value)
		if errors.Is(err, sharding.ErrMissingKey) {
			err = errSilent
		}
		return target, err
	}
}

// keyText is a key in a form in which equal keys are equal.
func keyText(key any) (string, error) {
	v, err := driver.DefaultParameterConverter.ConvertValue(key)
	if err != nil {
		return "", err
	}
	if b, ok := v.([]byte); ok {
		return string(b), nil
	}
	return fmt.Sprint(v), nil
}

// isJoined reports whether the statement reads more than its own table.
func isJoined(stmt *gorm.Statement) bool {
	if len(stmt.Joins) > 0 {
		return true
	}
	c, ok := stmt.Clauses["FROM"]
	return ok && c.Expression != nil && !isOwnTable(c.Expression)
}

// isOwnTable reports whether a FROM clause names the statement's own table only.
func isOwnTable(e clause.Expression) bool {
	from, ok := e.(clause.From)
	return ok && len(from.Joins) == 0 && (len(from.Tables) == 0 || slices.Equal(from.Tables, []clause.Table{{Name: clause.CurrentTable}}))
}
