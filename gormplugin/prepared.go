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

// steady is a cache whose users do not notice that it drops statements. gorm closes
// those even if somebody has just taken them out, and they fail before anything is
// sent then; so they are sent once more, unprepared.
type steady struct{ *gorm.PreparedStmtDB }

func (s steady) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	res, err := s.PreparedStmtDB.ExecContext(ctx, query, args...)
	if isDropped(err) {
		return s.ConnPool.ExecContext(ctx, query, args...)
	}
	return res, err
}

func (s steady) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := s.PreparedStmtDB.QueryContext(ctx, query, args...)
	if isDropped(err) {
		return s.ConnPool.QueryContext(ctx, query, args...)
	}
	return rows, err
}

func (s steady) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	row := s.PreparedStmtDB.QueryRowContext(ctx, query, args...)
	if isDropped(row.Err()) {
		return s.ConnPool.QueryRowContext(ctx, query, args...)
	}
	return row
}

// isDropped reports whether err is that of a *sql.Stmt that was closed before its
// statement was sent. database/sql has no name for it.
func isDropped(err error) bool { return err != nil && err.Error() == "sql: statement is closed" }

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
		return steady{p.prepared.cache(c)}, nil
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
