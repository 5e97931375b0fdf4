// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/lib/pq"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// family has parents and their children on two databases of PostgreSQL, which look for the parents at COMMIT. The kinds
// of children are a broadcast table.
type family struct {
	east, west, routed *sql.DB
}

func openFamily(t *testing.T, p *server.Postgres, driver string, mode sharding.TxMode) family {
	t.Helper()
	open := func(name string) *sql.DB {
		database.Exec(t, p.Open(t, name), "DROP SCHEMA public CASCADE")
		dsn := p.DSN(name)
		db, err := sql.Open(driver, dsn+map[bool]string{true: "?sslmode=disable"}[!strings.Contains(dsn, "sslmode")])
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		db.SetMaxOpenConns(1)
		database.Exec(t, db, "CREATE SCHEMA public")
		return db
	}
	f := family{east: open("family_east"), west: open("family_west")}
	dbs := []*sql.DB{f.east, f.west}
	table := func(name string) sharding.Table {
		m, err := sharding.MapOf(sharding.Target{DB: "east", Table: name + "_0"}, sharding.Target{DB: "west", Table: name + "_1"})
		must(t, err)
		return sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: m, Group: "family"}
	}
	for n, suffix := range []string{"_0", "_1"} {
		database.Exec(t, dbs[n], "CREATE TABLE kinds (id BIGINT PRIMARY KEY, above BIGINT REFERENCES kinds DEFERRABLE INITIALLY DEFERRED)")
		database.Exec(t, dbs[n], "CREATE TABLE parents"+suffix+" (user_id BIGINT PRIMARY KEY)")
		database.Exec(t, dbs[n], "CREATE TABLE children"+suffix+" (user_id BIGINT NOT NULL REFERENCES parents"+suffix+" DEFERRABLE INITIALLY DEFERRED)")
	}
	router, err := sharding.New(sharding.DBs{"east": f.east, "west": f.west}, table("parents"), table("children"), sharding.Broadcast("kinds"), sharding.Transactions(mode))
	must(t, err)
	must(t, twophase.Create(t.Context(), router, nil))
	f.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: f.east})
	t.Cleanup(func() { must(t, f.routed.Close()) })
	return f
}

// rows counts the rows of a table in both databases.
func (f family) rows(t *testing.T, table string) int64 {
	t.Helper()
	return database.MustNumber(t, f.east, "SELECT COUNT(*) FROM "+table+"_0") + database.MustNumber(t, f.west, "SELECT COUNT(*) FROM "+table+"_1")
}

func families(t *testing.T, modes []sharding.TxMode, test func(t *testing.T, f family)) {
	t.Helper()
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	for _, mode := range modes {
		for _, driver := range []string{"pgx", "postgres"} {
			t.Run(map[sharding.TxMode]string{sharding.SingleShard: "one database", sharding.BestEffort: "best effort", sharding.Atomic: "atomic"}[mode]+", "+driver,
				func(t *testing.T) { test(t, openFamily(t, p, driver, mode)) })
		}
	}
}

const foreignKey = "23503"

// One table would report the row without a parent before it keeps any other.
func TestADeferredConstraintIsCheckedBeforeAnyDatabaseCommits(t *testing.T) {
	families(t, []sharding.TxMode{sharding.BestEffort, sharding.Atomic}, func(t *testing.T, f family) {
		for _, texts := range [][]string{
			{"INSERT INTO children (user_id) VALUES (0), (1)"},
			{"INSERT INTO parents (user_id) VALUES (0)", "INSERT INTO children (user_id) VALUES (0), (1)"},
			{"INSERT INTO parents (user_id) VALUES (1)", "INSERT INTO children (user_id) VALUES (1), (0)"},
			{"INSERT INTO kinds (id, above) VALUES (1, 2)"},
		} {
			tx, err := f.routed.BeginTx(t.Context(), nil)
			must(t, err)
			for _, text := range texts {
				database.Exec(t, tx, text)
			}
			var partial *sharding.PartialCommitError
			if err := tx.Commit(); dialect.SQLState(err) != foreignKey || errors.As(err, &partial) {
				t.Errorf("%v: %v", texts, err)
			}
			if n := f.rows(t, "parents") + f.rows(t, "children"); n != 0 {
				t.Errorf("%v: %d rows", texts, n)
			}
		}
		if n := database.MustNumber(t, f.east, "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state <> 'identity'"); n != 0 {
			t.Errorf("%d decisions are left", n)
		}
	})
}

func TestABroadcastTableWithADeferredConstraintIsChangedEverywhereOrNowhere(t *testing.T) {
	families(t, []sharding.TxMode{sharding.SingleShard}, func(t *testing.T, f family) {
		database.Exec(t, f.west, "INSERT INTO kinds VALUES (2)") // one copy has it, so that only the other one finds the violation
		for range 2 {
			var partial *sharding.PartialCommitError
			if _, err := f.routed.ExecContext(t.Context(), "INSERT INTO kinds (id, above) VALUES (1, 2)"); dialect.SQLState(err) != foreignKey || errors.As(err, &partial) {
				t.Error(err)
			}
			f.east, f.west = f.west, f.east
			database.Exec(t, f.west, "DELETE FROM kinds")
			database.Exec(t, f.east, "DELETE FROM kinds")
			database.Exec(t, f.west, "INSERT INTO kinds VALUES (2)")
		}
	})
}

// What is set for a transaction holds in each of its databases, and until ROLLBACK TO an earlier savepoint.
func TestWhatIsSetForATransactionHoldsInAllItsDatabases(t *testing.T) {
	families(t, []sharding.TxMode{sharding.BestEffort, sharding.Atomic}, func(t *testing.T, f family) {
		tx, err := f.routed.BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		fails := func(text, state string) {
			t.Helper()
			if _, err := tx.ExecContext(t.Context(), text); dialect.SQLState(err) != state {
				t.Errorf("%s: %v, want %s", text, err, state)
			}
		}
		database.Exec(t, tx, "SAVEPOINT first")
		database.Exec(t, tx, "INSERT INTO children (user_id) VALUES (1)")
		fails("SET CONSTRAINTS ALL IMMEDIATE", foreignKey)
		fails("INSERT INTO parents (user_id) VALUES (0)", "25P02")
		database.Exec(t, tx, "ROLLBACK TO SAVEPOINT first")
		database.Exec(t, tx, "/* now */ set constraints all immediate;")
		fails("INSERT INTO children (user_id) VALUES (0)", foreignKey) // on a database that joins later
		database.Exec(t, tx, "ROLLBACK TO SAVEPOINT first")
		database.Exec(t, tx, "SAVEPOINT second")
		database.Exec(t, tx, "SET CONSTRAINTS ALL IMMEDIATE")
		database.Exec(t, tx, "RELEASE SAVEPOINT second")
		fails("INSERT INTO children (user_id) VALUES (0)", foreignKey)
		database.Exec(t, tx, "ROLLBACK TO SAVEPOINT first")
		database.Exec(t, tx, "SET CONSTRAINTS ALL DEFERRED")
		database.Exec(t, tx, "INSERT INTO children (user_id) VALUES (0), (1)")
		database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES (0), (1)")
		must(t, tx.Commit())
		if n := f.rows(t, "children"); n != 2 {
			t.Errorf("%d children", n)
		}

		tx, err = f.routed.BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { _ = tx.Rollback() }()
		database.Exec(t, tx, "SET TRANSACTION READ ONLY")
		database.Exec(t, tx, "SAVEPOINT first")
		database.Exec(t, tx, "SET LOCAL lock_timeout = '7s'")
		for _, user := range []string{"0", "1"} {
			var timeout string
			must(t, tx.QueryRowContext(t.Context(), "SELECT current_setting('lock_timeout') FROM parents WHERE user_id = "+user).Scan(&timeout))
			if timeout != "7s" {
				t.Errorf("user %s: %s", user, timeout)
			}
			fails("DELETE FROM children WHERE user_id = "+user, "25006")
			database.Exec(t, tx, "ROLLBACK TO SAVEPOINT first")
			database.Exec(t, tx, "SET LOCAL lock_timeout = '7s'")
		}
	})
}

func TestASavepointThatIsMissingAbortsATransactionThatHasBegunNowhere(t *testing.T) {
	families(t, []sharding.TxMode{sharding.SingleShard, sharding.BestEffort}, func(t *testing.T, f family) {
		for _, text := range []string{"ROLLBACK TO SAVEPOINT p", "RELEASE p"} {
			tx, err := f.routed.BeginTx(t.Context(), nil)
			must(t, err)
			if _, err := tx.ExecContext(t.Context(), text); dialect.SQLState(err) != "3B001" {
				t.Errorf("%s: %v", text, err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO parents (user_id) VALUES (1)"); dialect.SQLState(err) != "25P02" {
				t.Errorf("after %s: %v", text, err)
			}
			must(t, tx.Rollback())
		}
	})
}

func TestASavepointReplacesTheOneWithItsNameBeforeATransactionHasBegun(t *testing.T) {
	for name, s := range map[string]database.Server{"MariaDB": server.RunMariaDB(t), "MySQL": server.RunMySQL(t)} {
		b := openBank(t, s, s)
		tx, err := b.routed.BeginTx(t.Context(), nil)
		must(t, err)
		for _, text := range []string{"SAVEPOINT p", "SAVEPOINT q", "SAVEPOINT P", "RELEASE SAVEPOINT p"} {
			database.Exec(t, tx, text)
		}
		if _, err := tx.ExecContext(t.Context(), "RELEASE SAVEPOINT p"); err == nil {
			t.Error(name + ": it was released already")
		}
		database.Exec(t, tx, "ROLLBACK TO SAVEPOINT q")
		must(t, tx.Rollback())
	}
}

// A COMMIT that PostgreSQL refuses ends the transaction, and not the session.
func TestASessionSurvivesARefusedCommit(t *testing.T) {
	families(t, []sharding.TxMode{sharding.SingleShard, sharding.Atomic}, func(t *testing.T, f family) {
		c, err := f.routed.Conn(t.Context())
		must(t, err)
		defer func() { must(t, c.Close()) }()
		database.Exec(t, c, "CREATE TEMP TABLE notes (id BIGINT)")
		for _, commit := range []func() error{
			func() error {
				_, err := c.ExecContext(t.Context(), "INSERT INTO children (user_id) VALUES (0)")
				return err
			},
			func() error { return transacted(t.Context(), c, "INSERT INTO children (user_id) VALUES (0)") },
			func() error { return transacted(t.Context(), c, "INSERT INTO kinds (id, above) VALUES (1, 2)") },
		} {
			if err := commit(); err == nil {
				t.Error("a row without its parent")
			}
			database.Exec(t, c, "INSERT INTO notes VALUES (1)")
		}
	})
}

func transacted(ctx context.Context, c *sql.Conn, text string) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// refusing makes connections whose first COMMIT is refused.
type refusing struct {
	driver.Connector

	left *atomic.Int64
}

func (c refusing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return refusingConn{conn.(wholeConn), c.left}, nil
}

type refusingConn struct {
	wholeConn

	left *atomic.Int64
}

func (c refusingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.wholeConn.BeginTx(ctx, options)
	return refusingTx{tx, c.left}, err
}

type refusingTx struct {
	driver.Tx

	left *atomic.Int64
}

func (t refusingTx) Commit() error {
	if t.left.Add(-1) < 0 {
		return t.Tx.Commit()
	}
	return errors.Join(t.Rollback(), &pgconn.PgError{Code: "40001", Message: "could not serialize access"})
}

// The pool of the deciding database has only the connection of the session.
func TestASessionLearnsThatItsDatabaseHasRefusedTheCommit(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	b := openBank(t, p, p)
	must(t, twophase.Create(t.Context(), b.router, nil))
	connector, err := b.east.Driver().(driver.DriverContext).OpenConnector(p.DSN("bank_east"))
	must(t, err)
	left := &atomic.Int64{}
	east := sql.OpenDB(refusing{connector, left})
	t.Cleanup(func() { must(t, east.Close()) })
	east.SetMaxOpenConns(1)
	narrow, err := newBank(t.Context(), east, b.west)
	must(t, err)
	t.Cleanup(func() { must(t, narrow.routed.Close()) })
	c, err := narrow.routed.Conn(t.Context())
	must(t, err)
	defer func() { must(t, c.Close()) }()
	database.Exec(t, c, "CREATE TEMP TABLE notes (id BIGINT)")
	for want := range int64(2) {
		left.Store(1 - want)
		tx, err := c.BeginTx(t.Context(), nil)
		must(t, err)
		database.Exec(t, tx, "INSERT INTO journal (id, user_id) VALUES (1, 0), (1, 1)")
		if err := tx.Commit(); want == 0 && (dialect.SQLState(err) != "40001" || errors.Is(err, sharding.ErrInDoubt)) || want == 1 && err != nil {
			t.Fatal(err)
		}
		if all := b.audit(t); int64(len(all)) != want || b.prepared(t) != 0 {
			t.Fatalf("%v, %d prepared", all, b.prepared(t))
		}
	}
}
