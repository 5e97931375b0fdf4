// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/xa"
)

// endTimeout limits the time of each step that ends a transaction. It applies even after the
// transaction's context has ended, because prepared branches must be ended.
const endTimeout = 10 * time.Second

// States with which PostgreSQL refuses PREPARE TRANSACTION after NOTIFY or the use of a temporary table, and an INSERT of a
// transaction that is READ ONLY.
const (
	notSupported = "0A000"
	readOnly     = "25006"
)

// decider is a database that can take part in an atomic transaction.
type decider struct {
	server   dialect.Server
	identity string
}

// decider checks, once for each pool, whether a database can take part.
func (d *database) decider(ctx context.Context, pool *sql.DB, on dialect.Querier) (_ *decider, err error) {
	state := d.stateOf(pool)
	if known := state.decider.Load(); known != nil {
		return known, nil
	}
	found := &decider{}
	if found.server, err = dialect.Identify(ctx, on); err != nil {
		return nil, err
	}
	if err := xa.Able(ctx, on, found.server); errors.Is(err, xa.ErrUnable) {
		return nil, d.unable("statement", pool, err, "use one transaction for each database")
	} else if err != nil {
		return nil, err
	}
	found.identity, err = xa.Identity(ctx, on, found.server)
	switch {
	case errors.Is(err, xa.ErrNoTable):
		return nil, d.unable("statement", pool, err, "create it on every database with Create of package sharding/twophase")
	case err != nil && dialect.FaultOf(err) == dialect.NoRight:
		return nil, d.unable("statement", pool, err, "GRANT SELECT, INSERT, DELETE ON "+xa.Table+" to the user, on every database; Create of package sharding/twophase creates it")
	case err == nil:
		state.decider.Store(found)
	}
	return found, err
}

func (d *database) unable(op string, pool *sql.DB, err error, hint string) error {
	return &sharding.RouteError{Op: op, Err: fmt.Errorf("%w: %s: %w", sharding.ErrCrossDatabase, d.nameOf(pool), err), Hint: hint}
}

// branch is the part of an atomic transaction on a database other than the deciding one.
type branch struct {
	part        *txPart
	transaction *transaction
	id          xa.ID
	server      dialect.Server
	prepared    bool
}

var _ xa.Branch = (*branch)(nil)

// beginBranch begins on a database other than the first. The first database decides the outcome, so
// the branch's name contains its identity.
func (t *transaction) beginBranch(ctx context.Context, b *txPart) error {
	d := t.session.database
	first, err := d.decider(ctx, t.parts[0].pool, t.parts[0].inner.SQL)
	if err != nil {
		return err
	}
	own, err := d.decider(ctx, b.pool, b.inner.SQL)
	if err != nil {
		return err
	}
	if t.gtid == "" {
		t.gtid = xa.NewTransaction()
	}
	isolation := ""
	switch level := sql.IsolationLevel(t.options.Isolation); level {
	case sql.LevelDefault:
	case sql.LevelSnapshot: // pgx, which has begun on the first database, calls it so, too
		isolation = "REPEATABLE READ"
	default:
		isolation = strings.ToUpper(level.String())
	}
	of := &branch{part: b, transaction: t, id: xa.ID{Transaction: t.gtid, Decider: first.identity, Branch: len(t.parts)}, server: own.server}
	if err := b.inner.Run(ctx, xa.Begin(own.server, of.id, isolation)...); err != nil {
		return err
	}
	b.branch = of
	return nil
}

// commitAtomically commits on all databases or on none.
func (t *transaction) commitAtomically() error {
	branches := make([]xa.Branch, len(t.parts)-1)
	for i, b := range t.parts[1:] {
		branches[i] = b.branch
	}
	known := t.session.database.stateOf(t.parts[0].pool).decider.Load() // stored by beginBranch
	return xa.Commit(context.WithoutCancel(t.ctx), &decision{t, t.parts[0], known.server}, branches)
}

// send executes texts on the branch's own connection.
func (b *branch) send(ctx context.Context, texts ...string) error {
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	return lost(b.part.inner.Run(ctx, texts...))
}

func (b *branch) Prepare(ctx context.Context) error {
	b.prepared = true // even after an error it may be prepared
	err := b.send(ctx, xa.Prepare(b.server, b.id)...)
	if dialect.SQLState(err) == notSupported {
		err = b.transaction.session.database.unable("commit", b.part.pool, err,
			"do that outside of the transaction, or begin the transaction on this database with its first statement, because only the others prepare their parts")
	}
	return err
}

// Commit implements xa.Branch. When a server has noticed that the branch's connection is lost,
// another connection can end the branch.
func (b *branch) Commit(ctx context.Context) error {
	err := b.send(ctx, xa.End(b.server, b.id, true))
	if err == nil || xa.IsUnknown(err) { // while the connection lives, no other one can end it, except a resolver's on PostgreSQL
		return b.part.leave()
	}
	b.Leave()
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	for pause := 10 * time.Millisecond; ctx.Err() == nil; pause *= 2 {
		if _, err = b.part.pool.ExecContext(ctx, xa.End(b.server, b.id, true)); err == nil {
			return nil
		}
		if left, listErr := xa.List(ctx, b.part.pool, b.server); listErr == nil && !slices.Contains(left, b.id) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return err
}

func (b *branch) Rollback(context.Context) { _ = b.rollback() }

// Leave implements xa.Branch. A prepared branch survives the release of its connection.
func (b *branch) Leave() {
	_ = b.part.inner.SQL.Raw(func(any) error { return driver.ErrBadConn })
}

// rollback ends the branch. If the connection may still be in it, rollback closes the connection,
// and the server then rolls back a branch that is not prepared.
func (b *branch) rollback() (err error) {
	ctx := context.WithoutCancel(b.transaction.ctx)
	if b.prepared {
		err = b.send(ctx, xa.End(b.server, b.id, false))
	}
	if !b.prepared || err != nil { // PREPARE may have failed
		for _, text := range xa.Abandon(b.server, b.id) {
			err = b.send(ctx, text)
		}
	}
	if err != nil {
		b.Leave()
		return err
	}
	return b.part.leave()
}

// decision is the part of an atomic transaction on the database that decides.
type decision struct {
	transaction *transaction
	first       *txPart
	server      dialect.Server
}

var _ xa.Decider = (*decision)(nil)

func (d *decision) Decide(ctx context.Context) error {
	var names []string
	for _, b := range d.transaction.parts[1:] {
		names = append(names, d.transaction.session.database.shortNameOf(b.pool))
	}
	text, args, err := xa.Decision(d.server, d.transaction.gtid, names)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	_, err = d.first.inner.Exec(ctx, nil, text, named(args))
	switch {
	case dialect.IsDuplicate(err):
		return fmt.Errorf("%w: %w", sharding.ErrResolved, err)
	case dialect.SQLState(err) == readOnly:
		return d.transaction.session.database.unable("commit", d.first.pool, err,
			"begin a transaction that only reads with sql.TxOptions{ReadOnly: true}, which stores no decision, and let the pool reach a server that accepts writes")
	}
	return lost(err)
}

func (d *decision) Commit() error { return lost(d.first.end(d.first.tx.Commit)) }

func (d *decision) Rollback() { _ = d.first.rollback() }

func (d *decision) Committed(ctx context.Context) (bool, error) {
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	is, err := xa.Committed(ctx, d.on(), d.server, d.transaction.gtid)
	return is, lost(err)
}

func (d *decision) Forget(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	_ = xa.Forget(ctx, d.on(), d.server, d.transaction.gtid) // a resolver does, too
}

// on returns the session's connection if there is one, because the pool may have no other.
func (d *decision) on() xa.DB {
	if d.first.session && d.first.inner.Valid() {
		return d.first.inner.SQL
	}
	return d.first.pool
}
