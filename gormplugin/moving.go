package gormplugin

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// A table that is being migrated (see sharding.Migration) is served by its source
// first, by its shards after the switch, and by the source again after a rollback.
// Each of these closes the old place before it opens the new one, and nobody tells
// this process: a statement that comes too late fails because its table is
// missing. It has done nothing then, so it is planned and sent once more.

// execute sends a statement, and once more whenever it finds its place closed.
func (r *routing) execute(op string, db *gorm.DB, core func(*gorm.DB), next conn) error {
	stmt := db.Statement
	sent, err := r.begin(op, stmt, next)
	if err != nil {
		return err
	}
	before := remember(op, stmt)
	for {
		stmt.ConnPool = next
		if err := r.send(op, db, core, next, sent); err != nil {
			return err
		}
		failed := failureOf(db)
		if failed == nil {
			return nil
		}
		if dialect.FaultOf(failed) != dialect.NoTable {
			return nil
		}
		if before.written && !r.guard.isSingle(stmt.SQL.String()) {
			return nil // a part of the text may have been done
		}
		if why := r.guard.missing(stmt.SQL.String(), failed); before.written && why != nil {
			before.fail(db, why)
			return nil
		}
		again, err := r.reopened(stmt, next, sent, failed)
		if again == nil {
			before.fail(db, err)
			return nil
		}
		if err := before.restore(db, r.fill, again); err != nil {
			return err
		}
		sent = again
	}
}

// begin returns what the statement is planned with: what the router knows, or the
// fill has begun to act upon. In a transaction that holds locks already nobody
// waits for a switch, which may be waiting for these locks.
func (r *routing) begin(op string, stmt *gorm.Statement, next conn) (*sharding.Snapshot, error) {
	tx := txOf(next)
	if tx != nil && savepointVerb(stmt.SQL.String()) == "" {
		tx.enter()
	}
	if op == "create" {
		if fl := stateOf(stmt); fl != nil && fl.snapshot != nil {
			return fl.snapshot, nil
		}
	}
	if r.concerns(stmt) && (tx == nil || !tx.underWay.Load()) {
		if err := r.router.Load(stmt.Context); err != nil {
			return nil, err
		}
	}
	return r.router.Snapshot(), nil
}

// concerns reports whether the statement may be about a sharded table.
func (r *routing) concerns(stmt *gorm.Statement) bool {
	if stmt.SQL.Len() == 0 {
		name, _ := r.tableOf(stmt)
		return r.guard.table(name) != nil
	}
	return r.guard.mentions(stmt.SQL.String())
}

// reopened returns what to plan the statement with once more, or the error that
// it ends with.
func (r *routing) reopened(stmt *gorm.Statement, next conn, sent *sharding.Snapshot, failed error) (*sharding.Snapshot, error) {
	if tx := txOf(next); tx != nil && !tx.restart() {
		return nil, r.router.Closed(sent, failed)
	}
	return r.router.Moved(stmt.Context, sent, failed)
}

// isSingle reports whether a text is one statement, however it is read.
func (g *guard) isSingle(query string) bool {
	for _, f := range g.readingsOf(query) {
		scanner := sqltext.NewScanner(query, f)
		for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
			if t.Is(query, ";") {
				return false
			}
		}
	}
	return true
}

// failureOf returns the statement's error. That of a Row lies in the row.
func failureOf(db *gorm.DB) error {
	if row, ok := db.Statement.Dest.(*sql.Row); ok && row != nil && db.Error == nil {
		return row.Err()
	}
	return db.Error
}

// planned is what gorm changes of a statement when it builds and sends it, as far
// as building it anew does not put it right.
type planned struct {
	op        string
	dest      any
	written   bool // the text is the user's
	returning bool // the user wants RETURNING
	asRows    bool // of a row statement: Rows, not Row
	clauses   map[string]clause.Clause
}

func remember(op string, stmt *gorm.Statement) planned {
	p := planned{op: op, dest: stmt.Dest, written: stmt.SQL.Len() > 0}
	switch {
	case op == "create":
		_, p.returning = stmt.Clauses["RETURNING"]
	case len(stmt.Joins) > 0: // gorm adds them to those that it has written already
		p.clauses = maps.Clone(stmt.Clauses)
	}
	if op == "row" {
		asRows, _ := stmt.Settings.Load("rows")
		p.asRows = asRows == true
	}
	return p
}

// restore makes the statement what it was before it was sent, planned with what
// the router knows now.
func (p planned) restore(db *gorm.DB, f *fill, now *sharding.Snapshot) error {
	stmt := db.Statement
	db.Error, db.RowsAffected = nil, 0
	stmt.Dest = p.dest
	if !p.written {
		stmt.SQL.Reset()
		stmt.Vars = nil
	}
	if p.clauses != nil {
		stmt.Clauses = maps.Clone(p.clauses)
	}
	if p.asRows {
		stmt.Settings.Store("rows", true)
	}
	if p.op != "create" {
		return nil
	}
	if !p.returning {
		delete(stmt.Clauses, "RETURNING")
	}
	return f.again(db, now)
}

// fail gives the statement its error.
func (p planned) fail(db *gorm.DB, err error) {
	if _, ok := db.Statement.Dest.(*sql.Row); ok {
		db.Statement.Dest = errorRow(err)
		return
	}
	db.Error = err
}

// unsplit is the connection of a statement that a single database answers as it
// stands: because a hint says so, or because the source of a migration still
// serves its table.
type unsplit struct {
	next conn
	db   *sql.DB
	// guard checks the text, by snapshot; nil when a hint has switched that off.
	guard    *guard
	snapshot *sharding.Snapshot
}

var _ gorm.ConnPool = unsplit{}

// ready returns what to send the statement to.
func (u unsplit) ready(ctx context.Context, query string) (gorm.ConnPool, error) {
	if u.guard != nil {
		if err := u.guard.unplaced(query, u.snapshot, u.db); err != nil {
			return nil, err
		}
	}
	return u.next.on(ctx, u.db)
}

func (u unsplit) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c, err := u.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.PrepareContext(ctx, query)
}

func (u unsplit) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c, err := u.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.ExecContext(ctx, query, args...)
}

func (u unsplit) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c, err := u.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.QueryContext(ctx, query, args...)
}

func (u unsplit) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c, err := u.ready(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return queryRow(ctx, c, query, args)
}

// origin returns the connection for a statement on a table that the source still
// serves, nil when it does not. A hint that names another place is refused.
func (r *routing) origin(t *sharding.Table, next conn, hint sharding.Hint, snapshot *sharding.Snapshot) (gorm.ConnPool, error) {
	from := t.Origin()
	if from == nil {
		return nil, nil
	}
	if _, _, err := snapshot.Hinted(t.Name, hint); err != nil {
		return nil, err
	}
	return unsplit{next, r.router.DB(from.Target.DB), r.guard, snapshot}, nil
}

// isAt reports whether the text may name the table in a statement for the
// database: the source of a migration that still serves it. Only rows may be
// changed there: another change would not reach the shards.
func (g *guard) isAt(t *sharding.Table, query string, snapshot *sharding.Snapshot, db *sql.DB) bool {
	now, ok := snapshot.Lookup(t.Name)
	if !ok || db == nil || now.Origin() == nil || g.router.DB(now.Origin().Target.DB) != db {
		return false
	}
	scanner := sqltext.NewScanner(query, g.readings[0])
	first, _ := scanner.NextCode()
	return slices.ContainsFunc(rowVerbs, func(verb string) bool { return first.Is(query, verb) })
}

// rowVerbs begin statements that are about rows alone.
var rowVerbs = strings.Fields("SELECT INSERT REPLACE UPDATE DELETE")

// isNumbered reports whether a database numbers the column: generators leave it
// alone then.
func isNumbered(t *sharding.Table, column string) bool {
	return t != nil && t.Origin() != nil && strings.EqualFold(column, t.Origin().Numbered)
}
