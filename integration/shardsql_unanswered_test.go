// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// losing passes bytes between a driver and a server, and cuts one connection instead of an answer.
type losing struct {
	address string
	left    atomic.Int64 // answers before the one that is lost
}

var loopbackAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// loseAnswers returns it, and a data source name with its address.
func loseAnswers(t *testing.T, dsn string) (l *losing, through string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l = &losing{address: loopbackAddress.FindString(dsn)}
	l.left.Store(-1)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.pass(t, client)
		}
	}()
	return l, loopbackAddress.ReplaceAllString(dsn, listener.Addr().String())
}

func (l *losing) pass(t *testing.T, client net.Conn) {
	defer func() { _ = client.Close() }()
	to, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		defer func() { _ = to.Close() }()
		_, _ = io.Copy(to, client)
	}()
	for buf := make([]byte, 16<<10); ; {
		n, err := to.Read(buf)
		if n > 0 && l.left.Add(-1) == -1 {
			return
		}
		if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// Some drivers return driver.ErrBadConn for an answer that is lost, and database/sql then executes a statement again.
func TestAWriteOfSeveralShardsWhoseAnswerIsLostIsExecutedOnceOrNotAndSaysSo(t *testing.T) {
	p := server.SharePostgres(t)
	for name, of := range map[string]struct {
		driver, options string
		server          database.DSNOpener
	}{
		"MariaDB": {"mysql", "", server.ShareMariaDB(t)}, "MySQL": {"mysql", "", server.ShareMySQL(t)},
		"pgx": {"pgx", "", p}, "pq": {"postgres", "?sslmode=disable", p},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := of.server.Open(t, "unanswered_a_"+name), of.server.Open(t, "unanswered_b_"+name)
			l, dsn := loseAnswers(t, of.server.DSN("unanswered_a_"+name)+of.options)
			dbs := sharding.DBs{"a": opened(t, of.driver, dsn), "b": b}
			m, err := sharding.Spread([]string{"a", "b"}, 2, "unanswered_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, map[string]*sql.DB{"a": a, "b": b}[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, n INT NOT NULL)")
			}
			router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{Name: "unanswered", Key: "id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			database.Exec(t, routed, "INSERT INTO unanswered (id, n) VALUES (0, 0), (1, 0)")
			n := func(db *sql.DB, table string) (n int) {
				if err := db.QueryRowContext(t.Context(), "SELECT n FROM "+table).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			for answers := range int64(8) {
				database.Exec(t, routed, "UPDATE unanswered SET n = 0 WHERE id IN (0, 1)")
				l.left.Store(answers)
				_, err := routed.ExecContext(t.Context(), "UPDATE unanswered SET n = n + 1 WHERE id IN (0, 1)")
				l.left.Store(-1)
				first, second := n(a, "unanswered_0"), n(b, "unanswered_1")
				var partial *sharding.PartialCommitError
				if first > 1 || second > 1 || err == nil && first+second != 2 || first != second && !errors.As(err, &partial) {
					t.Errorf("after %d answers: %d and %d, %v", answers, first, second, err)
				}
			}
		})
	}
}

// A server that is stopped, or whose network drops all packets, accepts connections or neither accepts nor refuses them.
func TestAProgramThatBeginsWhileADatabaseDoesNotAnswerSendsStatementsToTheOthers(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the kernel accepts connections
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t), "PostgreSQL": server.SharePostgres(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, b := s.Open(t, "silent_home"), s.Open(t, "silent_b")
			database.Exec(t, b, "CREATE TABLE notes_1 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(20))")
			silent := opened(t, database.DriverOf(s), loopbackAddress.ReplaceAllString(s.DSN("silent_b"), listener.Addr().String()))
			m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"a": silent, "b": b}, sharding.Table{Name: "notes", Key: "user_id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{
				"INSERT INTO notes (id, user_id, note) VALUES (1, 1, 'x')", "SELECT * FROM notes WHERE user_id = 1", "UPDATE notes SET note = 'y' WHERE user_id = 1 AND id = 1",
				"SELECT note, COUNT(*) FROM notes WHERE user_id = 1 GROUP BY note ORDER BY note", "DELETE FROM notes WHERE user_id = 1",
			} {
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home}) // as of a new program
				ctx, done := context.WithTimeout(t.Context(), 5*time.Second)
				if _, err := routed.ExecContext(ctx, text); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				done()
				if err := routed.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
