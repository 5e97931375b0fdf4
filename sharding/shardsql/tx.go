// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
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
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// transaction begins on each database with its first statement there. It begins on one database
// only, unless the router allows transactions that span databases.
type transaction struct {
	session    *session
	ctx        context.Context //nolint:containedctx // of BeginTx, because Commit has no context
	options    driver.TxOptions
	spans      bool
	atomic     bool      // it commits on all databases or on none
	gtid       string    // the name of its branches, set when it begins on a second database
	parts      []*txPart // in the order in which they began
	savepoints []savepoint
	done       bool // a statement has been executed
	planned    bool // a statement has been planned, so the server is known
	copies     bool // it has only read broadcast tables, of which other databases have copies, too
	// mayHaveEnded: a text such as CREATE TABLE may have ended it on the home database, which then commits each statement by itself.
	mayHaveEnded bool
	// afterSwitch is the database on which it would have begun after a switch, for previews, and
	// unplaced says that it would then have written a row to a database that is not known.
	afterSwitch *sql.DB
	unplaced    bool
	// broken is the reason why nothing of it may be committed, or nil.
	broken error
	owners lookupChanges // its changes of lookup tables
	// locked are the slots of rows that it has locked by queries and has written none of, with their targets: see noteLocks.
	locked map[slotOf]sharding.Target
	// failed is the error after which PostgreSQL executes no more of its statements, or nil.
	failed error
	times  map[string]string // of functions of PostgreSQL that read the clock: see clock.times
}

// txPart is the part of a transaction on one database.
type txPart struct {
	pool    *sql.DB
	since   *sharding.Snapshot // when it began
	level   string             // its isolation level if that is the server's default, "" before the server was asked
	inner   inner.Conn
	tx      driver.Tx // nil for a branch
	branch  *branch   // set for an atomic transaction, on all databases but the first
	marked  bool      // the savepoint of the present statement is set
	undo    string    // undoes the present statement
	keep    string    // keeps it
	entries []*txPart // the parts that have the entries of its rows in lookup tables
	// session is true for the connection of a session at home, which outlives the transaction.
	session bool
	kept    inner.Kept // for other connections
	twice   bool       // the server accepts ROLLBACK after the end of the transaction, unlike SQLite
	ends    func()     // ends the context of tx
	// detach keeps the end of the transaction's context from ending that of tx, and returns false if it is too late. It is
	// nil if both are one.
	detach func() bool
}

// leave returns the connection to its pool.
func (b *txPart) leave() error {
	if b.session {
		return nil
	}
	return b.inner.Leave()
}

func (s *session) newTransaction(ctx context.Context, options driver.TxOptions) *transaction {
	mode := s.database.router.TxMode()
	return &transaction{session: s, ctx: ctx, options: options, spans: mode != sharding.SingleShard, atomic: mode == sharding.Atomic && !options.ReadOnly}
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx returns a transaction that begins with its first statement. It reads routes of migrations
// that were not read yet, because later the transaction may hold the connection that this needs. If
// a route cannot be read, the first statement that needs it is refused.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if router := c.database.router; router.Unread() {
		_ = router.Load(ctx) // the statement that needs the route returns the error
	}
	c.tx = c.newTransaction(ctx, options)
	return c.tx, nil
}

// join returns the transaction's part on a database. If there is none, it begins there.
func (t *transaction) join(ctx context.Context, pool *sql.DB) (*txPart, error) {
	if err := t.ended(); err != nil {
		return nil, err
	}
	if b := t.has(pool); b != nil {
		t.copies = false
		return b, nil
	}
	if len(t.parts) > 0 && !t.spans {
		return nil, t.crossing(t.parts[0].pool, pool)
	}
	since := t.session.database.router.Snapshot()
	b, err := t.begin(ctx, pool)
	if err != nil {
		return nil, err
	}
	b.since = since
	t.parts = append(t.parts, b)
	return b, nil
}

// staysInOne reports whether there is a transaction that may not span databases.
func (t *transaction) staysInOne() bool { return t != nil && !t.spans }

// has returns the transaction's part on a database, or nil.
func (t *transaction) has(pool *sql.DB) *txPart {
	if t != nil {
		for _, b := range t.parts {
			if b.pool == pool {
				return b
			}
		}
	}
	return nil
}

// crossing returns the refusal of a statement for another database.
func (t *transaction) crossing(first, pool *sql.DB) error {
	d, hint := t.session.database, "use one transaction for each database"
	if t.copies {
		hint = "read the broadcast table after the first statement of this database, which has a copy, or outside of the transaction"
	}
	return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: it has begun on %s, and this statement is for %s", sharding.ErrCrossDatabase, d.nameOf(first), d.nameOf(pool)),
		Hint: hint + ", or " + plan.LetSpan}
}

// transactionFor returns the present transaction, or the one that a write, or a query that locks rows, needs. It returns nil for
// another query.
func (s *session) transactionFor(ctx context.Context, to *plan.Route) *transaction {
	if s.tx != nil || to.Kind == plan.Scatter && !to.Shards.Locks {
		return s.tx
	}
	return s.newTransaction(ctx, driver.TxOptions{})
}

// admit refuses, before anything is sent, a statement for databases that the transaction may not span.
func (t *transaction) admit(to *plan.Route) error {
	if t == nil {
		return nil
	}
	if err := t.ended(); err != nil {
		return err
	}
	if err := spanning(t, to); err != nil || t.spans || len(t.parts) == 0 {
		return err
	}
	if pool := t.session.database.only(to); pool != t.parts[0].pool {
		return t.crossing(t.parts[0].pool, pool)
	}
	return nil
}

// spanning refuses a statement for several databases that a transaction may not span.
func spanning(t *transaction, to *plan.Route) error {
	if !t.staysInOne() {
		return nil
	}
	if to.Kind == plan.Copies {
		return &sharding.RouteError{Op: "write of broadcast table", Table: to.Target.Table, Err: sharding.ErrCrossDatabase,
			Hint: "it is written in every database; write it outside of the transaction (with gorm, db.Omit(\"Tags.*\").Create(&order) leaves the rows of " + to.Target.Table + " in a relation Tags out), or " + plan.LetSpan}
	}
	d := t.session.database
	if pools := d.pools(to); len(pools) > 1 {
		slices.SortFunc(pools, d.comparePools)
		return to.Spanning(d.nameOf(pools[0]), d.nameOf(pools[1]))
	}
	return nil
}

// admitEnd refuses a text that would end the transaction on the home database alone, such as COMMIT, or a CREATE TABLE of MySQL
// and MariaDB. If the transaction has begun there only, it does not span databases afterwards. The exception is a statement
// that commits implicitly with BestEffort, because migrations of a schema create tables and fill them in one transaction.
func admitEnd(t *transaction, e *effects.Effects, query string) error {
	if t == nil || !e.Ends {
		return nil
	}
	if t.mayHaveEnded = true; !t.spans {
		return nil
	}
	if others := slices.ContainsFunc(t.parts, func(b *txPart) bool { return b.pool != t.session.database.home }); others {
		return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %.40q would end it on the home database alone", sharding.ErrCrossDatabase, query),
			Hint: "end it with Commit or Rollback of the transaction, and create or alter tables outside of it"}
	}
	t.spans = !t.atomic && e.Change != effects.Ends
	return nil
}

// begin begins on a database, and sets the transaction's savepoints there.
func (t *transaction) begin(ctx context.Context, pool *sql.DB) (*txPart, error) {
	b, err := onUnbroken(ctx, t.session, pool, func() (*txPart, error) { return beginOn(ctx, t, pool) })
	if err != nil {
		return nil, err
	}
	for _, s := range t.savepoints {
		if err := b.inner.Run(ctx, s.text); err != nil {
			return nil, dialect.JoinErrors(err, b.rollback())
		}
	}
	return b, nil
}

// onUnbroken does something on a connection to a database, and again on another one while they are broken and the session does not
// hold them. After a restart of the server all idle connections of its pool are broken.
func onUnbroken[T any](ctx context.Context, s *session, pool *sql.DB, do func() (T, error)) (T, error) {
	answer, err := do()
	for left := pool.Stats().Idle; err != nil && left >= 0; left-- {
		_, holds := s.held(pool)
		hasEnded := ctx.Err() != nil || s.tx != nil && s.tx.ctx.Err() != nil
		if holds || hasEnded || dialect.Interrupted(err) || isUnreachable(err) || isRefusal(err) || s.database.answered(err) {
			break
		}
		answer, err = do()
	}
	return answer, err
}

// beginOn begins on a connection to a database.
func beginOn(ctx context.Context, t *transaction, pool *sql.DB) (*txPart, error) {
	in, err := t.session.heldOrNew(ctx, pool)
	if err != nil {
		return nil, err
	}
	b := &txPart{pool: pool, inner: in, session: in.Kept != nil, twice: t.session.database.server.Name() != "sqlite"}
	if !b.session {
		b.inner.Kept = &b.kept
	}
	if t.atomic && len(t.parts) > 0 {
		err = t.beginBranch(ctx, b)
	} else {
		err = b.begin(ctx, t)
	}
	if err != nil {
		return nil, dialect.JoinErrors(err, b.leave())
	}
	return b, nil
}

// begin begins the part with the context of its transaction, because drivers use that of BEGIN for COMMIT and
// ROLLBACK, too, and the statement's may end before. The end of either ends BEGIN itself.
func (b *txPart) begin(ctx context.Context, t *transaction) error {
	own, stop := t.ctx, func() bool { return true }
	if err := own.Err(); err != nil {
		return err
	}
	b.ends = func() {}
	if t.spans && !t.atomic && own.Done() != nil {
		var cancel func()
		own, cancel = context.WithCancel(context.WithoutCancel(own))
		b.detach = context.AfterFunc(t.ctx, cancel)
		b.ends = func() { b.detach(); cancel() }
	}
	if ctx.Done() != own.Done() {
		if b.detach == nil {
			own, b.ends = context.WithCancel(own)
		}
		stop = context.AfterFunc(ctx, b.ends)
	}
	err := b.inner.SQL.Raw(func(raw any) (err error) {
		if b.tx, err = beginRaw(own, raw.(driver.Conn), t.options); err == nil && !stop() {
			_ = b.tx.Rollback() // the connection is closed
			return driver.ErrBadConn
		}
		return err
	})
	if err == nil {
		return nil
	}
	stop()
	b.ends()
	return cmp.Or(ctx.Err(), err)
}

func beginRaw(ctx context.Context, on driver.Conn, options driver.TxOptions) (driver.Tx, error) {
	if b, ok := on.(driver.ConnBeginTx); ok {
		return b.BeginTx(ctx, options)
	}
	if options != (driver.TxOptions{}) {
		return nil, errors.New("shardsql: the driver knows neither isolation levels nor read-only transactions")
	}
	return on.Begin() //nolint:staticcheck // drivers without contexts have nothing else
}

// Commit ends the transaction, on one database after another, and stops at the first error. A
// transaction without a statement pings the home database, because a transaction on a closed pool
// must not succeed.
func (t *transaction) Commit() (err error) {
	t.leave()
	defer func() { t.deleteStaleEntries(err == nil) }()
	if err := cmp.Or(t.checkAlive(), checkLocks(t)); err != nil {
		_ = rollBack(t.parts) // the cause is returned: a broken connection here does not matter
		return err
	}
	switch {
	case len(t.parts) == 0:
		return t.session.Ping(t.ctx)
	case t.atomic && len(t.parts) > 1:
		return t.commitAtomically()
	}
	attach, err := detach(t.ctx, t.parts)
	if err != nil {
		_ = rollBack(t.parts)
		return err
	}
	defer attach()
	t.parts = entriesFirst(t.parts)
	for i, b := range t.parts {
		if err := b.end(b.tx.Commit); err != nil {
			return t.partialCommit(i, err)
		}
	}
	return nil
}

// detach lets the databases commit, one after another, although the transaction's context ends meanwhile: otherwise some
// would have committed and others not. It gives up when the context has ended for endTimeout.
func detach(ctx context.Context, all []*txPart) (attach func() bool, _ error) {
	if len(all) < 2 {
		return func() bool { return true }, nil
	}
	for _, b := range all {
		if b.detach != nil && !b.detach() {
			return nil, ctx.Err()
		}
	}
	return context.AfterFunc(ctx, func() {
		time.AfterFunc(endTimeout, func() {
			for _, b := range all {
				b.ends()
			}
		})
	}), nil
}

// entriesFirst sorts the parts so that each commits after those with its entries in lookup tables: an entry without a row does
// no harm, and a row without its entry is not found by its value. Of parts that have entries of each other the first begun
// is the last.
func entriesFirst(all []*txPart) []*txPart {
	sorted, seen := make([]*txPart, 0, len(all)), map[*txPart]bool{}
	var add func(*txPart)
	add = func(b *txPart) {
		if seen[b] {
			return
		}
		seen[b] = true
		for _, first := range b.entries {
			add(first)
		}
		sorted = append(sorted, b)
	}
	for _, b := range all {
		add(b)
	}
	return sorted
}

// RecordError records the error of a statement. After an error PostgreSQL executes no more statements of
// the transaction, and rolls it back at COMMIT; the same must happen on its other databases. MySQL
// and MariaDB end a deadlock by rolling a whole transaction back, and would execute further
// statements outside of any transaction.
func (t *transaction) RecordError(err error) {
	switch {
	case t == nil || !t.planned:
	case t.session.database.server.Name() == "postgres":
		if t.failed == nil && dialect.SQLState(err) != "" {
			t.failed = err
		}
	case t.broken == nil && len(t.parts) > 0 && dialect.Deadlocked(err):
		t.broken = rolledBack(err)
	}
}

// rolledBack returns the error of all statements after the server has rolled the whole transaction
// back.
func rolledBack(err error) error {
	return fmt.Errorf("shardsql: the server has rolled the whole transaction back; end it with ROLLBACK, and begin a new one: %w", err)
}

// ended returns the reason why no statement may be executed and nothing committed, or nil.
func (t *transaction) ended() error {
	switch {
	case t.broken == nil && isLost(t.failed):
		return &causedError{abortedError{}, t.failed}
	case t.broken == nil && t.failed != nil:
		return abortedError{}
	}
	return t.broken
}

// checkAlive returns why the transaction cannot commit. Before the first of several databases commits, it
// finds one that can no longer commit: MySQL's and MariaDB's drivers close the connection of a statement whose context ends.
// PostgreSQL answers COMMIT with a rollback if a statement failed while its rows were read, and with an error if a
// deferred constraint is violated, which it checks now.
func (t *transaction) checkAlive() error {
	if t.broken == nil && t.failed != nil {
		return &causedError{abortedError{}, t.failed}
	}
	if t.broken != nil || len(t.parts) < 2 {
		return t.broken
	}
	asks := t.session.database.server.Name() == "postgres"
	for _, b := range t.parts {
		if asks {
			switch err := b.inner.Run(t.ctx, "SET CONSTRAINTS ALL IMMEDIATE"); {
			case dialect.SQLState(err) == inFailedTransaction:
				return &causedError{abortedError{}, err}
			case err != nil && !t.session.database.answered(err):
				return t.lostOn(b, fmt.Errorf("%w: %w", errLost, cmp.Or(t.ctx.Err(), lost(err)))) // drivers close the connection at the end of the context
			case err != nil:
				return err
			}
		} else if !b.inner.Valid() {
			return t.lostOn(b, cmp.Or(t.ctx.Err(), errLost))
		}
	}
	return nil
}

// lostOn returns the error of a COMMIT that found the connection to a database lost.
func (t *transaction) lostOn(b *txPart, err error) error {
	return fmt.Errorf("shardsql: nothing is committed: on %s %w; begin a new transaction", t.session.database.nameOf(b.pool), err)
}

// abortedError is the error of statements after one that failed. It neither wraps nor names the error of that one: a program
// that expects a duplicate key of an INSERT must not take it for the answer to the next.
type abortedError struct{}

func (abortedError) Error() string {
	return "shardsql: the transaction is aborted because a statement failed; end it with ROLLBACK, or continue after ROLLBACK TO a savepoint (SQLSTATE " + inFailedTransaction + ")"
}

// SQLState returns in_failed_sql_transaction.
func (abortedError) SQLState() string { return inFailedTransaction }

// causedError is the error of COMMIT after a statement that failed, and of statements after one that found its connection lost or could
// not reach its database. It wraps the error of that statement, from which a program learns whether to begin again: GORM's dialect of
// PostgreSQL does not return the errors of SAVEPOINT and ROLLBACK TO.
type causedError struct {
	abortedError

	cause error
}

func (e *causedError) Error() string { return e.abortedError.Error() + ": " + e.cause.Error() }

func (e *causedError) Unwrap() error { return e.cause }

const inFailedTransaction = "25P02"

// partialCommit rolls back the databases that have not committed, and returns which ones have. The first one may
// have committed, too, if it has not answered.
func (t *transaction) partialCommit(failed int, cause error) error {
	rest := t.parts[failed+1:]
	_ = rollBack(rest) // the cause is returned
	d := t.session.database
	if failed == 0 && (len(rest) == 0 || d.answered(cause)) {
		return cause
	}
	partial := &sharding.PartialCommitError{Failed: map[string]error{d.shortNameOf(t.parts[failed].pool): lost(cause)}}
	for _, b := range t.parts[:failed] {
		partial.Committed = append(partial.Committed, d.shortNameOf(b.pool))
	}
	for _, b := range rest {
		partial.Failed[d.shortNameOf(b.pool)] = errRolledBack
	}
	return partial
}

var (
	errRolledBack = errors.New("rolled back")
	errLost       = errors.New("the connection was lost before COMMIT")
	errUnanswered = errors.New("the connection was lost")
)

// answered reports whether a database has refused a COMMIT. SQLite always answers.
func (d *database) answered(err error) bool {
	return d.server.Name() == "sqlite" && !errors.Is(err, driver.ErrBadConn) || dialect.Answered(err)
}

// isLost reports whether a statement found its connection lost, or its database out of reach. PostgreSQL also ends the connection of a transaction
// that was idle, or took, longer than it may (25P03, 25P04).
func isLost(err error) bool {
	state := dialect.SQLState(err)
	return dialect.Unavailable(err) && !dialect.Interrupted(err) || state == "25P03" || state == "25P04"
}

// lost replaces driver.ErrBadConn, because database/sql would execute the statement again, although
// a database may have committed it: some drivers return it for a lost answer, too.
func lost(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return errUnanswered
	}
	return err
}

func (t *transaction) Rollback() error {
	t.leave()
	defer t.deleteStaleEntries(false)
	return rollBack(t.parts)
}

// leave detaches the transaction from its outer connection.
func (t *transaction) leave() {
	if t.session.tx == t {
		t.session.tx = nil
		t.session.history.endTransaction(t.session.home.SQL)
	}
}

func rollBack(all []*txPart) error {
	var err error
	for _, b := range all {
		err = dialect.JoinErrors(err, b.rollback())
	}
	return err
}

func (b *txPart) rollback() error {
	if b.branch != nil {
		return b.branch.rollback()
	}
	return b.end(b.tx.Rollback)
}

// end ends the transaction's part on a database and releases the connection. If the connection may
// still be in the transaction, end closes it, so that it is not used again.
func (b *txPart) end(by func() error) error {
	defer b.ends()
	var failed error
	err := b.inner.Raw(func(raw any) error {
		if failed = by(); failed != nil && !(b.twice && isUsable(raw, failed)) && b.tx.Rollback() != nil {
			return driver.ErrBadConn
		}
		return nil
	})
	if errors.Is(err, driver.ErrBadConn) { // the connection is closed
		return cmp.Or(failed, err)
	}
	return dialect.JoinErrors(dialect.JoinErrors(failed, err), b.leave())
}

// isUsable reports whether a connection is usable after an error of COMMIT, and in no transaction. It sends ROLLBACK as a
// text, because after COMMIT the transaction of a driver refuses to roll back, or closes the connection.
func isUsable(raw any, failed error) bool {
	e, is := raw.(driver.ExecerContext)
	if !is || errors.Is(failed, driver.ErrBadConn) {
		return false
	}
	ctx, done := context.WithTimeout(context.Background(), endTimeout)
	defer done()
	_, err := e.ExecContext(ctx, "ROLLBACK", nil)
	return err == nil
}

// levels are the queries for the isolation level of a transaction that has begun with the default one. SQLite has one level.
var levels = map[string]string{
	"mysql":    "SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')",
	"postgres": "SELECT '', current_setting('transaction_isolation')",
}

// isRepeatable reports whether all queries of the part see the same rows. A server has its own default isolation level, for which it is
// asked once, and not if mayAsk is false. The answer is yes if the server does not tell.
func (b *txPart) isRepeatable(ctx context.Context, t *transaction, server string, mayAsk bool) bool {
	query, level := levels[server], sql.IsolationLevel(t.options.Isolation)
	if query == "" || level != sql.LevelDefault {
		return query == "" || level >= sql.LevelRepeatableRead
	}
	if b.level == "" && mayAsk {
		var name string
		if err := b.inner.SQL.QueryRowContext(ctx, query).Scan(&name, &b.level); err != nil {
			b.level = ""
		}
	}
	return !strings.HasPrefix(strings.ToLower(b.level), "read")
}
