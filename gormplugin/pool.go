package gormplugin

import (
	"context"
	"database/sql"

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
}

// pool stands before the *sql.DB that gorm was opened with, the home of all
// tables that are not sharded. It is safe for concurrent use.
type pool struct {
	home  *sql.DB
	guard *guard
}

var (
	_ conn                  = (*pool)(nil)
	_ gorm.ConnPoolBeginner = (*pool)(nil)
	_ gorm.GetDBConnector   = (*pool)(nil)
	_ conn                  = foreign{}
)

func (p *pool) on(_ context.Context, db *sql.DB) (gorm.ConnPool, error) { return db, nil }

// BeginTx returns a transaction that has begun nowhere yet.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	return newLazyTx(ctx, p, opts), nil
}

// GetDBConn returns the home database, for gorm's DB method.
func (p *pool) GetDBConn() (*sql.DB, error) { return p.home, nil }

func (p *pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := p.guard.unrouted(query); err != nil {
		return nil, err
	}
	return p.home.PrepareContext(ctx, query)
}

func (p *pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := p.guard.unrouted(query); err != nil {
		return nil, err
	}
	return p.home.ExecContext(ctx, query, args...)
}

func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := p.guard.unrouted(query); err != nil {
		return nil, err
	}
	return p.home.QueryContext(ctx, query, args...)
}

func (p *pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := p.guard.unrouted(query); err != nil {
		return errorRow(err)
	}
	return p.home.QueryRowContext(ctx, query, args...)
}

// foreign is a connection that the plugin knows nothing about, such as the one
// gorm's Connection takes. Statements on it are guarded and never routed.
type foreign struct {
	gorm.ConnPool
	guard *guard
}

func (foreign) on(context.Context, *sql.DB) (gorm.ConnPool, error) {
	return nil, &sharding.RouteError{
		Op: "statement", Err: sharding.ErrCrossDatabase,
		Hint: "the statement is bound to a connection of another database; use the *gorm.DB itself or a transaction begun with it",
	}
}

func (f foreign) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := f.guard.unrouted(query); err != nil {
		return nil, err
	}
	return f.ConnPool.PrepareContext(ctx, query)
}

func (f foreign) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := f.guard.unrouted(query); err != nil {
		return nil, err
	}
	return f.ConnPool.ExecContext(ctx, query, args...)
}

func (f foreign) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := f.guard.unrouted(query); err != nil {
		return nil, err
	}
	return f.ConnPool.QueryContext(ctx, query, args...)
}

func (f foreign) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := f.guard.unrouted(query); err != nil {
		return errorRow(err)
	}
	return f.ConnPool.QueryRowContext(ctx, query, args...)
}
