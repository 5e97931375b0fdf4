// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// session is the state that the statements of one outer connection share: the transaction and the
// connections that they hold. While the outer connection is in its pool, it holds none.
type session struct {
	database *database
	tx       *transaction // of the program, or of the present write; otherwise nil
	inside   bool         // its statements are a part of a statement of another session, whose transaction it uses
	home     inner.Conn   // empty before the first statement there
	atHome   inner.Kept   // of home
	// lookupConns holds connections that a statement has reserved for lookup tables: see lookupWrite.pools.
	lookupConns map[*sql.DB]inner.Conn
	history     history
	memory      inner.Memory
}

// Ping pings the home database, on the connection that s holds there, if it has one: the pool may
// have no other.
func (s *session) Ping(ctx context.Context) error {
	if s.home.SQL != nil {
		return s.home.SQL.PingContext(ctx)
	}
	return s.database.home.PingContext(ctx)
}

// held returns the connection that s holds to a database: that of its transaction, one reserved for
// lookup tables, or the one at home.
func (s *session) held(pool *sql.DB) (in inner.Conn, ok bool) {
	if b := s.tx.has(pool); b != nil {
		return b.inner, true
	}
	if in, ok := s.lookupConns[pool]; ok {
		return in, true
	}
	if s.home.SQL != nil && pool == s.database.home {
		return s.home, true
	}
	return inner.Conn{}, false
}

// heldOrNew returns the connection that s holds to a database, or one of its pool. It begins no
// transaction there.
func (s *session) heldOrNew(ctx context.Context, pool *sql.DB) (inner.Conn, error) {
	if in, ok := s.held(pool); ok {
		return in, nil
	}
	conn, err := s.database.connect(ctx, pool)
	return inner.Conn{SQL: conn}, err
}

// inner returns the connection on which a statement for a database is sent. In a transaction it
// begins the transaction there if necessary. The connection at home stays with s until the outer
// connection returns to its pool: so on a *sql.Conn, variables, locks and temporary tables remain
// for the next statement.
func (s *session) inner(ctx context.Context, pool *sql.DB) (inner.Conn, error) {
	if s.tx != nil {
		b, err := s.tx.join(ctx, pool)
		if err != nil {
			return inner.Conn{}, err
		}
		return b.inner, nil
	}
	in, err := s.heldOrNew(ctx, pool)
	if err == nil && pool == s.database.home && in.Kept == nil {
		in.Kept = &s.atHome
		s.home = in
	}
	return in, err
}

// connFor returns the connection for a statement with one target. A statement that no row satisfies
// is sent outside of a transaction that has not begun there: it neither binds the transaction to a
// database nor is refused because the transaction is on another one.
func (s *session) connFor(ctx context.Context, to *plan.Route, pool *sql.DB) (in inner.Conn, err error) {
	if to.Nowhere && s.tx != nil && s.tx.ended() == nil {
		in, err = s.heldOrNew(ctx, pool)
	} else {
		copies := s.tx != nil && to.Anywhere && (s.tx.copies || len(s.tx.parts) == 0)
		if in, err = s.inner(ctx, pool); copies {
			s.tx.copies = true
		}
	}
	in.Memory = &s.memory
	return in, err
}

// on returns the connection for an auxiliary query.
func (s *session) on(pool *sql.DB) dialect.Querier {
	if in, ok := s.held(pool); ok {
		return in.SQL
	}
	return pool
}

// releaseHome returns the connection at home to its pool.
func (s *session) releaseHome() error {
	s.history = history{}
	return leaveHome(s)
}

// leaveHome returns the connection at home, whose state no later statement needs, to its pool.
func leaveHome(s *session) error {
	home := s.home
	if s.home = (inner.Conn{}); home.SQL == nil {
		return nil
	}
	return home.Leave()
}
