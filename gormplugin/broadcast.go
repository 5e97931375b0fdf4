package gormplugin

import (
	"context"
	"database/sql"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// copies is the connection of a statement on a broadcast table: the same rows
// are in every database. A read goes to one of them, the transaction's own if
// it has one; a write goes to all.
type copies struct {
	routing *routing
	stmt    *gorm.Statement
	next    conn
	write   bool
}

var _ gorm.ConnPool = (*copies)(nil)

// broadcast returns the connection for a statement on a broadcast table, nil for
// another one.
func (r *routing) broadcast(op string, stmt *gorm.Statement, next conn) *copies {
	if stmt.SQL.Len() > 0 || !r.router.IsBroadcast(stmt.Table) {
		return nil
	}
	return &copies{routing: r, stmt: stmt, next: next, write: op != "query" && op != "row"}
}

// any returns the connection to read from.
func (c *copies) any(ctx context.Context, query string) (gorm.ConnPool, error) {
	if err := c.routing.guard.unsharded(query, nil); err != nil {
		return nil, err
	}
	names := c.routing.router.Databases()
	db := c.routing.router.DB(names[0])
	if c.routing.nameOf(c.routing.home) != homeName {
		db = c.routing.home
	}
	if tx := txOf(c.next); tx != nil {
		bound, err := tx.bound(ctx)
		if err != nil {
			return nil, err
		}
		if bound != nil && c.routing.nameOf(bound) != homeName {
			db = bound
		}
	}
	return c.next.on(ctx, db)
}

func (c *copies) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	on, err := c.any(ctx, query)
	if err != nil {
		return nil, err
	}
	return on.PrepareContext(ctx, query)
}

func (c *copies) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	var first sql.Result
	err := c.all(ctx, query, func(on gorm.ConnPool, i int) error {
		result, err := on.ExecContext(ctx, query, args...)
		if i == 0 {
			first = result
		}
		return err
	})
	return first, err
}

func (c *copies) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !c.write {
		on, err := c.any(ctx, query)
		if err != nil {
			return nil, err
		}
		return on.QueryContext(ctx, query, args...)
	}
	var first *resultSet
	err := c.all(ctx, query, func(on gorm.ConnPool, i int) error {
		rows, err := on.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		set, err := readAll(rows)
		if i == 0 {
			first = set
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return first.open(ctx)
}

func (c *copies) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	on, err := c.any(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return queryRow(ctx, on, query, args)
}

// all runs a write in every database. It cannot be one transaction: a default
// one, which gorm began for this statement, spans them all for once, and the
// user's own must be allowed to.
func (c *copies) all(ctx context.Context, query string, do func(gorm.ConnPool, int) error) error {
	if err := c.routing.guard.unsharded(query, nil); err != nil {
		return err
	}
	if err := c.proveKeys(); err != nil {
		return err
	}
	on, finish, err := c.spanning(ctx)
	if err != nil {
		return err
	}
	for i, name := range c.routing.router.Databases() {
		conn, err := on.on(ctx, c.routing.router.DB(name))
		if err == nil {
			err = do(conn, i)
		}
		if err != nil {
			return finish(err)
		}
	}
	return finish(nil)
}

// spanning returns a transaction over all databases and what ends it.
func (c *copies) spanning(ctx context.Context) (conn, func(error) error, error) {
	keep := func(err error) error { return err }
	tx := txOf(c.next)
	if tx == nil {
		p, ok := unprepared(c.next).(*pool)
		if !ok {
			return nil, nil, c.refuse(sharding.ErrCrossDatabase, "the statement is bound to one connection; use the *gorm.DB itself")
		}
		tx := newLazyTx(ctx, p, nil)
		tx.spans = true
		return tx, func(err error) error {
			if err != nil {
				_ = tx.Rollback() // the statement's error is the one that matters
				return err
			}
			return tx.Commit()
		}, nil
	}
	if _, own := c.stmt.DB.InstanceGet("gorm:started_transaction"); own {
		tx.spans = true
	}
	if !tx.spans {
		return nil, nil, c.refuse(sharding.ErrCrossDatabase, "it is written in every database; write it outside of the transaction, or allow partial commits with sharding.Transactions(sharding.BestEffort)")
	}
	return c.next, keep, nil
}

// proveKeys refuses rows that every database would number in its own way.
func (c *copies) proveKeys() error {
	if c.stmt.Schema == nil || c.stmt.Clauses["INSERT"].Name == "" {
		return nil
	}
	f := c.stmt.Schema.PrioritizedPrimaryField
	if f == nil || !f.HasDefaultValue || !f.AutoIncrement && f.DefaultValue == "" {
		return nil
	}
	v := c.stmt.ReflectValue
	for i := 0; v.Kind() == reflect.Slice && i < v.Len(); i++ {
		if _, zero := f.ValueOf(c.stmt.Context, reflect.Indirect(v.Index(i))); zero {
			return c.refuse(sharding.ErrMissingKey, "give "+f.Name+" a generator or a value; each database would number the row in its own way")
		}
	}
	if v.Kind() == reflect.Struct {
		if _, zero := f.ValueOf(c.stmt.Context, v); zero {
			return c.refuse(sharding.ErrMissingKey, "give "+f.Name+" a generator or a value; each database would number the row in its own way")
		}
	}
	return nil
}

func (c *copies) refuse(why error, hint string) error {
	return &sharding.RouteError{Op: "write of broadcast table", Table: c.stmt.Table, Err: why, Hint: hint}
}

// copied checks that a text for one database changes no broadcast table, whose
// copies in the others would stay as they are.
func (g *guard) copied(query string) error {
	if !slices.ContainsFunc(g.copies, func(name string) bool { return containsFold(query, name) }) || isSelect(query) {
		return nil
	}
	for _, f := range g.readingsOf(query) {
		for _, c := range changesOf(query, f) {
			for _, name := range c.tables {
				if g.isCopied(name) {
					return oneCopyOf(c.verb, name)
				}
			}
		}
	}
	return nil
}

// isSelect reports whether a text is clearly a single query.
func isSelect(query string) bool {
	const verb = "SELECT "
	return len(query) > len(verb) && strings.EqualFold(query[:len(verb)], verb) && strings.IndexByte(query, ';') < 0
}

func (g *guard) isCopied(table string) bool { return g.router.IsBroadcast(table) }

// missing returns a database's error with the reason why a broadcast table is
// missing there, nil when the text names none: the database that gorm was opened
// with need not be one of the router's.
func (g *guard) missing(query string, failed error) error {
	if g.mentions(query) {
		return nil
	}
	names := sqltext.NewTables(query, g.readings[0])
	for t, table, ok := names.Next(); ok; t, table, ok = names.Next() {
		if name := sqltext.Name(query, t); table && g.isCopied(name) {
			return &sharding.RouteError{
				Op: "raw SQL on broadcast table", Table: name, Err: failed,
				Hint: "its copies are in the router's databases, and raw SQL goes to the one that gorm was opened with; read it through its model",
			}
		}
	}
	return nil
}

// oneCopyError says why SQL text must not change a broadcast table.
type oneCopyError struct{}

func (oneCopyError) Error() string { return "SQL text would change one of its copies only" }

func (oneCopyError) Unwrap() error { return sharding.ErrRawTable }

func oneCopyOf(verb, table string) error {
	hint := "change it through its model, which does so in every database"
	switch {
	case slices.Contains([]string{"UPDATE", "DELETE"}, verb):
		hint += ", or run the text with sharding.AllShards"
	case slices.Contains(definitionVerbs, verb):
		hint = "create and change its tables with gormplugin.Migrate; for all else run the text on Router.DB of each of Router.Databases"
	}
	return &sharding.RouteError{Op: "raw " + verb + " of broadcast table", Table: table, Err: oneCopyError{}, Hint: hint}
}
