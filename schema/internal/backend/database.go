// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// Database is one database of a job. Safe for concurrent use.
type Database struct {
	Backend

	Label string // "source", or its name among the shards
	Fence string // the table with the epoch

	// Waits, unless nil, is called with the cause when Do has retried for a second without
	// success, and with nil when it succeeds later. Several goroutines may call it at once.
	Waits func(cause error)

	db *sql.DB

	mu       sync.Mutex
	admit    func(context.Context, *Session) error // see Admit
	idle     []*Session                            // pinned connections that nobody uses
	ServerID string                                // of the server it is on; "" before the first connection
}

// Open detects the kind of database db. The label appears in errors, and fence is the table
// that stores the epoch of a job. A kind that cannot be migrated is ErrUnsupported.
func Open(ctx context.Context, label, fence string, db *sql.DB) (*Database, error) {
	server, err := dialect.Identify(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", label, err)
	}
	sql, err := forServer(server)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", label, err)
	}
	return &Database{Backend: sql, Label: label, Fence: fence, db: db}, nil
}

// NewSession returns a pinned connection. Close it.
func (s *Database) NewSession(ctx context.Context) (*Session, error) {
	made, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &Session{conn: conn{made, s}, Database: s}
	if err := s.pin(ctx, made); err != nil {
		c.Close()
		return nil, fmt.Errorf("database %s: %w", s.Label, err)
	}
	if err := s.recognize(ctx, c); err != nil {
		c.Close()
		return nil, fmt.Errorf("database %s: %w", s.Label, err)
	}
	return c, nil
}

// recognize refuses a connection to another server than the earlier connections: data read
// on one server must not be used for writes on another.
func (s *Database) recognize(ctx context.Context, c *Session) error {
	is, err := s.Backend.server(ctx, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ServerID == "" {
		s.ServerID = is
	}
	if s.ServerID != is {
		return fmt.Errorf("%w: %w, %q instead of %q; make the same call again", ErrNotReady, ErrOtherServer, s.ServerID, is)
	}
	return nil
}

// Close discards the idle connections.
func (s *Database) Close() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// LeadTerm is how long a silent leader keeps the lock on its job.
const LeadTerm = time.Minute

// idleLimit is how long a leader's connection may be silent. A leader that is stopped longer than
// LeadTerm loses the lock on its job, and another runner may lead. When the first continues, it
// must have no connection on which it could go on. The server closes the connection of the lock
// LeadTerm after its last use, at most beatEvery before the stop. It has closed the others by then:
// their last statement waits for a lock no longer than lockWait.
const idleLimit = 20 * time.Second

// Admit limits how long the connections for Do may be silent, and has check decide about each new one.
func (s *Database) Admit(ctx context.Context, check func(context.Context, *Session) error) {
	s.mu.Lock()
	s.admit = check
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		if s.LimitIdle(ctx, c, idleLimit) != nil {
			c.Close()
			continue
		}
		s.keep(c)
	}
}

// RetryLimit is how long a database may be unreachable, or others may hold a lock, before a
// run ends with an error.
const RetryLimit = time.Minute

// Do runs f on a pinned connection. It runs f again on a new connection after errors that
// may pass: a deadlock, a lost connection, a server that is starting. So f must be
// idempotent.
func (s *Database) Do(ctx context.Context, f func(*Session) error) error {
	deadline := time.Now().Add(RetryLimit)
	wait, told := time.Millisecond, false
	for {
		err := s.Once(ctx, f)
		if err == nil && told {
			s.Waits(nil)
		}
		if err == nil || ctx.Err() != nil || !s.MayPass(err) || time.Now().After(deadline) {
			return err
		}
		if wait == time.Second && !told && s.Waits != nil {
			s.Waits(err)
			told = true
		}
		if err := Wait(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, time.Second)
	}
}

// MayPass reports whether another attempt may succeed after err.
func (s *Database) MayPass(err error) bool { return errors.Is(err, ErrAgain) || Transient(err) }

// Transient reports whether err has a temporary cause: conflicting transactions, a lost
// connection, or a server that shuts down, starts, or refuses writes because it is no
// longer the primary.
func Transient(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || dialect.Contended(err) ||
		errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		lostByDriver(err) ||
		postgresPasses(err) ||
		// These are lock timeouts, server states and lost connections; 1615 is a statement whose
		// table was changed too often to be prepared again.
		IsMySQL(err, "1205", "1213", "1053", "1040", "1180", "2006", "2013", "4031", "1927", "1129", "1615", "1290")
}

// lostByDriver reports whether err is one with which go-sql-driver/mysql says only that a
// connection is gone. It returns "busy buffer" when it is about to send a statement and has
// not read the message with which the server closed the connection; it sends nothing then.
// Version 1.8 takes that message for the answer of a statement that was sent, and returns "commands out
// of sync": MySQL 8.0.24 and newer send it before they close a silent connection.
func lostByDriver(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"invalid connection", "busy buffer", "commands out of sync"}, func(says string) bool {
		return strings.Contains(err.Error(), says)
	})
}

// Once runs f once on a pinned connection, which is kept for the next call unless f fails.
func (s *Database) Once(ctx context.Context, f func(*Session) error) error {
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	if err := f(c); err != nil {
		c.Close()
		return err
	}
	if c.Spent {
		c.Close()
		return nil
	}
	s.keep(c)
	return nil
}

// minConns is how many connections to a database a runner uses at once: for the lock on the job or a
// pause, its state, a change of definitions, and the guard of that.
const minConns = 4

// CheckPool returns ErrConfig for a pool in which a runner would wait for its own connections.
func (s *Database) CheckPool() error {
	if most := s.db.Stats().MaxOpenConnections; most > 0 && most < minConns {
		return fmt.Errorf("%w: the pool of %s may open %d connections, and a runner needs %d; give it a pool of its own, or raise the limit with SetMaxOpenConns", ErrConfig, s.Label, most, minConns)
	}
	return nil
}

// Guarded runs f while a transaction on another connection keeps what check has read under a lock
// as it is: a server commits statements about definitions at once. On SQLite, f is in the
// transaction. Guarded repeats both after errors that may pass, as Do does.
func (s *Database) Guarded(ctx context.Context, check, f func(*Session) error) error {
	return s.Do(ctx, func(guard *Session) error {
		if s.Name() == "sqlite" {
			return guard.Tx(ctx, func() error {
				if err := check(guard); err != nil {
					return err
				}
				return f(guard)
			})
		}
		// It is silent while f waits for a lock, and must not end before the connection of f.
		if err := s.LimitIdle(ctx, guard, LeadTerm); err != nil {
			return err
		}
		done := false
		err := guard.Tx(ctx, func() error {
			err := check(guard)
			if err == nil {
				err = s.Once(ctx, f)
			}
			done = err == nil
			return err
		})
		if done {
			guard.Spent = err != nil || s.LimitIdle(ctx, guard, idleLimit) != nil
			err = nil // the transaction has written nothing, so that its end cannot undo what f has done
		}
		return err
	})
}

// keep stores a connection for the next call.
func (s *Database) keep(c *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
}

func (s *Database) take(ctx context.Context) (*Session, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	admit := s.admit
	s.mu.Unlock()
	c, err := s.NewSession(ctx)
	if err != nil || admit == nil {
		return c, err
	}
	if err = s.LimitIdle(ctx, c, idleLimit); err == nil {
		err = admit(ctx, c)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Note appends rows of a table to a log, as if they had changed.
func (s *Database) Note(ctx context.Context, log string, table int, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	values := make([]string, len(ids))
	for i, id := range ids {
		values[i] = fmt.Sprintf("(%d, %d)", table, id)
	}
	return s.Do(ctx, func(c *Session) error {
		return c.Exec(ctx, "INSERT INTO "+s.Quote(log)+" (tbl, id) VALUES "+strings.Join(values, ", "))
	})
}

// Clock is an SQL expression for the database's time in seconds since 1970.
func (s *Database) Clock() string {
	switch s.Name() {
	case "sqlite":
		return "CAST(strftime('%s', 'now') AS INTEGER)"
	case "postgres":
		return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)"
	}
	return "UNIX_TIMESTAMP()"
}

// Wait waits for d. It returns the error of ctx if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
