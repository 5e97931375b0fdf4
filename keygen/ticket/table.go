// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/keygen"
)

// TableConfig configures a [Table].
type TableConfig struct {
	// DB is a pool of connections to one MySQL or MariaDB server. It is required. Use it for
	// tickets only, because the package changes settings of its sessions.
	DB *sql.DB

	// Name is the name of the table. Defaults to Tickets64.
	Name string

	// Numbering is the sequence of the server's ids. It is required, and must equal the
	// server's auto_increment_increment and auto_increment_offset.
	Numbering Numbering

	// From is the lowest id that the server may issue, for a server that an [Expansion] added
	// or whose data was restored. Defaults to 0: any.
	From int64
}

func (c TableConfig) withDefaults() TableConfig {
	if c.Name == "" {
		c.Name = "Tickets64"
	}
	return c
}

func (c TableConfig) validate() error {
	if c.DB == nil {
		return errNoDB
	}
	if err := c.Numbering.validate(); err != nil {
		return fmt.Errorf("ticket: TableConfig.Numbering: %w", err)
	}
	if c.From < 0 {
		return fmt.Errorf("ticket: TableConfig.From is %d; it is the lowest id that may be issued, 0 for any", c.From)
	}
	if err := dialect.CheckIdent(c.Name); err != nil {
		return fmt.Errorf("ticket: TableConfig.Name: %w", err)
	}
	return nil
}

// errNoDB is the error of a Table that NewTable did not make.
var errNoDB = errors.New("ticket: TableConfig.DB is nil; open the ticket server's database first")

// Table is the ticket table of one server. It is safe for concurrent use, and other programs
// may use the table, too. It needs no Close.
type Table struct {
	cfg     TableConfig
	text    statements
	highest atomic.Int64 // the highest id that this process got
	maxID   atomic.Int64 // the highest number that the column id can hold; 0 before it was checked

	severalPrimaries atomic.Bool // those of the server's replication group; false before the check
	gap              sqlrun.Gap  // before the next ticket, where there are several primaries
}

var _ Server = (*Table)(nil)

// NewTable returns the table. It does not ask the server yet.
func NewTable(cfg TableConfig) (*Table, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Table{cfg: cfg, text: newStatements(cfg)}, nil
}

// statements are the SQL texts, with the table's name and the numbering in them: parameters
// would cost two more round trips each.
type statements struct{ ticket, skip, session, lock, unlock, global, last string }

// refusal is an expression whose evaluation ends a statement with an error. A condition on rows
// would turn the statement into INSERT … SELECT, and the lock that this takes on the counter
// makes the statements of others fail.
const refusal = "(SELECT 1 UNION SELECT 2)"

// errRefused: the session's or the server's numbering is not the configured one.
var errRefused = errors.New("ticket: refused by the statement itself")

// lockWait is the number of seconds that LOCK TABLES waits for transactions of others that used
// the table. Single tickets of others wait as long.
const lockWait = 2

// idleTimeout is the number of seconds without a statement after which the server ends the
// session, and so frees the lock of a process that was stopped.
const idleTimeout = 10

func newStatements(c TableConfig) statements {
	var d dialect.MySQL
	table, id, stub := d.Quote(c.Name), d.Quote("id"), d.Quote("stub")
	inc, off := c.Numbering.Increment, c.Numbering.Offset
	is := func(scope string) string {
		return fmt.Sprintf("@@%s.auto_increment_increment = %d AND @@%[1]s.auto_increment_offset = %[3]d", scope, inc, off)
	}
	return statements{
		ticket:  "REPLACE INTO " + table + " (" + stub + ") VALUES (IF(" + is("SESSION") + " AND " + is("GLOBAL") + " AND @@autocommit = 1, 'a', " + refusal + "))",
		skip:    "REPLACE INTO " + table + " (" + id + ", " + stub + ") VALUES (%d, 'a')",
		session: fmt.Sprintf("SET SESSION auto_increment_increment = %d, auto_increment_offset = %d, autocommit = 1, lock_wait_timeout = %d, wait_timeout = %d", inc, off, lockWait, idleTimeout),
		lock:    "LOCK TABLES " + table + " WRITE",
		unlock:  "UNLOCK TABLES",
		global:  "SELECT @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment",
		last:    "SELECT COALESCE(MAX(" + id + "), 0) FROM " + table,
	}
}

// Numbering returns the configured offset and increment.
func (t *Table) Numbering() (offset, increment int64) {
	return t.cfg.Numbering.Offset, t.cfg.Numbering.Increment
}

// Reserve takes n tickets, n at least 1.
func (t *Table) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("ticket: cannot reserve %d ids", n)
	}
	if err := t.gap.Wait(ctx); err != nil {
		return keygen.Span{}, fmt.Errorf("ticket: table %s: %w", t.cfg.Name, err)
	}
	var first int64
	began := time.Now()
	err := t.with(ctx, func(conn *sql.Conn) (err error) {
		first, err = t.take(ctx, conn, n)
		return err
	})
	if errors.Is(err, keygen.ErrReadOnly) && t.highest.Load() == 0 { // a running generator waits: a fail-over may be under way
		err = &keygen.SetupError{Err: err, Cure: "connect to the primary, which takes changes: this server is a replica, or is set read-only"}
	}
	if err != nil && strings.Contains(err.Error(), "VT12001") { // vtgate's for what it does not support
		err = &keygen.SetupError{Err: err, Cure: "connect to the MySQL server itself: Vitess' vtgate sets no auto_increment_increment for a session and locks no tables; by vtgate, set Config.Step to 1 and the server's global settings to the Numbering, or take ids from a Tag of leaf_alloc"}
	}
	if err != nil {
		return keygen.Span{}, err
	}
	span := keygen.Span{First: first, Count: n, Step: t.cfg.Numbering.Increment}
	for known := t.highest.Load(); span.Last() > known && !t.highest.CompareAndSwap(known, span.Last()); {
		known = t.highest.Load()
	}
	if t.severalPrimaries.Load() {
		t.gap.Begin(time.Since(began))
	}
	return span, nil
}

func (t *Table) take(ctx context.Context, conn *sql.Conn, n int64) (first int64, err error) {
	if err := t.checkColumn(ctx, conn); err != nil {
		return 0, err
	}
	if n == 1 {
		return t.single(ctx, conn)
	}
	if first, err = t.locked(ctx, conn, n); err != nil {
		discard(conn) // this frees its lock
	}
	return first, err
}

// locked takes a ticket and the n-1 after it, under the table's lock.
func (t *Table) locked(ctx context.Context, conn *sql.Conn, n int64) (first int64, err error) {
	for _, text := range []string{t.text.session, t.text.lock} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return 0, err
		}
	}
	if first, err = t.single(ctx, conn); err != nil {
		return 0, err
	}
	inc := t.cfg.Numbering.Increment
	if n-1 >= (t.maxTicket()-first)/inc {
		return 0, t.columnFull(fmt.Sprintf("%d tickets are wanted from %d on", n, first))
	}
	for _, text := range []string{fmt.Sprintf(t.text.skip, first+(n-1)*inc), t.text.unlock} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// single takes one ticket. If the session's settings are not the configured ones, because the
// pool has just opened it or the server's settings changed, it corrects them first.
func (t *Table) single(ctx context.Context, conn *sql.Conn) (int64, error) {
	known := t.highest.Load()
	id, err := t.replace(ctx, conn)
	if errors.Is(err, errRefused) {
		if _, err := conn.ExecContext(ctx, t.text.session); err != nil {
			return 0, err
		}
		id, err = t.replace(ctx, conn)
	}
	switch n := t.cfg.Numbering; {
	case errors.Is(err, errRefused):
		return 0, t.explain(ctx, conn)
	case err != nil:
		return 0, err
	case id < 1 || id > t.maxTicket()-n.Increment:
		return 0, t.columnFull("it gave the last ticket")
	case !n.holds(keygen.Span{First: id, Count: 1}):
		return 0, &NumberingError{Want: n, Got: Numbering{id, n.Increment}}
	case id <= known: // checked here, before a whole span is reserved
		return 0, fmt.Errorf("%w: it gave %d after %d; was it replaced by a copy? Raise AUTO_INCREMENT above the ids in use", keygen.ErrRegressed, id, known)
	case id < t.cfg.From:
		return 0, fmt.Errorf("%w: it gave %d, below From, which is %d; run ALTER TABLE %s AUTO_INCREMENT = %[3]d there",
			keygen.ErrRegressed, id, t.cfg.From, t.cfg.Name)
	}
	return id, nil
}

// errTaken: another member of the server's cluster gave the same number and committed first.
var errTaken = errors.New("ticket: another member of the cluster gave the same number")

// replace draws a ticket. It retries when the statement was chosen as the victim of a deadlock,
// of a lock timeout, or of a conflict with another member of a cluster.
func (t *Table) replace(ctx context.Context, conn *sql.Conn) (id int64, err error) {
	err = sqlrun.Retry(ctx, errTaken, func() error {
		res, err := conn.ExecContext(ctx, t.text.ticket)
		if n, taken := dialect.NumberTaken(err); taken && n < t.maxTicket()-t.cfg.Numbering.Increment {
			return fmt.Errorf("%w: %w", errTaken, err)
		}
		if err == nil {
			id, err = res.LastInsertId()
		}
		return err
	})
	switch {
	case err == nil:
		return id, nil
	case strings.Contains(err.Error(), "Error 1242"): // of the refusal
		return 0, errRefused
	case errors.Is(err, errTaken):
		return 0, err
	case strings.Contains(err.Error(), "Error 1062"), dialect.FaultOf(err) == dialect.OutOfRange: // of the number, as REPLACE takes any stub
		return 0, fmt.Errorf("%w: %w", t.columnFull("the last ticket was given"), err)
	}
	return 0, err
}

// explain returns the reason why the server refused a ticket on a session with the configured
// settings.
func (t *Table) explain(ctx context.Context, conn *sql.Conn) error {
	got, err := t.settings(ctx, conn)
	switch {
	case err != nil:
		return err
	case got != t.cfg.Numbering:
		return &NumberingError{Want: t.cfg.Numbering, Got: got, Galera: numbersItself(ctx, conn)}
	}
	return errors.New("the session does not keep its settings; a proxy may share connections: connect to the server itself")
}

// numbersItself returns true if the server is a member of a Galera cluster that chooses its
// numbering. A server without Galera does not know the setting.
func numbersItself(ctx context.Context, conn *sql.Conn) (itself bool) {
	err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.wsrep_on AND @@GLOBAL.wsrep_auto_increment_control").Scan(&itself)
	return err == nil && itself
}

func (t *Table) settings(ctx context.Context, conn *sql.Conn) (n Numbering, err error) {
	err = conn.QueryRowContext(ctx, t.text.global).Scan(&n.Offset, &n.Increment)
	return n, err
}

// Live is the state of a server's counter, for planning an [Expansion].
type Live struct {
	Numbering Numbering // the server's settings, not the configured ones
	Last      int64     // the highest id issued so far, 0 for none
}

// Live reads the state of the server's counter.
func (t *Table) Live(ctx context.Context) (l Live, err error) {
	err = t.with(ctx, func(conn *sql.Conn) (err error) {
		if l.Numbering, err = t.settings(ctx, conn); err != nil {
			return err
		}
		return conn.QueryRowContext(ctx, t.text.last).Scan(&l.Last)
	})
	return l, err
}

// with runs f on one connection.
func (t *Table) with(ctx context.Context, f func(*sql.Conn) error) error {
	if t.cfg.DB == nil {
		return errNoDB
	}
	conn, err := t.cfg.DB.Conn(ctx)
	if err == nil {
		err = f(conn)
		_ = conn.Close() // returns the connection to the pool
	}
	if err != nil {
		return fmt.Errorf("ticket: table %s: %w", t.cfg.Name, explained(err))
	}
	return nil
}

// cures says what to do about errors that a retry cannot cure.
var cures = map[dialect.Fault]string{
	dialect.NoRight:    "give the user SELECT, INSERT, DELETE and LOCK TABLES for the table of tickets",
	dialect.NoColumn:   "the table differs from the one in the package's comment; change it to that form",
	dialect.NoLogin:    "check user and password in the DSN",
	dialect.NoDatabase: "check which database the DSN names, and create it when it is the right one",
}

// explained adds to a server's error what to do, if a retry cannot cure it.
func explained(err error) error {
	fault := dialect.FaultOf(err)
	if fault == dialect.NoTable {
		return fmt.Errorf("%w: the server has no such table; create it as the package's comment says: %w", keygen.ErrUnknownTag, err)
	}
	if cure, ok := cures[fault]; ok {
		return &keygen.SetupError{Err: err, Cure: cure}
	}
	if dialect.ServerReadOnly(err) {
		return fmt.Errorf("%w: %w", keygen.ErrReadOnly, err)
	}
	return err
}

// discard closes a connection instead of returning it to the pool.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }
