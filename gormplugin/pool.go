package gormplugin

import (
	"context"
	"database/sql"
	"slices"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// conn is where a statement runs: the home pool, a transaction, or a
// connection that somebody else put there.
type conn interface {
	gorm.ConnPool
	// on returns what to use for a statement on db. Its error is about the
	// transaction, never about a statement: nothing was sent.
	on(ctx context.Context, db *sql.DB) (gorm.ConnPool, error)
	// admit says why statements for all of these databases cannot be one. It is
	// asked before the first of them is sent.
	admit(ctx context.Context, dbs []*sql.DB, write bool) error
}

// pool stands before the *sql.DB that gorm was opened with, the home of all
// tables that are not sharded. It is safe for concurrent use.
type pool struct {
	home  *sql.DB
	guard *guard
	spans bool                    // a transaction may span databases
	names func(db *sql.DB) string // of a database, for messages
	// prepares says that gorm was opened with PrepareStmt.
	prepares bool
}

var (
	_ conn                  = (*pool)(nil)
	_ gorm.ConnPoolBeginner = (*pool)(nil)
	_ gorm.GetDBConnector   = (*pool)(nil)
	_ conn                  = foreign{}
)

func (p *pool) admit(_ context.Context, dbs []*sql.DB, write bool) error {
	if write && !p.spans && isSeveral(dbs) {
		return crossing(severalHint)
	}
	return nil
}

const severalHint = "the rows lie in several databases, and a transaction has one; send one statement for each, with the keys grouped by Router.Target, or allow partial commits with sharding.Transactions(sharding.BestEffort)"

func isSeveral(dbs []*sql.DB) bool {
	return slices.ContainsFunc(dbs, func(db *sql.DB) bool { return db != dbs[0] })
}

// crossing is the refusal of a transaction to span databases.
func crossing(hint string) error {
	return &sharding.RouteError{Op: "statement", Err: sharding.ErrCrossDatabase, Hint: hint}
}

func (p *pool) on(_ context.Context, db *sql.DB) (gorm.ConnPool, error) { return db, nil }

// BeginTx returns a transaction that has begun nowhere yet. As that of a *sql.DB
// it fails once ctx has ended.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newLazyTx(ctx, p, opts), nil
}

// GetDBConn returns the home database, for gorm's DB method.
func (p *pool) GetDBConn() (*sql.DB, error) { return p.home, nil }

func (p *pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := p.guard.unrouted(query, p.home); err != nil {
		return nil, err
	}
	return p.home.PrepareContext(ctx, query)
}

func (p *pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := p.guard.unrouted(query, p.home); err != nil {
		return nil, err
	}
	return p.home.ExecContext(ctx, query, args...)
}

func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.guard.unrouted(query, p.home); err != nil {
		return nil, err
	}
	return p.home.QueryContext(ctx, query, args...)
}

func (p *pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := p.guard.unrouted(query, p.home); err != nil {
		return errorRow(err)
	}
	return p.home.QueryRowContext(ctx, query, args...)
}

// elsewhere is the pool for a statement that another plugin has chosen a
// database for. The choice is about home: a shard is no copy of it.
type elsewhere struct {
	*pool
	chosen *sql.DB
}

var _ conn = (*elsewhere)(nil)

func (e *elsewhere) on(_ context.Context, db *sql.DB) (gorm.ConnPool, error) {
	if db == e.home {
		return e.chosen, nil
	}
	return db, nil
}

func (e *elsewhere) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return foreign{e.chosen, e.guard, e.home}.PrepareContext(ctx, query)
}

func (e *elsewhere) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return foreign{e.chosen, e.guard, e.home}.ExecContext(ctx, query, args...)
}

func (e *elsewhere) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return foreign{e.chosen, e.guard, e.home}.QueryContext(ctx, query, args...)
}

func (e *elsewhere) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return foreign{e.chosen, e.guard, e.home}.QueryRowContext(ctx, query, args...)
}

// foreign is a connection that the plugin knows nothing about, such as the one
// gorm's Connection takes. Statements on it are guarded and never routed.
type foreign struct {
	gorm.ConnPool
	guard *guard
	at    *sql.DB // the database whose tables it has, nil when nobody knows
}

func (foreign) on(context.Context, *sql.DB) (gorm.ConnPool, error) {
	return nil, crossing("the statement is bound to a connection of another database; use the *gorm.DB itself or a transaction begun with it")
}

func (f foreign) admit(ctx context.Context, dbs []*sql.DB, _ bool) error {
	_, err := f.on(ctx, dbs[0])
	return err
}

func (f foreign) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := f.guard.unrouted(query, f.at); err != nil {
		return nil, err
	}
	return f.ConnPool.PrepareContext(ctx, query)
}

func (f foreign) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := f.guard.unrouted(query, f.at); err != nil {
		return nil, err
	}
	return f.ConnPool.ExecContext(ctx, query, args...)
}

func (f foreign) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := f.guard.unrouted(query, f.at); err != nil {
		return nil, err
	}
	return f.ConnPool.QueryContext(ctx, query, args...)
}

func (f foreign) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := f.guard.unrouted(query, f.at); err != nil {
		return errorRow(err)
	}
	return f.ConnPool.QueryRowContext(ctx, query, args...)
}
