// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server/internal/restore"
	"github.com/shardid/shardid/internal/dialect"
)

// RunMariaDB is [StartMariaDB] for a test or benchmark: a server that does not
// start fails it, and the server is stopped when it ends, or used again: see [Reuse]. A test that fails is
// shown the end of the server's error log.
func RunMariaDB(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	return &MariaDB{mariadbFor(flags).run(tb, flags)}
}

// RunPostgres is [StartPostgres] for a test or benchmark: a server that does
// not start fails it, and the server is stopped when it ends. A test that fails
// is shown the end of the server's error log.
func RunPostgres(tb testing.TB, settings ...string) *Postgres {
	tb.Helper()
	return &Postgres{postgres.run(tb, settings)}
}

func (k kind) run(tb testing.TB, settings []string) *instance {
	tb.Helper()
	if i := used.take(k, settings); i != nil {
		i.stopAfter(tb)
		return i
	}
	i, err := k.start(tb.Context(), settings)
	if err != nil {
		tb.Fatal(err)
	}
	i.stopAfter(tb)
	if err := used.note(tb.Context(), i); err != nil {
		tb.Fatal(err)
	}
	return i
}

func (i *instance) stopAfter(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the error log of the server on port %d ends with:\n%s", i.port, i.logTail())
		} else if used.give(i) {
			return
		}
		if err := i.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (m *MariaDB) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	m.admin(tb, "CREATE DATABASE IF NOT EXISTS "+dialect.MySQL{}.Quote(m.named(database)))
	m.drop(tb, dialect.MySQL{}, database, "")
	return m.pool(tb, database)
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (p *Postgres) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, "")
}

// OpenICU is [Postgres.Open] of a database with an ICU collation, which does not compare texts by
// their bytes.
func (p *Postgres) OpenICU(tb testing.TB, database, locale string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, " TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '"+locale+"'")
}

// OpenEncoded is [Postgres.Open] of a database whose texts are stored in an encoding, and compared by their bytes.
func (p *Postgres) OpenEncoded(tb testing.TB, database, encoding string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, " TEMPLATE template0 LOCALE 'C' ENCODING '"+encoding+"'")
}

func (p *Postgres) open(tb testing.TB, database, options string) *sql.DB {
	tb.Helper()
	p.create(tb, database, options)
	p.drop(tb, dialect.Postgres{}, database, " WITH (FORCE)")
	return p.pool(tb, database)
}

// create creates a database unless it exists. There is no IF NOT EXISTS for databases; a DO block cannot create one.
// Both statements use one connection, because a new one takes PostgreSQL a third of the time of both.
func (p *Postgres) create(tb testing.TB, database, options string) {
	tb.Helper()
	db, err := p.instance.open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var version int // 150004 for 15.4
	if err := db.QueryRowContext(tb.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	if version >= 150000 { // copying files takes half the time of writing each page to the log, which is the default there
		options = " STRATEGY FILE_COPY" + options
	}
	execute(tb, db, "CREATE DATABASE "+dialect.Postgres{}.Quote(p.named(database))+options, "SQLSTATE 42P04", "SQLSTATE 23505")
}

func (i *instance) pool(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	db, err := i.open(database)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// admin runs a statement outside of the databases of tests.
func (i *instance) admin(tb testing.TB, statement string) {
	tb.Helper()
	db, err := i.open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	execute(tb, db, statement)
}

// execute executes a statement. It ignores errors that contain one of the texts.
func execute(tb testing.TB, db *sql.DB, statement string, harmless ...string) {
	tb.Helper()
	_, err := db.ExecContext(tb.Context(), statement)
	if err == nil {
		return
	}
	for _, text := range harmless {
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	tb.Fatalf("%s: %v", statement, err)
}

// Reuse runs the tests of a package, and lets a test have a server that another one has used: a start takes MySQL
// as much processor time as a hundred tables. Each server still belongs to one test at a time.
// Only servers without settings are used again, and only those that are as they were when they had started,
// once the databases and the users of the test are removed. A server that was killed or stopped, or whose test
// has failed, is not.
//
// It returns what the caller must exit with.
func Reuse(m *testing.M) (code int) {
	used.mu.Lock()
	used.wanted = true
	used.mu.Unlock()
	defer used.stop()
	return m.Run()
}

// used has the servers whose tests have ended.
var used usedServers

type usedServers struct {
	mu     sync.Mutex
	wanted bool
	idle   []*instance
}

// mostIdle is how many servers of a kind wait for a test. More tests than these hardly ever end before others begin.
const mostIdle = 4

// restoreLimit ends the wait for a server that is not restored.
const restoreLimit = time.Minute

// take returns a server as k.start does with these settings, or nil.
func (u *usedServers) take(k kind, settings []string) *instance {
	program, err := k.program.find()
	if err != nil || len(settings) > 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for n, i := range slices.Backward(u.idle) { // the last one has the most in the processor's caches
		if i.program == program && i.world == worldNow() {
			u.idle = slices.Delete(u.idle, n, n+1)
			return i
		}
	}
	return nil
}

// world is what of a test's environment a server keeps.
type world struct{ temporary, zone string }

func worldNow() world { return world{os.TempDir(), os.Getenv(ZoneVar)} }

// note stores the state of a server that has started, if other tests may use it after this one.
func (u *usedServers) note(ctx context.Context, i *instance) error {
	u.mu.Lock()
	wanted := u.wanted
	u.mu.Unlock()
	if !wanted || i.kind.restores == nil || len(i.settings) > 0 {
		return nil
	}
	i.world = worldNow()
	db, err := i.open("")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	i.fresh, err = restore.Of(ctx, db, *i.kind.restores)
	return err
}

// give keeps a server for another test, and reports whether it could.
func (u *usedServers) give(i *instance) bool {
	if i.fresh == nil || restored(i) != nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.wanted || u.count(i.program) == mostIdle {
		return false
	}
	u.idle = append(u.idle, i.another())
	return true
}

// restored brings a server back to the state that it had when it had started.
func restored(i *instance) error {
	db, err := i.open("")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), restoreLimit)
	defer cancel()
	return i.fresh.Restore(ctx, db)
}

func (u *usedServers) count(program string) (n int) {
	for _, i := range u.idle {
		if i.program == program {
			n++
		}
	}
	return n
}

// stop ends the servers.
func (u *usedServers) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, i := range u.idle {
		_ = i.Stop() // the next run removes what is left
	}
	u.wanted, u.idle = false, nil
}
