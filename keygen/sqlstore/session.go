package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// tidyLimit is for what has to be done when the context has ended already.
const tidyLimit = 50 * time.Millisecond

// errSkipped: all rows that would do are locked by others at this moment.
var errSkipped = errors.New("sqlstore: other processes hold the locks on all rows that would do")

// session is one connection on which all statements of a task run. Their texts
// have names in double quotes and ? for arguments, whatever the server.
type session struct {
	conn   *sql.Conn
	server dialect.Server
}

// do runs f on a connection of its own, and again while another writer is in the
// way; f must be repeatable after an error that says so.
func (s *Store) do(ctx context.Context, f func(session) error) error {
	err := s.try(ctx, f)
	if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err) // the driver may only say that the connection has gone
	}
	return explained(err)
}

// errOtherKind: the server is not of the kind that the store's statements are for.
var errOtherKind = errors.New("sqlstore: the database is now of another kind, or in another cluster")

// try asks the database anew what it is when that turned out to be another thing
// than before.
func (s *Store) try(ctx context.Context, f func(session) error) (err error) {
	if s == nil || s.db == nil {
		return errNoDB
	}
	const kinds = 3
	for range kinds {
		if err = s.tryOnce(ctx, f); !errors.Is(err, errOtherKind) && !dialect.UnknownVariable(err) {
			return err
		}
		s.server.Store(nil)
		for i := range s.most {
			s.most[i].Store(0)
		}
		s.leasable.Store(false)
	}
	return err
}

func (s *Store) tryOnce(ctx context.Context, f func(session) error) (err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only hands it back to the pool
	server, err := s.detect(ctx, conn)
	if err != nil {
		return err
	}
	one := session{conn, server}
	undo, err := one.impatient(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	return sqlrun.Retry(ctx, errSkipped, func() error { return f(one) })
}

// confirm is asked before the server is taken for another one than was noted: it may
// have joined a cluster since it was asked what it is.
func (s session) confirm(ctx context.Context) error {
	is, err := dialect.Identify(ctx, s.conn)
	if err == nil && is != s.server {
		err = errOtherKind
	}
	return err
}

// connect takes a connection from the pool. One that never becomes free is
// most often the one whose transaction waits for us.
func (s *Store) connect(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.db.Conn(ctx)
	if err == nil {
		return conn, nil
	}
	if pool := s.db.Stats(); ctx.Err() != nil && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return nil, fmt.Errorf("all %d connections of the pool are in use, maybe by the very transaction that waits for this one; give the store a *sql.DB of its own or allow more: %w", pool.MaxOpenConnections, err)
	}
	return nil, err
}

// impatient keeps SQLite from waiting for a lock by itself, in which no context
// would interrupt it: do tries again instead. It returns what undoes that.
func (s session) impatient(ctx context.Context) (undo func() error, err error) {
	if s.server.Name() != sqliteName {
		return func() error { return nil }, nil
	}
	var timeout int64
	if err := s.conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&timeout); err != nil {
		return nil, err
	}
	err = s.exec(ctx, "PRAGMA busy_timeout = 0")
	return func() error { return s.tidy(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", timeout)) }, err
}

// inTx runs f in a transaction of its own. It is begun by statements and not by
// BeginTx, which cannot take SQLite's write lock at once, and could not take a
// transaction back whose COMMIT found the file locked.
func (s session) inTx(ctx context.Context, f func() error) (err error) {
	for _, text := range beginnings[s.server.Name()] {
		if err := s.exec(ctx, text); err != nil {
			return err
		}
	}
	if err = f(); err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	if err != nil {
		err = errors.Join(err, s.tidy(ctx, "ROLLBACK"))
	}
	return err
}

// beginnings pin what the session may have set otherwise: each statement sees
// what is committed. What a MySQL session without autocommit has left open, START
// TRANSACTION would commit too, but the level must be set before it. SQLite takes
// the lock on writing before it reads, as it could not once another has written
// in between.
var beginnings = map[string][]string{
	mysqlName:    {"COMMIT", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"},
	postgresName: {"BEGIN ISOLATION LEVEL READ COMMITTED"},
	sqliteName:   {"BEGIN IMMEDIATE"},
}

// alone runs one statement that commits by itself, so that no lock is ever held
// while the server waits for this process.
func (s session) alone(ctx context.Context, text string, args ...any) error {
	err := s.exec(ctx, text, args...)
	if err == nil && s.server.Name() == mysqlName {
		err = s.exec(ctx, "COMMIT") // for a session without autocommit
	}
	return err
}

// tidy runs a statement that puts the connection in order, also when the context
// has ended. A connection that stays in disorder is given up.
func (s session) tidy(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
		defer cancel()
	}
	err := s.exec(ctx, text)
	if err == nil || strings.Contains(err.Error(), "no transaction is active") { // SQLite rolls some errors back by itself
		return nil
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return nil // it broke before, which is said already
	}
	return err
}

func (s session) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.conn.ExecContext(ctx, s.text(text), args...)
	return err
}

// changed runs a statement and tells whether it changed a row.
func (s session) changed(ctx context.Context, text string, args ...any) (bool, error) {
	res, err := s.conn.ExecContext(ctx, s.text(text), args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

func (s session) row(ctx context.Context, text string, args ...any) *sql.Row {
	return s.conn.QueryRowContext(ctx, s.text(text), args...)
}

// each scans the rows of a query one by one.
func (s session) each(ctx context.Context, scan func(*sql.Rows) error, text string, args ...any) error {
	return sqlrun.Each(ctx, s.conn, scan, s.text(text), args...)
}

// text puts a statement into the server's words.
func (s session) text(statement string) string { return dialect.Text(s.server, statement) }
