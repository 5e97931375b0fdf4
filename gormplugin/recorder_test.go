// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
)

// recorder records everything that is sent to the databases, in order.
type recorder struct {
	mu       sync.Mutex
	events   []string
	args     bool // note the arguments, too
	numbered bool // note which connection it was
	opened   atomic.Int64
}

func (r *recorder) add(db, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, db+": "+event)
}

// asksForSchema matches the queries about servers and columns that are sent once, before the first
// statement that needs their results.
var asksForSchema = regexp.MustCompile(`(?i)pragma_|sqlite_schema|WHERE 1 = 0$|^SELECT VERSION\(\)|^SELECT sqlite_version|^SELECT CAST\(\? AS TEXT\)$`)

func (r *recorder) statement(db, query string, args []driver.NamedValue) {
	if asksForSchema.MatchString(query) {
		return
	}
	query = strings.ReplaceAll(query, `"`, "`") // names are quoted in either way
	if r.args && len(args) > 0 {
		query += fmt.Sprintf(" %#v", args)
	}
	r.add(db, query)
}

// take returns the events since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// open returns a separate SQLite file whose traffic is recorded under name.
func (r *recorder) open(t testing.TB, name string) *sql.DB {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), name+".db") + "?_pragma=busy_timeout(3600000)"
	db := sql.OpenDB(recordingConnector{dsn, name, r})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

type recordingConnector struct {
	dsn, name string
	rec       *recorder
}

func (c recordingConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c recordingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := (&sqlite.Driver{}).Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return recordingConn{conn, c.name, c.rec, c.rec.opened.Add(1)}, nil
}

type recordingConn struct {
	driver.Conn
	name   string
	rec    *recorder
	number int64
}

// at is the name under which events of the connection are recorded.
func (c recordingConn) at() string {
	if c.rec.numbered {
		return fmt.Sprint(c.name, "#", c.number)
	}
	return c.name
}

func (c recordingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.rec.statement(c.at(), query, args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.rec.statement(c.at(), query, args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c recordingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.rec.add(c.at(), "PREPARE "+query)
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil || !c.rec.args {
		return stmt, err
	}
	return recordingStmt{stmt, c.at(), query, c.rec}, nil
}

type recordingStmt struct {
	driver.Stmt
	name, query string
	rec         *recorder
}

func (s recordingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.rec.statement(s.name, "PREPARED "+s.query, args)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s recordingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.rec.statement(s.name, "PREPARED "+s.query, args)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (c recordingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err // nothing that would have to end
	}
	c.rec.add(c.at(), "BEGIN")
	return recordingTx{tx, c.at(), c.rec}, nil
}

type recordingTx struct {
	driver.Tx
	name string
	rec  *recorder
}

func (t recordingTx) Commit() error {
	t.rec.add(t.name, "COMMIT")
	return t.Tx.Commit()
}

func (t recordingTx) Rollback() error {
	t.rec.add(t.name, "ROLLBACK")
	return t.Tx.Rollback()
}

// sameEvents compares the sent statements with the expected ones.
func sameEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	same := 0
	for same < len(got) && same < len(want) && got[same] == want[same] {
		same++
	}
	t.Errorf("after %d equal statements sent:\n\t%s\nwant:\n\t%s", same, strings.Join(got[same:], "\n\t"), strings.Join(want[same:], "\n\t"))
}
