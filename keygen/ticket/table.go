package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// TableConfig configures a [Table].
type TableConfig struct {
	// DB is a pool of connections to one MySQL or MariaDB server. It is required,
	// and for tickets only: its sessions get settings that the application's own
	// statements should not have.
	DB *sql.DB

	// Name of the table. Defaults to Tickets64.
	Name string

	// Numbering is how the server counts. It is required, and the server's own
	// auto_increment_increment and auto_increment_offset must say the same.
	Numbering Numbering

	// From is the lowest id that the server may give, for one that an
	// [Expansion] added or whose data was restored. Defaults to 0: any.
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
		return fmt.Errorf("ticket: TableConfig.From is %d; it is the lowest id that may be given, 0 for any", c.From)
	}
	if err := dialect.CheckIdent(c.Name); err != nil {
		return fmt.Errorf("ticket: TableConfig.Name: %w", err)
	}
	return nil
}

// errNoDB is what a Table says that NewTable has not made.
var errNoDB = errors.New("ticket: TableConfig.DB is nil; open the ticket server's database first")

// Table is the table of tickets of one server. It is safe for concurrent use,
// by other programs too, and holds nothing that needs closing.
type Table struct {
	cfg     TableConfig
	text    statements
	highest atomic.Int64 // that this process was given
	most    atomic.Int64 // what the column id holds at most; 0 until it was looked at
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

// statements are the texts with the table's name and the numbering in them:
// with parameters each would take two more round trips.
type statements struct{ ticket, skip, session, lock, unlock, global, last string }

// refusal is an expression whose evaluation ends a statement with an error. (A
// condition on rows would make the statement an INSERT … SELECT, whose lock on
// the counter lets those of others fail.)
const refusal = "(SELECT 1 UNION SELECT 2)"

// errRefused: the session or the server does not count as it is to.
var errRefused = errors.New("ticket: refused by the statement itself")

// lockWait is how many seconds LOCK TABLES waits for transactions of others
// that have used the table. While it waits, their single tickets wait too.
const lockWait = 2

// idleWait is after how many seconds without a statement the server ends the
// session, and with it the lock of a process that was stopped while it had it.
const idleWait = 10

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
		session: fmt.Sprintf("SET SESSION auto_increment_increment = %d, auto_increment_offset = %d, autocommit = 1, lock_wait_timeout = %d, wait_timeout = %d", inc, off, lockWait, idleWait),
		lock:    "LOCK TABLES " + table + " WRITE",
		unlock:  "UNLOCK TABLES",
		global:  "SELECT @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment",
		last:    "SELECT COALESCE(MAX(" + id + "), 0) FROM " + table,
	}
}

// Numbering returns the configured one.
func (t *Table) Numbering() (offset, increment int64) {
	return t.cfg.Numbering.Offset, t.cfg.Numbering.Increment
}

// Reserve takes n tickets, n at least 1.
func (t *Table) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("ticket: cannot reserve %d ids", n)
	}
	var first int64
	err := t.with(ctx, func(conn *sql.Conn) (err error) {
		first, err = t.take(ctx, conn, n)
		return err
	})
	if errors.Is(err, keygen.ErrReadOnly) && t.highest.Load() == 0 { // who runs waits: a fail-over may be under way
		err = &keygen.SetupError{Err: err, Cure: "connect to the primary, which takes changes: this server is a replica, or is set read-only"}
	}
	if err != nil {
		return keygen.Span{}, err
	}
	span := keygen.Span{First: first, Count: n, Step: t.cfg.Numbering.Increment}
	for known := t.highest.Load(); span.Last() > known && !t.highest.CompareAndSwap(known, span.Last()); {
		known = t.highest.Load()
	}
	return span, nil
}

func (t *Table) take(ctx context.Context, conn *sql.Conn, n int64) (first int64, err error) {
	if err := t.look(ctx, conn); err != nil {
		return 0, err
	}
	if n == 1 {
		return t.single(ctx, conn)
	}
	if first, err = t.locked(ctx, conn, n); err != nil {
		drop(conn) // with its lock, if it has one
	}
	return first, err
}

// locked takes a ticket and the n-1 after it. Nobody else draws one meanwhile.
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
	if n-1 >= (t.end()-first)/inc {
		return 0, t.full(fmt.Sprintf("%d tickets are wanted from %d on", n, first))
	}
	for _, text := range []string{fmt.Sprintf(t.text.skip, first+(n-1)*inc), t.text.unlock} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// single takes one ticket. A session that the pool has just opened, or that was
// opened before the server's settings were changed, is set right first.
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
	case id < 1 || id > t.end()-n.Increment:
		return 0, t.full("it gave the last ticket")
	case !n.holds(keygen.Span{First: id, Count: 1}):
		return 0, &NumberingError{Want: n, Got: Numbering{id, n.Increment}}
	case id <= known: // found here, before a whole span is taken of it
		return 0, fmt.Errorf("%w: it gave %d after %d; was it replaced by a copy? Raise AUTO_INCREMENT above the ids in use", keygen.ErrRegressed, id, known)
	case id < t.cfg.From:
		return 0, fmt.Errorf("%w: it gave %d, below From, which is %d; run ALTER TABLE %s AUTO_INCREMENT = %[3]d there",
			keygen.ErrRegressed, id, t.cfg.From, t.cfg.Name)
	}
	return id, nil
}

// replace draws a ticket, again and again as long as it meets others who do and
// one has to give way.
func (t *Table) replace(ctx context.Context, conn *sql.Conn) (int64, error) {
	for {
		res, err := conn.ExecContext(ctx, t.text.ticket)
		switch {
		case err == nil:
			return res.LastInsertId()
		case strings.Contains(err.Error(), "Error 1242"): // of the refusal
			return 0, errRefused
		case strings.Contains(err.Error(), "Error 1062"), dialect.FaultOf(err) == dialect.OutOfRange: // of the number, as REPLACE takes any stub
			return 0, fmt.Errorf("%w: %w", t.full("the last ticket was given"), err)
		case !dialect.Contended(err) || ctx.Err() != nil:
			return 0, err
		}
	}
}

// explain says why the server gave no ticket on a session that we have set.
func (t *Table) explain(ctx context.Context, conn *sql.Conn) error {
	got, err := t.settings(ctx, conn)
	switch {
	case err != nil:
		return err
	case got != t.cfg.Numbering:
		return &NumberingError{Want: t.cfg.Numbering, Got: got}
	}
	return errors.New("the session does not keep its settings; is there a proxy that shares connections? connect to the server itself")
}

func (t *Table) settings(ctx context.Context, conn *sql.Conn) (n Numbering, err error) {
	err = conn.QueryRowContext(ctx, t.text.global).Scan(&n.Offset, &n.Increment)
	return n, err
}

// Live is where a server's counter stands, for planning an [Expansion].
type Live struct {
	Numbering Numbering // as the server is set, not as we expect it
	Last      int64     // the highest id given so far, 0 for none
}

// Live asks the server where its counter stands.
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
		_ = conn.Close() // only hands it back to the pool
	}
	if err != nil {
		return fmt.Errorf("ticket: table %s: %w", t.cfg.Name, explained(err))
	}
	return nil
}

// cures say what to do about faults that another try meets again.
var cures = map[dialect.Fault]string{
	dialect.NoRight:    "give the user SELECT, INSERT, DELETE and LOCK TABLES for the table of tickets",
	dialect.NoColumn:   "the table is not as the package's comment says; make it so",
	dialect.NoLogin:    "check user and password in the DSN",
	dialect.NoDatabase: "check which database the DSN names, and create it when it is the right one",
}

// explained adds to an error of the server what to do about it, when nothing but
// doing it helps.
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

// drop keeps a connection from going back to the pool.
func drop(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }
