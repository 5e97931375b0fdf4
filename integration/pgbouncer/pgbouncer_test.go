// SPDX-License-Identifier: Apache-2.0

// Package pgbouncer tests ids and routed statements on
// PostgreSQL through PgBouncer in transaction mode, in which a client's connection may use another server connection in
// each transaction.
package pgbouncer

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// bounce starts a PgBouncer before a database of a private server, and returns the DSN of
// the database behind it.
func bounce(t *testing.T, p *server.Postgres) string {
	t.Helper()
	direct := p.Open(t, "ids")
	if err := schema.Apply(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), direct, "orders", 1, 1000); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(p.DSN("ids"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		if address := pool(t, at.Hostname(), at.Port()); address != "" {
			return "postgres://postgres@" + address + "/ids?sslmode=disable"
		}
	}
}

// pool starts a PgBouncer on a port that was free, and returns its address, or "" when
// somebody else has taken the port meanwhile.
func pool(t *testing.T, host, port string) (address string) {
	t.Helper()
	dir, own := t.TempDir(), freePort(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
ids = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
`, host, port, own)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // PgBouncer reads it as another user
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "pgbouncer", config)
	if os.Geteuid() == 0 { // as whom it refuses to run
		run = exec.CommandContext(t.Context(), "pgbouncer", "-u", "postgres", config)
		open(t, dir)
	}
	said := &log{}
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if t.Failed() {
			t.Log(said)
		}
	})
	address = fmt.Sprintf("127.0.0.1:%d", own)
	testwait.Until(t, "PgBouncer listens", func() bool {
		return strings.Contains(said.String(), "listening on "+address) || strings.Contains(said.String(), "nowhere to listen on")
	})
	if strings.Contains(said.String(), "nowhere to listen on") {
		return ""
	}
	return address
}

// log is what a program says.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open lets other users read what lies in a test's directory.
func open(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // it holds a configuration without secrets
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func store(t *testing.T, dsn string) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := through(t, dsn)
	s, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return db, s
}

func TestIDsAreNumberedThroughPgBouncer(t *testing.T) {
	dsn := bounce(t, server.RunPostgres(t)) + "&default_query_exec_mode=exec"
	_, s := store(t, dsn)
	t.Run("segments", func(t *testing.T) {
		keygentest.Source(t, func(*testing.T) keygen.Source { return s.Tag("orders") })
	})
	t.Run("leases", func(t *testing.T) {
		keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return s.Leases() })
	})
	t.Run("WORKER_NODE", func(t *testing.T) {
		g, err := snowflake.New(t.Context(), snowflake.Config{Layout: keygen.Disposable(), Worker: s.WorkerNode("host", "1")})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// pgx keeps statements prepared on a connection, which is another one of the server in
// the next transaction.
func TestAProgramThatPreparesThroughPgBouncerIsToldWhatToSet(t *testing.T) {
	p := server.RunPostgres(t)
	dsn := bounce(t, p)
	db := through(t, dsn)
	t.Run("ids", func(t *testing.T) {
		tellsWhatToSet(t, func(int) error {
			s, err := sqlstore.New(t.Context(), db)
			if err == nil {
				_, err = s.Tag("orders").Reserve(t.Context(), 10)
			}
			return err
		})
	})
	t.Run("routing", func(t *testing.T) {
		m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
		if err != nil {
			t.Fatal(err)
		}
		routed := database.RoutedOrders(t, sharding.DBs{"a": through(t, dsn), "b": through(t, dsn)}, m, p.Open(t, "whole"))
		tellsWhatToSet(t, func(id int) error {
			if id%2 == 0 {
				_, err := routed.ExecContext(t.Context(), "INSERT INTO orders (id, user_id, paid) VALUES ($1, $1, 0)", id)
				return err
			}
			var n int
			return routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE paid = $1", id).Scan(&n)
		})
	})
}

// through opens the database behind PgBouncer.
func through(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// tellsWhatToSet calls f, many times at once and each time with another number, until it
// fails, and fails unless each of its errors says what to set.
func tellsWhatToSet(t *testing.T, f func(n int) error) {
	t.Helper()
	var mu sync.Mutex
	var told int
	var others []error
	for n := 0; told == 0 && len(others) == 0; {
		var all sync.WaitGroup
		for range 16 {
			n++
			number := n
			all.Go(func() {
				err := f(number)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
				case strings.Contains(err.Error(), "default_query_exec_mode=exec"):
					told++
				default:
					others = append(others, err)
				}
			})
		}
		all.Wait()
	}
	if len(others) > 0 {
		t.Errorf("%d errors say what to set, and not: %v", told, errors.Join(others...))
	}
}

// Statements that are routed through PgBouncer leave the rows of one table. Transactions
// with savepoints stay on one server connection, which also answers the router's queries about columns.
func TestStatementsAreRoutedThroughPgBouncer(t *testing.T) {
	p := server.RunPostgres(t)
	dsn := bounce(t, p) + "&default_query_exec_mode=exec"
	dbs := sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		dbs[name] = through(t, dsn)
	}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Open(t, "whole")
	routed := database.RoutedOrders(t, dbs, m, whole)
	done := 0
	programs := effort.Cases(100, 10_000)
	for seed := range uint64(programs) {
		maker := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 6)), PostgreSQL: true}
		n, err := maker.Program(sharding.AllShards(t.Context()), routed, whole)
		if done += n; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Logf("%d statements", done); done < 2*programs {
		t.Error("too few succeed")
	}
}
