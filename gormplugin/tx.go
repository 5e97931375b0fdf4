package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// lazyTx is a transaction that begins with its first statement, on the database
// of that statement, and refuses statements for any other one before they are
// sent. Commit and Rollback of one that was never used send nothing. It is as
// safe for concurrent use as *sql.Tx.
type lazyTx struct {
	pool *pool
	// ctx and opts are those of BeginTx. As with *sql.Tx the end of ctx, and not
	// that of a statement's context, rolls the transaction back.
	ctx  context.Context
	opts *sql.TxOptions

	turn       chan struct{} // holds one token while somebody uses the fields below
	db         *sql.DB       // the database it is bound to, nil before the first statement
	tx         *sql.Tx
	savepoints []string // statements to send after BEGIN
	err        error    // BEGIN failed; the transaction is good for nothing any more
	done       bool
}

var (
	_ conn                = (*lazyTx)(nil)
	_ gorm.TxCommitter    = (*lazyTx)(nil)
	_ gorm.GetDBConnector = (*lazyTx)(nil)
)

func newLazyTx(ctx context.Context, p *pool, opts *sql.TxOptions) *lazyTx {
	return &lazyTx{pool: p, ctx: ctx, opts: opts, turn: make(chan struct{}, 1)}
}

// on returns the transaction for a statement on db, beginning it if need be.
func (t *lazyTx) on(ctx context.Context, db *sql.DB) (gorm.ConnPool, error) {
	tx, err := t.bind(ctx, db)
	if err != nil {
		return nil, err // not tx: a nil *sql.Tx would be a ConnPool that is not nil
	}
	return tx, nil
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
	case t.tx == nil:
		t.err = t.begin(db)
		return t.tx, t.err
	case t.db != db:
		return nil, &sharding.RouteError{
			Op: "statement", Err: sharding.ErrCrossDatabase,
			Hint: "the transaction is bound to the database of its first statement; give each database a transaction of its own",
		}
	}
	return t.tx, nil
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
func (t *lazyTx) begin(db *sql.DB) error {
	tx, err := db.BeginTx(t.ctx, t.opts)
	if err != nil {
		return err
	}
	for _, savepoint := range t.savepoints {
		if _, err := tx.ExecContext(t.ctx, savepoint); err != nil {
			_ = tx.Rollback() // the savepoint's error is the one that matters
			return err
		}
	}
	t.tx, t.db = tx, db
	return nil
}

// bound returns the database the transaction is bound to, nil if none.
func (t *lazyTx) bound(ctx context.Context) (*sql.DB, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	return t.db, nil
}

// Commit commits, if anything was begun.
func (t *lazyTx) Commit() error {
	return t.end((*sql.Tx).Commit)
}

// Rollback rolls back, if anything was begun.
func (t *lazyTx) Rollback() error {
	return t.end((*sql.Tx).Rollback)
}

func (t *lazyTx) end(how func(*sql.Tx) error) error {
	t.turn <- struct{}{} // at most until a BEGIN ends, whose context is t.ctx
	defer t.unlock()
	if t.done {
		return sql.ErrTxDone
	}
	t.done = true
	if t.tx == nil {
		return t.err
	}
	return how(t.tx)
}

// GetDBConn returns the home database, for gorm's DB method.
func (t *lazyTx) GetDBConn() (*sql.DB, error) { return t.pool.home, nil }

// atHome returns the transaction for a statement that no shard was chosen for.
func (t *lazyTx) atHome(ctx context.Context, query string) (*sql.Tx, error) {
	if err := t.pool.guard.unrouted(query); err != nil {
		return nil, err
	}
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

// savepoint runs the query where the transaction is bound to. Before that it is
// only noted: nothing has happened that could be rolled back.
func (t *lazyTx) savepoint(ctx context.Context, verb, query string) (sql.Result, error) {
	tx, err := t.note(ctx, verb, query)
	if tx == nil || err != nil {
		return driver.RowsAffected(0), err
	}
	return tx.ExecContext(ctx, query)
}

// note returns the transaction, or nil after it has noted the query.
func (t *lazyTx) note(ctx context.Context, verb, query string) (*sql.Tx, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.unlock()
	switch {
	case t.done:
		return nil, sql.ErrTxDone
	case t.tx == nil && verb == "SAVEPOINT ":
		t.savepoints = append(t.savepoints, query)
	}
	return t.tx, t.err
}
