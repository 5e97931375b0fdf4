// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// bank has accounts on two servers: those of even users in east, of odd users in west.
// Each transfer leaves an entry in the journal of both. The number of an account is 100 larger than its user, and leads to no server.
type bank struct {
	east, west *sql.DB
	server     dialect.Server
	router     *sharding.Router
	routed     *sql.DB
}

const users = 8

// errNoAccount would be a fault: every account exists.
var errNoAccount = errors.New("bank: the account was not found")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newBank returns a bank on pools whose tables exist.
func newBank(ctx context.Context, east, west *sql.DB) (*bank, error) {
	b := &bank{east: east, west: west}
	table := func(name string) sharding.Table {
		m, err := sharding.MapOf(sharding.Target{DB: "east", Table: name + "_0"}, sharding.Target{DB: "west", Table: name + "_1"})
		if err != nil {
			panic(err)
		}
		return sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: m}
	}
	var err error
	if b.server, err = dialect.Identify(ctx, east); err != nil {
		return nil, err
	}
	b.router, err = sharding.New(sharding.DBs{"east": east, "west": west}, table("accounts"), table("journal"), sharding.Transactions(sharding.Atomic))
	if err != nil {
		return nil, err
	}
	b.routed = shardsql.OpenDB(shardsql.Config{Router: b.router, Home: east})
	return b, nil
}

// openBank makes the tables of a bank.
func openBank(t *testing.T, a, z database.Server) *bank {
	t.Helper()
	east, west := a.Open(t, "bank_east"), z.Open(t, "bank_west")
	b, err := newBank(t.Context(), east, west)
	must(t, err)
	t.Cleanup(func() { must(t, b.routed.Close()) })
	for n, db := range []*sql.DB{east, west} {
		database.Exec(t, db, fmt.Sprintf("CREATE TABLE accounts_%d (user_id BIGINT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL, number BIGINT NOT NULL UNIQUE)", n))
		database.Exec(t, db, fmt.Sprintf("CREATE TABLE journal_%d (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL)", n))
		for user := n; user < users; user += 2 {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO accounts_%d VALUES (%d, 0, %d)", n, user, 100+user))
		}
	}
	return b
}

// transfer moves one from a user to another, and notes it on both sides. Every second one finds the accounts by their numbers.
func (b *bank) transfer(ctx context.Context, id int64, from, to int) error {
	tx, err := b.routed.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, side := range []struct{ user, change int }{{from, -1}, {to, 1}} {
		text, key := "UPDATE accounts SET balance = balance + ? WHERE user_id = ?", side.user
		if id%2 == 0 {
			text, key = "UPDATE accounts SET balance = balance + ? WHERE number = ?", 100+side.user
		}
		result, err := tx.ExecContext(ctx, dialect.Text(b.server, text), side.change, key) //nolint:gosec // one of two texts
		if err == nil {
			if n, failed := result.RowsAffected(); n != 1 {
				err = fmt.Errorf("%d rows changed: %w", n, errors.Join(failed, errNoAccount))
			}
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, dialect.Text(b.server, "INSERT INTO journal (id, user_id) VALUES (?, ?)"), id, side.user) //nolint:gosec // a text of this line
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// resolver returns one that waits for as long as it is told.
func (b *bank) resolver(t testing.TB, after time.Duration) *twophase.Resolver {
	t.Helper()
	r, err := twophase.New(twophase.Config{Router: b.router, After: after, Every: 50 * time.Millisecond})
	must(t, err)
	return r
}

// settle waits until no branch remains.
func (b *bank) settle(t *testing.T) (total twophase.Report) {
	t.Helper()
	r := b.resolver(t, 20*time.Millisecond)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		did, err := r.Resolve(t.Context())
		total, _ = r.Total()
		if err == nil && did.InDoubt == 0 && b.prepared(t) == 0 {
			return total
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, %v, %d branches are left", did, err, b.prepared(t))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// prepared counts the prepared transactions on both servers.
func (b *bank) prepared(t *testing.T) (n int) {
	t.Helper()
	list := "XA RECOVER"
	if b.server.Name() == "postgres" {
		list = "SELECT gid FROM pg_prepared_xacts"
	}
	for _, db := range []*sql.DB{b.east, b.west} {
		must(t, dialect.Each(t.Context(), db, func(*sql.Rows) error { n++; return nil }, list))
	}
	return n
}

// journal is on which sides each transfer is noted: 1 in east, 2 in west, 3 on both.
func (b *bank) journal(t *testing.T) map[int64]int {
	t.Helper()
	all := map[int64]int{}
	for n, db := range []*sql.DB{b.east, b.west} {
		must(t, dialect.Each(t.Context(), db, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			all[id] |= n + 1
			return err
		}, fmt.Sprintf("SELECT id FROM journal_%d", n)))
	}
	return all
}

// audit finds transfers that only one database has, and balances that no transfer explains.
func (b *bank) audit(t *testing.T) map[int64]int {
	t.Helper()
	all, halves := b.journal(t), 0
	for id, sides := range all {
		if sides != 3 {
			halves++
			t.Errorf("transfer %d is on side %d only", id, sides)
		}
	}
	var east, west int64
	must(t, b.east.QueryRowContext(t.Context(), "SELECT SUM(balance) FROM accounts_0").Scan(&east))
	must(t, b.west.QueryRowContext(t.Context(), "SELECT SUM(balance) FROM accounts_1").Scan(&west))
	if east+west != 0 {
		t.Errorf("%d is in east and %d in west", east, west)
	}
	var rows int
	must(t, b.east.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state = 'committed'").Scan(&rows))
	return all
}

// serversOf runs a test on two servers of each kind.
func serversOf(t *testing.T, test func(t *testing.T, a, z database.Server)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { t.Parallel(); test(t, server.RunMariaDB(t), server.RunMariaDB(t)) })
	t.Run("MySQL", func(t *testing.T) { t.Parallel(); test(t, server.RunMySQL(t), server.RunMySQL(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunPostgres(t, "max_prepared_transactions=100"), server.RunPostgres(t, "max_prepared_transactions=100"))
	})
}

// The program that is killed is this test, started again with the bank's databases.
const eastVariable, westVariable, driverVariable, firstVariable = "BANK_EAST", "BANK_WEST", "BANK_DRIVER", "BANK_FIRST"

func TestMain(m *testing.M) {
	if step, err := strconv.ParseInt(os.Getenv(stepVariable), 10, 64); err == nil {
		dieAt(step, os.Getenv(behindVariable) == "true")
	}
	if os.Getenv(eastVariable) != "" {
		trade()
		return
	}
	os.Exit(m.Run())
}

// trade makes transfers until it is killed, and prints the outcome of each: + for a
// commit, - for a rollback, ? if it is unknown.
func trade() {
	ctx := context.Background()
	open := func(variable string) *sql.DB {
		db, err := sql.Open(os.Getenv(driverVariable), os.Getenv(variable))
		if err != nil {
			panic(err)
		}
		return db
	}
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // of connections that break
	east, west := open(eastVariable), open(westVariable)
	b, err := newBank(ctx, east, west)
	for err != nil { // a server was killed already
		time.Sleep(10 * time.Millisecond)
		b, err = newBank(ctx, east, west)
	}
	id, err := strconv.ParseInt(os.Getenv(firstVariable), 10, 64)
	if err != nil {
		panic(err)
	}
	var turn sync.Mutex
	for range 4 {
		go func() {
			for {
				turn.Lock()
				id++
				own := id
				turn.Unlock()
				from, to := 2*rand.IntN(users/2), 1+2*rand.IntN(users/2)
				if rand.IntN(2) == 0 {
					from, to = to, from
				}
				outcome := "+"
				// No server sees two transactions that wait for each other on two servers.
				limited, done := context.WithTimeout(ctx, 300*time.Millisecond)
				err := b.transfer(limited, own, from, to)
				done()
				switch {
				case errors.Is(err, sharding.ErrInDoubt):
					outcome = "?"
				case errors.Is(err, errNoAccount):
					panic(err)
				case err != nil:
					outcome = "-"
				}
				turn.Lock()
				_, _ = fmt.Fprintf(os.Stdout, "%s%d\n", outcome, own)
				turn.Unlock()
			}
		}()
	}
	select {}
}
