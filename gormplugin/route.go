package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/sharding"
)

// routing points statements on sharded tables at their shards. It is immutable
// once installed.
type routing struct {
	router *sharding.Router
	guard  *guard
	quoted map[sharding.Target]*clause.Expr // "orders_3" AS "orders"
	mysql  bool
}

// install puts the router into db: a pool that guards and binds, and around
// each of gorm's core callbacks the one that routes. The core callbacks are the
// right place, as hooks and associations, which run their own statements, are
// outside of them.
func install(db *gorm.DB, router *sharding.Router) error {
	if _, prepared := db.ConnPool.(*gorm.PreparedStmtDB); prepared || db.PrepareStmt {
		return ErrPrepareStmt
	}
	home, ok := db.ConnPool.(*sql.DB)
	if !ok {
		return fmt.Errorf("a Router needs a *gorm.DB that was opened with a *sql.DB, not with a %T", db.ConnPool)
	}
	g, err := newGuard(db.Dialector.Name(), router)
	if err != nil {
		return err
	}
	r := &routing{router: router, guard: &g, mysql: db.Dialector.Name() == "mysql", quoted: map[sharding.Target]*clause.Expr{}}
	r.quote(&gorm.Statement{DB: db})
	if err := r.register(db); err != nil {
		return err
	}
	db.ClauseBuilders["WHERE"] = whereBuilder(db.ClauseBuilders["WHERE"])
	db.ConnPool = &pool{home: home, guard: &g}
	db.Statement.ConnPool = db.ConnPool
	return nil
}

// quote prepares the table expressions of all targets.
func (r *routing) quote(stmt *gorm.Statement) {
	for _, t := range r.guard.tables {
		for _, target := range t.Map.Targets() {
			r.quoted[target] = &clause.Expr{SQL: stmt.Quote(target.Table) + " AS " + stmt.Quote(t.Name)}
		}
	}
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
	before := stmt.ConnPool
	defer func() { stmt.ConnPool = before }()
	next, err := r.conn(before)
	if err != nil {
		return err
	}
	stmt.ConnPool = next
	table := r.sharded(stmt)
	if table == nil || isSubquery(stmt) {
		core(db)
		return nil
	}
	s := &step{routing: r, stmt: stmt, op: op, table: table, next: next}
	return s.run(db, core)
}

// conn returns what the statement was going to run on.
func (r *routing) conn(c gorm.ConnPool) (conn, error) {
	switch c := c.(type) {
	case *gorm.PreparedStmtDB, *gorm.PreparedStmtTX:
		return nil, ErrPrepareStmt
	case *step: // a value that queries while gorm writes the statement it is in
		return c.next, nil
	case conn:
		return c, nil
	}
	return foreign{c, r.guard}, nil
}

// sharded returns the sharded table that a clause-built statement is on. Any
// other statement that names one is the guard's business.
func (r *routing) sharded(stmt *gorm.Statement) *sharding.Table {
	if stmt.SQL.Len() > 0 {
		return nil
	}
	t := r.guard.table(stmt.Table)
	if t == nil {
		return nil
	}
	if e := stmt.TableExpr; e != nil && (len(e.Vars) > 0 || e.SQL != stmt.Quote(stmt.Table)) {
		return nil
	}
	return t
}

// isSubquery reports whether gorm only wants the text, to put it into another
// statement. It keeps the logical name, which the guard of that statement finds:
// an error here would be lost, as gorm does not look for one.
func isSubquery(stmt *gorm.Statement) bool {
	return stmt.DryRun && stmt.Logger == logger.Discard
}

// read returns what the conditions of stmt prove about targets.
func (r *routing) read(stmt *gorm.Statement, t *sharding.Table) reader[sharding.Target] {
	return reader[sharding.Target]{stmt, t, r.guard.readings[0], t.Target}
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
	if !ok || c.Expression == nil {
		return false
	}
	from, ok := c.Expression.(clause.From)
	current := []clause.Table{{Name: clause.CurrentTable}}
	return !ok || len(from.Joins) > 0 || len(from.Tables) > 0 && !slices.Equal(from.Tables, current)
}
