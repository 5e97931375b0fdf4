package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"gorm.io/gorm"
)

// prepared holds what gorm's PrepareStmt needs for each database: a cache of
// statements is of no use on another database than theirs. It is safe for
// concurrent use.
type prepared struct {
	size int
	ttl  time.Duration

	mu sync.Mutex
	of map[*sql.DB]*gorm.PreparedStmtDB
}

// maxPrepared bounds the cache of a database where gorm's own would not be.
const maxPrepared = 1000

// cache returns the database's.
func (p *prepared) cache(db *sql.DB) *gorm.PreparedStmtDB {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of[db]
	if c == nil {
		size := p.size
		if size <= 0 {
			size = maxPrepared
		}
		c = gorm.NewPreparedStmtDB(db, size, p.ttl)
		p.of[db] = c
	}
	return c
}

// preparing is a connection whose statements are prepared once per database.
type preparing struct {
	conn
	prepared *prepared
	home     *sql.DB
	guard    *guard
}

var _ conn = preparing{}

func (p preparing) on(ctx context.Context, db *sql.DB) (gorm.ConnPool, error) {
	c, err := p.conn.on(ctx, db)
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *sql.DB:
		return p.prepared.cache(c), nil
	case *sql.Tx:
		return &gorm.PreparedStmtTX{Tx: c, PreparedStmtDB: p.prepared.cache(db)}, nil
	}
	return c, nil
}

func (p preparing) atHome(ctx context.Context, query string) (gorm.ConnPool, error) {
	if savepointVerb(query) != "" {
		return p.conn, nil
	}
	if err := p.guard.unrouted(query, p.home); err != nil {
		return nil, err
	}
	return p.on(ctx, p.home)
}

func (p preparing) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c, err := p.atHome(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.ExecContext(ctx, query, args...)
}

func (p preparing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c, err := p.atHome(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.QueryContext(ctx, query, args...)
}

func (p preparing) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c, err := p.atHome(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return queryRow(ctx, c, query, args)
}

// queryRow is c.QueryRowContext with the error of preparing, which gorm drops: it
// gives back a row then that Scan panics on.
func queryRow(ctx context.Context, c gorm.ConnPool, query string, args []any) *sql.Row {
	row := c.QueryRowContext(ctx, query, args...)
	if *row != (sql.Row{}) {
		return row
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err == nil {
		err = errors.Join(errUnprepared, stmt.Close()) //nolint:sqlclosecheck // it is not used
	}
	return errorRow(err)
}

// errUnprepared: gorm failed to prepare a statement, which then could be prepared.
var errUnprepared = errors.New("gormplugin: the statement could not be prepared; try again")

// unprepared returns the connection behind one that prepares.
func unprepared(c conn) conn {
	if p, ok := c.(preparing); ok {
		return p.conn
	}
	return c
}

// txOf returns the transaction a statement is in, nil if none.
func txOf(c conn) *lazyTx {
	tx, _ := unprepared(c).(*lazyTx)
	return tx
}
