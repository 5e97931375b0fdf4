package migrate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// side is one database of a job. Safe for concurrent use.
type side struct {
	seam

	name  string // "source", or its name among the shards
	fence string // the table with the epoch
	db    *sql.DB

	mu     sync.Mutex
	idle   []*session // pinned connections that nobody uses
	server string     // which one it is on; "" before the first connection
}

func openSide(ctx context.Context, name, fence string, db *sql.DB) (*side, error) {
	server, err := dialect.Identify(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", name, err)
	}
	sql, err := newSeam(server)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", name, err)
	}
	return &side{seam: sql, name: name, fence: fence, db: db}, nil
}

// session returns a connection that is pinned. Close it.
func (s *side) session(ctx context.Context) (*session, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &session{Conn: conn, side: s}
	if err := s.pin(ctx, conn); err != nil {
		c.Close()
		return nil, fmt.Errorf("database %s: %w", s.name, err)
	}
	if err := s.recognize(ctx, c); err != nil {
		c.Close()
		return nil, fmt.Errorf("database %s: %w", s.name, err)
	}
	return c, nil
}

// recognize refuses a connection to another server than the others lead to: what
// was read on one must not be acted upon on the other.
func (s *side) recognize(ctx context.Context, c *session) error {
	is, err := s.seam.server(ctx, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == "" {
		s.server = is
	}
	if s.server != is {
		return fmt.Errorf("%w: another server has taken over from %q: %q; make the same call again", ErrNotReady, s.server, is)
	}
	return nil
}

// close discards the connections that nobody uses.
func (s *side) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// patience is how long a database may be away or a lock be held by others
// before a run ends with an error.
const patience = time.Minute

// do runs f on a pinned connection, and again on a new one while what went
// wrong may pass: a deadlock, a lost connection, a server that is starting. So
// f must be something that may be done twice.
func (s *side) do(ctx context.Context, f func(*session) error) error {
	deadline := time.Now().Add(patience)
	wait := time.Millisecond
	for {
		err := s.once(ctx, f)
		if err == nil || ctx.Err() != nil || !s.mayPass(err) || time.Now().After(deadline) {
			return err
		}
		if err := pauseFor(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, time.Second)
	}
}

// errAgain marks what another attempt may find otherwise.
var errAgain = errors.New("changed meanwhile")

// errNoTable is a table's that is not there.
var errNoTable = errors.New("there is none of this name")

func (s *side) mayPass(err error) bool {
	return errors.Is(err, errAgain) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || dialect.Contended(err) || s.transient(err)
}

func (s *side) once(ctx context.Context, f func(*session) error) error {
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	if err := f(c); err != nil {
		c.Close()
		return err
	}
	if c.spent {
		c.Close()
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
	return nil
}

func (s *side) take(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	return s.session(ctx)
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// session is a pinned connection, for one goroutine at a time.
type session struct {
	*sql.Conn

	side     *side
	spent    bool                 // an answer was cut off
	locked   bool                 // holds the lock of a switch: no transaction may begin
	prepared map[string]*sql.Stmt // by their text; they end with the connection
	values   []any                // of the rows of one statement
	rooms    int                  // how many large buffers the driver has
}

// Close takes the connection out of the application's pool: its settings are
// not the application's.
func (c *session) Close() {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Conn.Close()
}

func (c *session) exec(ctx context.Context, query string, args ...any) error {
	_, err := c.ExecContext(ctx, query, args...)
	return err
}

// tx runs f in a transaction, or under the lock that the session holds.
func (c *session) tx(ctx context.Context, f func() error) error {
	return c.within(ctx, c.side.begin(), f)
}

// reading runs f in a transaction that only reads, or under the lock that the
// session holds.
func (c *session) reading(ctx context.Context, f func() error) error {
	return c.within(ctx, "BEGIN", f)
}

func (c *session) within(ctx context.Context, begin string, f func() error) error {
	if c.locked {
		return f()
	}
	if err := c.exec(ctx, begin); err != nil {
		return err
	}
	err := f()
	if err == nil {
		return c.exec(ctx, "COMMIT")
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = c.exec(undo, "ROLLBACK") // a connection that cannot is discarded by whoever sees err
	return err
}

// each calls scan for every row.
func (c *session) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns a column of text.
func (c *session) list(ctx context.Context, query string, args ...any) ([]string, error) {
	var all []string
	err := c.each(ctx, func(rows *sql.Rows) error {
		var s sql.NullString
		err := rows.Scan(&s)
		all = append(all, s.String)
		return err
	}, query, args...)
	return all, err
}

// ids returns a column of ids.
func (c *session) ids(ctx context.Context, query string) (all []int64, err error) {
	err = c.each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		all = append(all, id)
		return err
	}, query)
	return all, err
}

// number returns one number, 0 when there is none.
func (c *session) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	var v sql.NullInt64
	err = c.QueryRowContext(ctx, query, args...).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v.Int64, err
}
