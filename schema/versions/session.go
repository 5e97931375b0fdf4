// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// session is one connection to a database of the router.
type session struct {
	*sql.Conn
	dialect.Server

	name   string // of the database in the router
	flavor sqltext.Flavor
}

// open connects to a database. The caller closes the session.
func open(ctx context.Context, r *sharding.Router, name string) (*session, error) {
	conn, err := r.DB(name).Conn(ctx)
	if err != nil {
		return nil, &UnreachableError{name, err}
	}
	s := &session{Conn: conn, name: name}
	err = sqlrun.Retry(ctx, nil, func() (err error) {
		if s.Server, err = dialect.Detect(ctx, conn); err == nil {
			s.flavor, err = flavorOf(ctx, conn, s)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(&UnreachableError{name, err}, conn.Close())
	}
	return s, nil
}

// lockLimit is how long a session waits for the lock of another runner, and lockPause
// the interval of its attempts.
const (
	lockLimit = 10 * time.Second
	lockPause = 50 * time.Millisecond
)

// locked runs f while no other runner works on the database. The lock belongs to the
// connection: the server releases it when the connection has ended, together with any
// statement that it still executes. SQLite locks the file.
func (s *session) locked(ctx context.Context, f func() error) error {
	var take, release string
	switch s.Name() {
	case "mysql":
		take = "SELECT GET_LOCK(CONCAT('shardid_ddl.', LEFT(SHA2(DATABASE(), 256), 48)), 0)"
		release = "SELECT RELEASE_LOCK(CONCAT('shardid_ddl.', LEFT(SHA2(DATABASE(), 256), 48)))"
	case "postgres":
		take = "SELECT pg_try_advisory_lock(hashtext('shardid_ddl'))::int"
		release = "SELECT pg_advisory_unlock(hashtext('shardid_ddl'))::int"
	default:
		return f()
	}
	if err := s.take(ctx, take); err != nil {
		return err
	}
	err := f()
	var released sql.NullInt64
	if back := s.QueryRowContext(context.WithoutCancel(ctx), release).Scan(&released); back != nil {
		// The connection is closed instead of returned to the pool, so that it ends with its
		// lock.
		_ = s.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// take tries to get the lock until it has it.
func (s *session) take(ctx context.Context, query string) error {
	giveUp := time.NewTimer(lockLimit)
	defer giveUp.Stop()
	for {
		var got sql.NullInt64
		if err := s.QueryRowContext(ctx, query).Scan(&got); err != nil {
			return fmt.Errorf("lock database %s: %w", s.name, err)
		}
		if got.Int64 == 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", ErrLocked, s.name, ctx.Err())
		case <-giveUp.C:
			return fmt.Errorf("%w: %s; repeat the command when that runner has ended (this one waited %v)", ErrLocked, s.name, lockLimit)
		case <-time.After(lockPause):
		}
	}
}

// transactional reports whether a rollback undoes DDL.
func (s *session) transactional(asked bool) bool {
	switch s.Name() {
	case "sqlite":
		return true
	case "postgres":
		return asked
	}
	return false
}

// atOnce runs f in a transaction, and repeats it when another writer conflicts.
func (s *session) atOnce(ctx context.Context, f func(execer) error) error {
	if s.Name() == "sqlite" {
		return sqlrun.Retry(ctx, nil, func() error { return s.immediate(ctx, f) })
	}
	return sqlrun.Retry(ctx, nil, func() error { return sqlrun.InTx(ctx, s, nil, func(tx *sql.Tx) error { return f(tx) }) })
}

// immediate takes SQLite's write lock before anything is read. It replaces the lock of a
// session.
func (s *session) immediate(ctx context.Context, f func(execer) error) error {
	if _, err := s.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := f(s); err != nil {
		_, back := s.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, back)
	}
	_, err := s.ExecContext(ctx, "COMMIT")
	if err != nil {
		_, _ = s.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // some errors have ended the transaction already
	}
	return err
}

// execer is a session or a transaction of it.
type execer interface {
	dialect.Querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
