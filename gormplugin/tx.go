package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// lazyTx is a transaction that begins with its first statement, on the database
// of that statement. It refuses statements for any other one before they are
// sent, unless the router lets transactions span databases: then it begins on
// each of them. Commit and Rollback of one that was never used send nothing. It
// is as safe for concurrent use as *sql.Tx.
type lazyTx struct {
	pool *pool
	// ctx and opts are those of BeginTx. As with *sql.Tx the end of ctx, and not
	// that of a statement's context, rolls the transaction back.
	ctx  context.Context
	opts *sql.TxOptions

	statements atomic.Int64 // which it was given, sent or not
	underWay   atomic.Bool  // it may hold locks

	turn       chan struct{}      // holds one token while somebody uses the fields below
	begun      []begun            // at most one, unless spans
	savepoints []string           // statements to send after BEGIN
	spans      bool               // it may begin on several databases
	life       *sqlrun.Detachable // of those that it begins then
	err        error              // BEGIN failed; the transaction is good for nothing any more
	done       bool
}

// begun is what a transaction has begun on one database.
type begun struct {
	db *sql.DB
	tx *sql.Tx
}

var (
	_ conn                = (*lazyTx)(nil)
	_ gorm.Tx             = (*lazyTx)(nil)
	_ gorm.GetDBConnector = (*lazyTx)(nil)
)

func newLazyTx(ctx context.Context, p *pool, opts *sql.TxOptions) *lazyTx {
	return &lazyTx{pool: p, ctx: ctx, opts: opts, spans: p.spans, turn: make(chan struct{}, 1)}
}

// on returns the transaction for a statement on db, beginning it if need be.
func (t *lazyTx) on(ctx context.Context, db *sql.DB) (gorm.ConnPool, error) {
	tx, err := t.bind(ctx, db)
	if err != nil {
		return nil, err // not tx: a nil *sql.Tx would be a ConnPool that is not nil
	}
	return tx, nil
}

const boundHint = "the transaction is bound to the database of its first statement; give each database a transaction of its own"

// admit lets a statement pass whose databases the transaction can be on.
func (t *lazyTx) admit(ctx context.Context, dbs []*sql.DB, _ bool) error {
	if t.spans {
		return nil
	}
	if isSeveral(dbs) {
		return crossing(severalHint)
	}
	bound, err := t.bound(ctx)
	if err == nil && bound != nil && bound != dbs[0] {
		err = crossing(boundHint)
	}
	return err
}

func (t *lazyTx) bind(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	switch {
	case t.done:
		return nil, sql.ErrTxDone
	case t.err != nil:
		return nil, t.err
	}
	for _, b := range t.begun {
		if b.db == db {
			return b.tx, nil
		}
	}
	if len(t.begun) > 0 && !t.spans {
		return nil, crossing(boundHint)
	}
	var tx *sql.Tx
	tx, t.err = t.begin(db)
	return tx, t.err
}

// enter notes that a statement begins that may use the transaction.
func (t *lazyTx) enter() { t.statements.Add(1) }

// isUnderWay reports whether the connection is a transaction that may hold locks.
func isUnderWay(c gorm.ConnPool) bool {
	if p, ok := c.(*gorm.PreparedStmtTX); ok {
		c = p.Tx
	}
	tx, ok := c.(*lazyTx)
	return ok && tx.underWay.Load()
}

// restart undoes BEGIN after the first statement of all has failed without doing
// anything, so that another database can be chosen for it. It reports whether
// that was possible: after a second statement the transaction is what it is.
func (t *lazyTx) restart() bool {
	t.turn <- struct{}{} // at most until a BEGIN ends, whose context is t.ctx
	defer t.unlock()
	if t.done || t.err != nil || t.statements.Load() != 1 {
		return false
	}
	for _, b := range t.begun {
		_ = b.tx.Rollback() // nothing was done in it
	}
	t.begun = nil
	t.underWay.Store(false)
	return true
}

// lock takes the turn. A mutex would not do: BEGIN is sent under it, and who
// waits for that must not wait longer than their context allows.
func (t *lazyTx) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *lazyTx) unlock() { <-t.turn }

// begin begins on db and repeats the savepoints set so far. The caller holds
// turn.
func (t *lazyTx) begin(db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(t.lifetime(), t.opts)
	if err != nil {
		return nil, err
	}
	for _, savepoint := range t.savepoints {
		if _, err := tx.ExecContext(t.ctx, savepoint); err != nil {
			_ = tx.Rollback() // the savepoint's error is the one that matters
			return nil, err
		}
	}
	t.begun = append(t.begun, begun{db, tx})
	t.underWay.Store(true)
	return tx, nil
}

// lifetime is the context of what begins now.
func (t *lazyTx) lifetime() context.Context {
	if !t.spans {
		return t.ctx
	}
	if t.life == nil {
		t.life = sqlrun.NewDetachable(t.ctx)
	}
	return t.life
}

// bound returns the database the transaction is bound to first, nil if none.
func (t *lazyTx) bound(ctx context.Context) (*sql.DB, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	if len(t.begun) == 0 {
		return nil, nil
	}
	return t.begun[0].db, nil
}

// running returns what has begun on the database, nil if nothing has.
func (t *lazyTx) running(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	for _, b := range t.begun {
		if b.db == db {
			return b.tx, nil
		}
	}
	return nil, nil
}

// Commit commits, if anything was begun. On several databases it does so one
// after the other, and stops at the first that fails.
func (t *lazyTx) Commit() error {
	return t.end(func(all []begun) error {
		err := t.err
		switch {
		case err != nil:
		case t.life != nil:
			err = t.life.Detach() // the end of ctx shall not fall between two COMMITs
		case len(all) == 0:
			err = t.ctx.Err() // what there was to do may not have begun because of it
		}
		if err != nil {
			for _, b := range all {
				_ = b.tx.Rollback() // BEGIN's error is the one that matters, or that of ctx
			}
			return err
		}
		for i, b := range all {
			if err := b.tx.Commit(); err != nil {
				return t.partly(all, i, err)
			}
		}
		return nil
	})
}

// partly rolls back what was not committed and tells what was.
func (t *lazyTx) partly(all []begun, failed int, cause error) error {
	rest := all[failed+1:]
	for _, b := range rest {
		_ = b.tx.Rollback() // the cause is the error that matters
	}
	if failed == 0 {
		return cause
	}
	partial := &sharding.PartialCommitError{Failed: map[string]error{t.pool.names(all[failed].db): cause}}
	for _, b := range all[:failed] {
		partial.Committed = append(partial.Committed, t.pool.names(b.db))
	}
	for _, b := range rest {
		partial.Failed[t.pool.names(b.db)] = errRolledBack
	}
	return partial
}

// Rollback rolls back, if anything was begun. That a BEGIN failed was the error
// of the statement that needed it, and is not told again.
func (t *lazyTx) Rollback() error {
	return t.end(func(all []begun) error {
		var first error
		for _, b := range all {
			if err := b.tx.Rollback(); err != nil && first == nil {
				first = err
			}
		}
		return first
	})
}

func (t *lazyTx) end(how func([]begun) error) error {
	t.turn <- struct{}{} // at most until a BEGIN ends, whose context is t.ctx
	defer t.unlock()
	if t.done {
		return sql.ErrTxDone
	}
	t.done = true
	if t.life != nil {
		defer t.life.End()
	}
	return how(t.begun)
}

// GetDBConn returns the home database, for gorm's DB method.
func (t *lazyTx) GetDBConn() (*sql.DB, error) { return t.pool.home, nil }

// StmtContext is what gorm asks of the transactions that it prepares statements
// for. The statement is of the database the transaction is bound to.
func (t *lazyTx) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	tx, err := t.bind(ctx, t.pool.home)
	if err != nil {
		return stmt
	}
	return tx.StmtContext(ctx, stmt)
}

// atHome returns the transaction for a statement that no shard was chosen for.
func (t *lazyTx) atHome(ctx context.Context, query string) (*sql.Tx, error) {
	if err := t.pool.guard.unrouted(query, t.pool.home); err != nil {
		return nil, err
	}
	t.enter()
	return t.bind(ctx, t.pool.home)
}

func (t *lazyTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	tx, err := t.atHome(ctx, query)
	if err != nil {
		return nil, err
	}
	return tx.PrepareContext(ctx, query)
}

func (t *lazyTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if verb := savepointVerb(query); verb != "" {
		return t.savepoint(ctx, verb, query)
	}
	tx, err := t.atHome(ctx, query)
	if err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, query, args...)
}

func (t *lazyTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	tx, err := t.atHome(ctx, query)
	if err != nil {
		return nil, err
	}
	return tx.QueryContext(ctx, query, args...)
}

func (t *lazyTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	tx, err := t.atHome(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return tx.QueryRowContext(ctx, query, args...)
}

// savepointVerb returns which statement about a savepoint the query is, or "".
func savepointVerb(query string) string {
	for _, verb := range [...]string{"SAVEPOINT ", "ROLLBACK TO ", "RELEASE "} {
		if len(query) > len(verb) && strings.EqualFold(query[:len(verb)], verb) {
			return verb
		}
	}
	return ""
}

// savepoint runs the query where the transaction has begun. Where it begins
// later the savepoint is set then: nothing has happened there that could be
// rolled back.
func (t *lazyTx) savepoint(ctx context.Context, verb, query string) (sql.Result, error) {
	all, err := t.note(ctx, verb, query)
	for _, b := range all {
		if _, err := b.tx.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	return driver.RowsAffected(0), err
}

// note returns what has begun, and remembers a savepoint for what has not.
func (t *lazyTx) note(ctx context.Context, verb, query string) ([]begun, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	if t.done {
		return nil, sql.ErrTxDone
	}
	if verb == "SAVEPOINT " && (len(t.begun) == 0 || t.spans) {
		t.savepoints = append(t.savepoints, query)
	}
	return slices.Clone(t.begun), t.err
}
