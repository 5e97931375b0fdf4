// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
	"github.com/shardid/shardid/sharding/internal/server"
)

// statement is a text that is executed several times on one connection.
type statement struct {
	inner.Statement

	conn   *conn
	text   string
	pooled map[preparedAs]*shared // what the databases prepared, by pool and text
}

// once is the statement of the texts that are prepared for one execution.
var once = &statement{Statement: inner.Statement{Prepares: true, Once: true}}

// sent returns the statement as connections know it. The database is known when it is first executed.
func (s *statement) sent() *inner.Statement {
	if s == nil {
		return nil
	}
	if s != once {
		s.Prepares = s.conn.database.server.Name() == "mysql" || isCopy(s.text)
	}
	return &s.Statement
}

// isCopy reports whether the arguments of a text are rows for COPY … FROM STDIN, as lib/pq takes them.
func isCopy(text string) bool {
	return len(text) > 5 && strings.EqualFold(text[:5], "COPY ")
}

var (
	_ driver.StmtQueryContext = (*statement)(nil)
	_ driver.StmtExecContext  = (*statement)(nil)
)

// NumInput returns -1: the inner driver counts the parameters.
func (s *statement) NumInput() int { return -1 }

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s, s.text, args)
}

func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s, s.text, args)
}

func (s *statement) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func (s *statement) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func named[T any](args []T) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, v := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return all
}

// maxPrepared is the largest number of texts that are kept prepared for a database. Other texts are
// sent unprepared.
const maxPrepared = 1000

// prepared holds the statements that outer statements have prepared, one for each text of a pool.
// The pool prepares it on its connections as needed.
type prepared struct {
	mu  sync.Mutex
	all map[*sql.DB]map[string]*shared
}

// shared is the state that the outer statements of one text share.
type shared struct {
	pool  *sql.DB
	text  string
	users int // guarded by prepared.mu

	preparing ctxMutex
	st        *sql.Stmt // nil before it was prepared
}

// join returns the shared statement of a text, nil if there are too many.
func (p *prepared) join(pool *sql.DB, text string) *shared {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[*sql.DB]map[string]*shared{}
	}
	of := p.all[pool]
	if of == nil {
		of = map[string]*shared{}
		p.all[pool] = of
	}
	s := of[text]
	if s == nil {
		if len(of) >= maxPrepared {
			return nil
		}
		s = &shared{pool: pool, text: text, preparing: newCtxMutex()}
		of[text] = s
	}
	s.users++
	return s
}

// leave must be called once for each join. The last call closes the statement.
func (p *prepared) leave(s *shared) error {
	p.mu.Lock()
	s.users--
	last := s.users == 0
	if last {
		delete(p.all[s.pool], s.text)
	}
	p.mu.Unlock()
	if !last || s.st == nil { // no other goroutine uses s any more
		return nil
	}
	return s.st.Close()
}

func (s *shared) prepared(ctx context.Context) (*sql.Stmt, error) {
	if err := s.preparing.lock(ctx); err != nil {
		return nil, err
	}
	defer s.preparing.unlock()
	if s.st == nil {
		st, err := s.pool.PrepareContext(ctx, s.text)
		if err != nil {
			return nil, err
		}
		s.st = st
	}
	return s.st, nil
}

// in returns the statement that the database of a route has prepared. It returns nil if the
// statement must be sent on a connection: if it is not prepared, if a transaction or session holds
// the connection, if it begins a session at home, or if its slots may have moved when its pool, which waits unseen,
// has a connection for a write.
func (s *statement) in(ctx context.Context, pool *sql.DB, p *plan.Plan, to *plan.Route) (*sql.Stmt, error) {
	if s == nil || s == once || !p.Statement.ReadsOnly() && mayMove(p) {
		return nil, nil //nolint:nilnil // said above
	}
	c := s.conn
	if _, holds := c.held(pool); holds || c.tx != nil || pool == c.database.home && !to.Pooled {
		return nil, nil //nolint:nilnil // said above
	}
	key := preparedAs{pool, to.Text}
	of := s.pooled[key]
	if of == nil {
		if err := c.database.checkSettings(ctx, pool, pool); err != nil {
			return nil, err
		}
		if of = c.database.prepared.join(pool, to.Text); of == nil {
			return nil, nil //nolint:nilnil // said above
		}
		if s.pooled == nil {
			s.pooled = map[preparedAs]*shared{}
		}
		s.pooled[key] = of
	}
	return of.prepared(ctx)
}

type preparedAs struct {
	pool *sql.DB
	text string
}

// Close closes the databases' statements, unless others use them.
func (s *statement) Close() error {
	var errs []error
	for _, of := range s.pooled {
		errs = append(errs, s.conn.database.prepared.leave(of))
	}
	s.pooled = nil
	errs = append(errs, s.conn.home.Forget(&s.Statement))
	if t := s.conn.tx; t != nil {
		for _, b := range t.parts {
			errs = append(errs, b.inner.Forget(&s.Statement))
		}
	}
	return errors.Join(errs...)
}

// sqlArgs returns the arguments in the form that database/sql takes.
func sqlArgs(args []driver.NamedValue) []any {
	list := make([]any, len(args))
	for i, a := range args {
		if list[i] = a.Value; a.Name != "" {
			list[i] = sql.Named(a.Name, a.Value)
		}
	}
	return list
}

func queryPrepared(ctx context.Context, st *sql.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := st.QueryContext(ctx, sqlArgs(args)...) //nolint:rowserrcheck // the reader of the rows checks it
	if err != nil {
		return nil, err
	}
	read, err := resultset.OfSQL(rows)
	if err != nil {
		return nil, dialect.JoinErrors(err, rows.Close()) //nolint:sqlclosecheck // others use them
	}
	return read, nil
}

// isBinary reports whether one table would have returned values in the binary protocol of MySQL and MariaDB, which is
// that of prepared statements. They have other digits and types than those of a text. A driver prepares statements
// that have arguments, unless it writes these into the text.
func isBinary(ctx context.Context, s *server.Server, on dialect.Querier, of *statement, args []driver.NamedValue) (bool, error) {
	if s.Name() != "mysql" || of != nil || len(args) == 0 {
		return s.Name() == "mysql" && of != nil, nil
	}
	writes, err := s.Interpolates(ctx, on)
	return err == nil && !writes, err
}

// asPart returns once if a part of a prepared statement that gets arguments must be prepared: on MySQL and MariaDB a
// driver may write arguments into a text, where a []byte compares in another way. Otherwise it returns nil.
func asPart(s *server.Server, of *statement, args []driver.NamedValue) *statement {
	if s.Name() == "mysql" && of != nil && len(args) > 0 {
		return once
	}
	return nil
}

// isUnprepared reports whether MySQL or MariaDB would prepare a text without arguments if it got some: the other case
// of isBinary.
func isUnprepared(ctx context.Context, s *server.Server, on dialect.Querier, of *statement, args []driver.NamedValue) (bool, error) {
	if of != nil || len(args) > 0 {
		return false, nil
	}
	return isBinary(ctx, s, on, nil, make([]driver.NamedValue, 1))
}
