// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// conn is a connection on which statements use ? for arguments, whatever the database's
// placeholders.
type conn struct {
	*sql.Conn

	dialect dialect.Dialect
}

// numbered replaces the placeholders by those of the database. Quoted texts are not
// changed.
func (c conn) numbered(query string, args []any) string {
	if len(args) == 0 || c.dialect.Placeholder(1) == "?" {
		return query
	}
	var b strings.Builder
	n, quote := 0, byte(0)
	for i := range len(query) {
		switch at := query[i]; {
		case quote != 0:
			if at == quote {
				quote = 0
			}
		case at == '\'' || at == '"':
			quote = at
		case at == '?':
			n++
			b.WriteString(c.dialect.Placeholder(n))
			continue
		}
		b.WriteByte(query[i])
	}
	return b.String()
}

// ExecContext calls the connection's, with ? for each argument.
func (c conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.Conn.ExecContext(ctx, c.numbered(query, args), args...)
}

// QueryContext calls the connection's, with ? for each argument.
func (c conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.Conn.QueryContext(ctx, c.numbered(query, args), args...)
}

// QueryRowContext calls the connection's, with ? for each argument.
func (c conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return c.Conn.QueryRowContext(ctx, c.numbered(query, args), args...)
}

// Session is a pinned connection, for one goroutine at a time.
type Session struct {
	conn

	Database     *Database
	Spent        bool          // it is not used again: an answer was not read to its end, or its settings are those of a lock
	Locked       bool          // holds the lock of a switch: no transaction may begin
	began        bool          // a transaction; another one is part of it
	lock         string        // the statements that take the lock again, on PostgreSQL
	lockFor      time.Duration // how long the locks of that text may take
	kills        kills
	prepared     map[string]*sql.Stmt // by their text; they end with the connection
	insertions   map[string]string    // on PostgreSQL: the texts that insert rows, by how they begin
	values       []any                // of the rows of one statement
	largeBuffers int                  // how many large buffers the driver has
}

// Close removes the connection from the application's pool, as its settings are not the
// application's.
func (c *Session) Close() {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Conn.Close()
}

// kills are what a Watch sends to a MySQL or MariaDB session when its time is over.
type kills struct {
	mu            sync.Mutex
	sent          bool
	endangers     bool // a KILL in the midst of a RENAME takes triggers from the table
	killForbidden bool
}

// ForbidKills is called before a statement that renames a table with triggers. On MariaDB the
// Watch sends no KILL from then on: a KILL in the middle of such a statement may leave the
// table without its triggers, silently, or with an empty list of triggers, after which
// every statement on the table fails with error 1343 (10.11.19: 1 KILL CONNECTION of 4 and
// 1 KILL QUERY of several hundred). With a lock on the table, the statement waits only for
// a backup, at most lock_wait_timeout. The error is context.DeadlineExceeded if a KILL was
// sent before.
func (c *Session) ForbidKills(ctx context.Context) error {
	c.kills.mu.Lock()
	defer c.kills.mu.Unlock()
	c.kills.killForbidden = c.kills.endangers
	if c.kills.killForbidden && c.kills.sent {
		_ = c.Exec(ctx, "DO 0") // which the KILL ends if it came between two statements
		return context.DeadlineExceeded
	}
	return nil
}

// EndKills is called when a session gets more time after its time was over: on MariaDB a KILL that
// was sent between two statements would end the next one.
func EndKills(ctx context.Context, s *Session) {
	s.kills.mu.Lock()
	defer s.kills.mu.Unlock()
	if s.kills.endangers && s.kills.sent {
		_ = s.Exec(ctx, "DO 0")
	}
	s.kills.sent = false
}

// send sends a KILL if the time is still over, unless KILLs are forbidden.
func (k *kills) send(rest func() time.Duration, kill func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.killForbidden && rest() <= 0 {
		k.sent = true
		kill()
	}
}

// watchEvery is the time between two looks at the rest of the time, and between two KILLs.
const watchEvery = 20 * time.Millisecond

// watch runs f. While rest returns nothing and f has not ended, another connection
// repeatedly sends the cancel statement.
func watch(ctx context.Context, c *Session, cancel string, began <-chan struct{}, rest func() time.Duration, f func() error) error {
	killer, err := c.Database.NewSession(ctx)
	if err != nil {
		return err
	}
	defer killer.Close()
	killing, done := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-killing.Done():
			return
		case <-began:
		}
		timer := time.NewTimer(min(rest(), watchEvery))
		defer timer.Stop()
		for {
			select {
			case <-killing.Done():
				return
			case <-timer.C:
			}
			if left := rest(); left > 0 {
				timer.Reset(min(left, watchEvery))
				continue
			}
			// A KILL may arrive between two statements, so it is repeated.
			c.kills.send(rest, func() { _ = killer.Exec(killing, cancel) })
			timer.Reset(watchEvery)
		}
	})
	err = f()
	done() // the answer is not awaited, because writers are waiting
	wg.Wait()
	return err
}

// preparedStatements is how many statements a connection keeps, as the server keeps memory for each.
const preparedStatements = 128

// prepare returns a statement that the connection keeps until it ends.
func (c *Session) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := c.prepared[query]; stmt != nil {
		return stmt, nil
	}
	if len(c.prepared) == preparedStatements {
		c.forget()
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.prepared == nil {
		c.prepared = map[string]*sql.Stmt{}
	}
	c.prepared[query] = stmt
	return stmt, nil
}

// forget closes the statements.
func (c *Session) forget() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
}

// Exec executes one statement.
func (c *Session) Exec(ctx context.Context, query string, args ...any) error {
	_, err := c.ExecContext(ctx, query, args...)
	return err
}

// Tx runs f in a transaction, or under the lock that the session holds.
func (c *Session) Tx(ctx context.Context, f func() error) error {
	return c.within(ctx, c.Database.begin(), f)
}

// ReadTx runs f in a transaction that only reads, or under the lock that the
// session holds.
func (c *Session) ReadTx(ctx context.Context, f func() error) error {
	return c.within(ctx, "BEGIN", f)
}

func (c *Session) within(ctx context.Context, begin string, f func() error) error {
	if c.Locked || c.began {
		return f()
	}
	if err := c.Exec(ctx, begin); err != nil {
		return err
	}
	c.began = true
	err := f()
	c.began = false
	if err == nil {
		return c.Exec(ctx, c.Database.commit())
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = c.Exec(undo, "ROLLBACK") // if this fails, the caller discards the connection because of err
	return err
}

// Each calls scan for every row.
func (c *Session) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
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

// List returns a column of text.
func (c *Session) List(ctx context.Context, query string, args ...any) ([]string, error) {
	var all []string
	err := c.Each(ctx, func(rows *sql.Rows) error {
		var s sql.NullString
		err := rows.Scan(&s)
		all = append(all, s.String)
		return err
	}, query, args...)
	return all, err
}

// IDs returns a column of ids.
func (c *Session) IDs(ctx context.Context, query string) (all []int64, err error) {
	err = c.Each(ctx, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		all = append(all, id)
		return err
	}, query)
	return all, err
}

// Number returns one number, 0 when there is none.
func (c *Session) Number(ctx context.Context, query string, args ...any) (n int64, err error) {
	var v sql.NullInt64
	err = c.QueryRowContext(ctx, query, args...).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v.Int64, err
}

// Ensure inserts a row unless there is one with the first of the values, which is
// the key.
func (c *Session) Ensure(ctx context.Context, table, columns string, values ...any) error {
	key, _, _ := strings.Cut(columns, ",")
	n, err := c.Number(ctx, "SELECT COUNT(*) FROM "+table+" WHERE "+key+" = ?", values[0])
	if err != nil || n > 0 {
		return err
	}
	insert := "INSERT INTO " + table + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", len(values)-1) + ")"
	if c.Database.Name() == "postgres" { // where an error would abort the transaction
		insert += " ON CONFLICT DO NOTHING"
	}
	err = c.Exec(ctx, insert, values...)
	if c.Database.Duplicate(err) {
		return nil // another runner was faster
	}
	return err
}

// Led reports whether a runner holds the lock on a job. SQLite has no such lock, so that
// the answer is no.
func (c *Session) Led(ctx context.Context, job string) (bool, error) {
	query := "SELECT IS_USED_LOCK(" + leadLock + ")"
	switch c.Database.Name() {
	case "sqlite":
		return false, nil
	case "postgres":
		query = postgresLed
	}
	holder, err := c.Number(ctx, query, job)
	return holder != 0, err
}

// Place identifies a database; "" for one that nobody else can open.
func (c *Session) Place(ctx context.Context) (string, error) {
	if c.Database.Name() != "sqlite" {
		return c.Database.Backend.server(ctx, c)
	}
	file, err := c.List(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'")
	return strings.Join(file, ""), err
}

// ExecAll executes the statements in turn, up to the first that fails.
func (c *Session) ExecAll(ctx context.Context, statements []string) error {
	for _, text := range statements {
		if err := c.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
