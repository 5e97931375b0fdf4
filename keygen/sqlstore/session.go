// SPDX-License-Identifier: Apache-2.0

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

// cleanupTimeout bounds statements that clean up a connection after its context has ended.
const cleanupTimeout = 50 * time.Millisecond

// A task that failed with one of these errors may be tried again.
var (
	errBusy      = errors.New("sqlstore: other processes changed the rows first")
	errSkipped   = fmt.Errorf("%w: other processes hold the locks on all suitable rows", errBusy)
	errOverruled = fmt.Errorf("%w: another member of the cluster committed a change of a locked row", errBusy)
	errLockLost  = fmt.Errorf("%w: a row changed although it was locked", errBusy)
	errTaken     = fmt.Errorf("%w: another member of the cluster gave the same number", errBusy)
)

// session is one connection, on which all statements of a task run. Their texts have names in
// double quotes and ? for arguments, whatever the server.
type session struct {
	conn   *sql.Conn
	server dialect.Server
}

// do runs f on a connection of its own, and retries it while another writer conflicts with it.
// So f must be repeatable after such an error. On a group with several primaries it leaves those
// on other members time before the next one, to apply what was written and to write themselves.
func (s *Store) do(ctx context.Context, f func(session) error) error {
	if s == nil || s.db == nil {
		return errNoDB
	}
	err := s.gap.Wait(ctx)
	if err == nil {
		err = s.try(ctx, func(one session) error {
			began := time.Now()
			err := f(one)
			if err == nil && one.server.SeveralPrimaries {
				s.gap.Begin(time.Since(began))
			}
			return err
		})
	}
	if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err) // the driver's error may only say that the connection was closed
	}
	return explained(err)
}

// errServerChanged: the server is not of the kind for which the store's statements were built.
var errServerChanged = errors.New("sqlstore: the database is now of another kind, or in another cluster")

// try runs tryOnce. When the server turns out to be of another kind than before, it identifies
// the server again and retries.
func (s *Store) try(ctx context.Context, f func(session) error) (err error) {
	const kinds = 3
	for range kinds {
		if err = s.tryOnce(ctx, f); !errors.Is(err, errServerChanged) && !dialect.UnknownVariable(err) {
			return err
		}
		s.server.Store(nil)
		for i := range s.highestValues {
			s.highestValues[i].Store(0)
		}
		s.leasesChecked.Store(false)
	}
	return err
}

// tryOnce retries f while other processes are in its way. Each attempt takes a connection from
// the pool, because the attempt before may have discarded its own.
func (s *Store) tryOnce(ctx context.Context, f func(session) error) error {
	return sqlrun.Retry(ctx, errBusy, func() error { return s.onConnection(ctx, f) })
}

func (s *Store) onConnection(ctx context.Context, f func(session) error) (err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	server, err := s.detect(ctx, conn)
	if err != nil {
		return err
	}
	one := session{conn, server}
	undo, err := one.setPragmas(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	return f(one)
}

// confirm identifies the server again before it counts as another one: it may have joined a
// cluster since the last identification.
func (s session) confirm(ctx context.Context) error {
	is, err := dialect.Identify(ctx, s.conn)
	if err == nil && is != s.server {
		err = errServerChanged
	}
	return err
}

// connect takes a connection from the pool. If none becomes free, the most likely reason is a
// transaction of the caller that waits for this call.
func (s *Store) connect(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.db.Conn(ctx)
	if err == nil {
		return conn, nil
	}
	if pool := s.db.Stats(); ctx.Err() != nil && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return nil, fmt.Errorf("all %d connections of the pool are in use, perhaps one of them by a transaction that waits for this call; give the store a *sql.DB of its own or allow more connections: %w", pool.MaxOpenConnections, err)
	}
	return nil, err
}

// sqlitePragmas are the settings of a connection to SQLite while a task runs on it, where they
// differ from those that are enough. SQLite must not wait for a lock itself, because no context
// interrupts that wait; do retries instead. A COMMIT must be on disk, which synchronous=NORMAL
// does not ensure in WAL mode: a machine that lost its power could lose it.
var sqlitePragmas = []struct {
	name   string
	value  int64
	enough func(is int64) bool
}{
	{"busy_timeout", 0, func(is int64) bool { return is == 0 }},
	{"synchronous", synchronousFull, func(is int64) bool { return is >= synchronousFull }},
}

const synchronousFull = 2

// setPragmas makes the settings of SQLite. It returns a function that restores those before.
func (s session) setPragmas(ctx context.Context) (undo func() error, err error) {
	undo = func() error { return nil }
	if s.server.Name() != sqliteName {
		return undo, nil
	}
	for _, p := range sqlitePragmas {
		var is int64
		err := s.conn.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&is)
		if err == nil && p.enough(is) {
			continue
		}
		if err == nil {
			err = s.exec(ctx, fmt.Sprintf("PRAGMA %s = %d", p.name, p.value))
		}
		if err != nil {
			return undo, errors.Join(err, undo())
		}
		others := undo
		undo = func() error {
			return errors.Join(s.restoreConnection(ctx, fmt.Sprintf("PRAGMA %s = %d", p.name, is)), others())
		}
	}
	return undo, nil
}

// inTx runs f in a transaction. It uses statements instead of BeginTx: BeginTx cannot take
// SQLite's write lock at once, and a Tx cannot be rolled back after its COMMIT found the file
// locked.
func (s session) inTx(ctx context.Context, f func() error) error {
	return s.within(ctx, beginStatements[s.server.Name()], f)
}

// within is inTx with the given statements that begin the transaction.
func (s session) within(ctx context.Context, begin []string, f func() error) (err error) {
	for _, text := range begin {
		if err := s.exec(ctx, text); err != nil {
			return err
		}
	}
	if err = f(); err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	if err != nil {
		err = errors.Join(err, s.restoreConnection(ctx, "ROLLBACK"))
	}
	return err
}

// beginStatements begin a transaction in which each statement sees what is committed, whatever
// the session's settings. On MySQL, COMMIT ends a transaction that a session without autocommit
// has left open; START TRANSACTION would do so, too, but the isolation level must be set before
// it. On PostgreSQL COMMIT waits for the server's log, also in sessions with
// synchronous_commit=off. On SQLite the transaction takes the write lock before it reads, because
// it could not take it later if another process wrote in between.
var beginStatements = map[string][]string{
	mysqlName:    {"COMMIT", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"},
	postgresName: {"BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT 1 WHERE " + awaitsLog},
	sqliteName:   {"BEGIN IMMEDIATE"},
}

// awaitsLog is a condition that always holds, and makes the COMMIT of its transaction wait until
// PostgreSQL has written its log. Otherwise a server that is killed could lose what it has
// acknowledged.
const awaitsLog = `(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'local', true) <> '')`

// execCommitted runs one statement that commits by itself, so that the server holds no lock
// while it waits for this process.
func (s session) execCommitted(ctx context.Context, text string, args ...any) error {
	err := s.exec(ctx, text, args...)
	if err == nil && s.server.Name() == mysqlName {
		err = s.exec(ctx, "COMMIT") // for a session without autocommit
	}
	return err
}

// restoreConnection runs a statement that cleans up the connection, even after the context has
// ended. If that fails, the connection is discarded.
func (s session) restoreConnection(ctx context.Context, text string) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
	}
	err := s.exec(ctx, text)
	if err == nil || strings.Contains(err.Error(), "no transaction is active") { // after some errors SQLite rolls back by itself
		return nil
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return nil // the connection broke earlier, which another error reports
	}
	return err
}

// numbered runs a statement whose row gets a number by AUTO_INCREMENT, and returns that.
func (s session) numbered(ctx context.Context, text string, args ...any) (int64, error) {
	res, err := s.conn.ExecContext(ctx, s.text(text), args...)
	if _, taken := dialect.NumberTaken(err); taken {
		err = fmt.Errorf("%w: %w", errTaken, err)
	}
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func (s session) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.conn.ExecContext(ctx, s.text(text), args...)
	return err
}

// changed runs a statement and returns true when it changed a row.
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

// each calls scan for each row of a query.
func (s session) each(ctx context.Context, scan func(*sql.Rows) error, text string, args ...any) error {
	return sqlrun.Each(ctx, s.conn, scan, s.text(text), args...)
}

// text translates a statement into the server's dialect.
func (s session) text(statement string) string { return dialect.Text(s.server, statement) }
