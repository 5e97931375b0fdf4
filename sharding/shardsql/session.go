// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// session is what the statements of one outer connection have in common: the transaction
// and the connections that they hold. In its pool it holds none.
type session struct {
	database *database
	tx       *transaction // nil outside of one
	home     inner        // none before the first statement there
	atHome   kept         // of home
	// aside are connections that a statement has taken for lookup tables: see keeping.pools.
	aside map[*sql.DB]inner
}

// Ping asks the home database, on the connection that s has there, if it has one: the
// pool may have no other.
func (s *session) Ping(ctx context.Context) error {
	if s.home.conn != nil {
		return s.home.conn.PingContext(ctx)
	}
	return s.database.home.PingContext(ctx)
}

// held returns the connection that s holds to a database: that of a transaction, one aside,
// or the one at home.
func (s *session) held(t *transaction, pool *sql.DB) (in inner, ok bool) {
	if b := t.has(pool); b != nil {
		return b.inner, true
	}
	if in, ok := s.aside[pool]; ok {
		return in, true
	}
	return s.home, s.home.conn != nil && pool == s.database.home
}

// beside returns the connection that s holds to a database, or one of its pool. It begins
// nothing there.
func (s *session) beside(ctx context.Context, t *transaction, pool *sql.DB) (inner, error) {
	if in, ok := s.held(t, pool); ok {
		return in, nil
	}
	conn, err := s.database.connect(ctx, pool)
	return inner{conn: conn}, err
}

// inner returns the connection that a statement for a database is sent on. In a
// transaction that begins there. The one at home stays with s until the outer connection
// goes back into its pool: on a *sql.Conn its variables, locks and temporary tables are
// there for the next statement.
func (s *session) inner(ctx context.Context, pool *sql.DB) (inner, error) {
	if s.tx != nil {
		b, err := s.tx.join(ctx, pool)
		if err != nil {
			return inner{}, err
		}
		return b.inner, nil
	}
	in, err := s.beside(ctx, nil, pool)
	if err == nil && pool == s.database.home && in.kept == nil {
		in.kept = &s.atHome
		s.home = in
	}
	return in, err
}

// place returns the connection for a statement that goes to one place. What no row
// satisfies is asked beside a transaction that has not begun there: it neither binds the
// transaction to a database nor is refused for being on another one.
func (s *session) place(ctx context.Context, to plan.Route, pool *sql.DB) (inner, error) {
	if to.Nowhere && s.tx != nil && s.tx.broken == nil {
		return s.beside(ctx, s.tx, pool)
	}
	return s.inner(ctx, pool)
}

// on returns what a question besides is asked on.
func (s *session) on(pool *sql.DB) dialect.Querier {
	if in, ok := s.held(s.tx, pool); ok {
		return in.conn
	}
	return pool
}

// leaveHome gives the connection there back.
func (s *session) leaveHome() error {
	home := s.home
	if s.home = (inner{}); home.conn == nil {
		return nil
	}
	return home.leave()
}
