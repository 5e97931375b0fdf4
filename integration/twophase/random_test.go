// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// clan has parents and children on two databases, users at home and kinds on all, and each of these tables in one
// database, too. All of them have constraints.
type clan struct {
	postgres      bool
	routed, whole *sql.DB
	home          *sql.DB
	shards        []*sql.DB
}

const clanUsers, clanKinds = "CREATE TABLE users (id BIGINT PRIMARY KEY, credit INT NOT NULL CHECK (credit >= 0))", "CREATE TABLE kinds (id BIGINT PRIMARY KEY)"

// createFamily makes the tables of parents and children. On PostgreSQL their references are checked at COMMIT.
func (c *clan) createFamily(t *testing.T, db *sql.DB, suffix string) {
	t.Helper()
	deferred := map[bool]string{true: " DEFERRABLE INITIALLY DEFERRED"}[c.postgres]
	database.Exec(t, db, "CREATE TABLE parents"+suffix+" (user_id BIGINT NOT NULL, id BIGINT NOT NULL, qty INT NOT NULL CHECK (qty >= 0), PRIMARY KEY (user_id, id))")
	database.Exec(t, db, "CREATE TABLE children"+suffix+" (user_id BIGINT NOT NULL, id BIGINT NOT NULL, parent BIGINT, kind BIGINT, pos INT NOT NULL, PRIMARY KEY (user_id, id), "+
		"CONSTRAINT family"+suffix+" FOREIGN KEY (user_id, parent) REFERENCES parents"+suffix+" (user_id, id) ON DELETE CASCADE"+deferred+", "+
		"CONSTRAINT sort"+suffix+" FOREIGN KEY (kind) REFERENCES kinds (id) ON DELETE SET NULL"+deferred+", CONSTRAINT place"+suffix+" UNIQUE (user_id, pos)"+deferred+")")
}

func openClan(t *testing.T, s database.Server, mode sharding.TxMode) *clan {
	t.Helper()
	open := func(name string) *sql.DB { return s.Open(t, fmt.Sprintf("clan_%s_%d", name, mode)) }
	c := &clan{whole: open("whole"), home: open("home"), shards: []*sql.DB{open("east"), open("west")}}
	kind, err := dialect.Identify(t.Context(), c.home)
	must(t, err)
	c.postgres = kind.Name() == "postgres"
	for _, db := range []*sql.DB{c.whole, c.home, c.shards[0], c.shards[1]} {
		database.Exec(t, db, clanKinds)
		if db == c.whole || db == c.home {
			database.Exec(t, db, clanUsers)
		}
		if db != c.whole {
			db.SetMaxOpenConns(1)
		}
	}
	c.createFamily(t, c.whole, "")
	c.createFamily(t, c.shards[0], "_0")
	c.createFamily(t, c.shards[1], "_1")
	table := func(name string) sharding.Table {
		m, err := sharding.MapOf(sharding.Target{DB: "east", Table: name + "_0"}, sharding.Target{DB: "west", Table: name + "_1"})
		must(t, err)
		return sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: m, Group: "clan"}
	}
	router, err := sharding.New(sharding.DBs{"east": c.shards[0], "west": c.shards[1]}, table("parents"), table("children"), sharding.Broadcast("kinds"), sharding.Transactions(mode))
	must(t, err)
	must(t, twophase.Create(t.Context(), router, c.home))
	c.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: c.home})
	t.Cleanup(func() { must(t, c.routed.Close()) })
	return c
}

// clanStatements are the statements of transactions. Each ? is a small number.
var clanStatements = []string{
	"INSERT INTO parents (user_id, id, qty) VALUES (?, ?, ?)",
	"INSERT INTO parents (user_id, id, qty) VALUES (?, ?, ?), (?, ?, 3)",
	"INSERT INTO children (user_id, id, parent, kind, pos) VALUES (?, ?, ?, ?, ?)",
	"INSERT INTO children (user_id, id, parent, pos) VALUES (?, ?, ?, ?), (?, ?, ?, ?)",
	"UPDATE parents SET qty = qty - ? WHERE user_id IN (?, ?)",
	"UPDATE children SET pos = pos + 1 WHERE user_id = ?",
	"UPDATE children SET parent = ? WHERE user_id IN (?, ?)",
	"DELETE FROM parents WHERE user_id = ? AND id < ?",
	"DELETE FROM parents WHERE id = ?",
	"INSERT INTO kinds (id) VALUES (?)",
	"DELETE FROM kinds WHERE id = ?",
	"INSERT INTO users (id, credit) VALUES (?, ?)",
	"UPDATE users SET credit = credit - ? WHERE id = ?",
	"SELECT id, qty FROM parents WHERE user_id IN (?, ?) FOR UPDATE",
	"SELECT user_id, id, parent, kind, pos FROM children",
	"SAVEPOINT p", "ROLLBACK TO SAVEPOINT p", "RELEASE SAVEPOINT p",
}

func (c *clan) statement(r *rand.Rand) string {
	all := clanStatements
	if c.postgres {
		all = append(slices.Clone(all), "SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED")
	}
	text := all[r.IntN(len(all))]
	for strings.Contains(text, "?") {
		text = strings.Replace(text, "?", strconv.Itoa(r.IntN(6)), 1)
	}
	return text
}

// transact executes a random transaction on both sides, and returns how they differ.
func (c *clan) transact(ctx context.Context, r *rand.Rand) (log []string, err error) {
	options := &sql.TxOptions{Isolation: []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelSerializable}[r.IntN(3)]}
	var sides [2]*sql.Tx
	for i, db := range []*sql.DB{c.routed, c.whole} {
		if sides[i], err = db.BeginTx(ctx, options); err != nil {
			return nil, err
		}
		defer func() { _ = sides[i].Rollback() }()
	}
	for range 3 + r.IntN(9) {
		text := c.statement(r)
		var said [2]string
		var errs [2]error
		for i, tx := range sides {
			said[i], errs[i] = clanAnswer(ctx, tx, text)
		}
		log = append(log, fmt.Sprintf("%s: %s %v", text, said[0], errs[0]))
		var refused *sharding.RouteError
		if (errs[0] == nil) != (errs[1] == nil) || said[0] != said[1] || errors.As(errs[0], &refused) {
			return log, fmt.Errorf("%s: %s (%w), one database: %s (%w)", text, said[0], errs[0], said[1], errs[1])
		}
	}
	end := (*sql.Tx).Commit
	if r.IntN(4) == 0 {
		end = (*sql.Tx).Rollback
	}
	one, two := end(sides[0]), end(sides[1])
	if (one == nil) != (two == nil) || errors.Is(one, sharding.ErrInDoubt) {
		err = fmt.Errorf("the end: %w, one database: %w", one, two)
	}
	return log, err
}

// clanAnswer returns the sorted rows of a query, or the number of rows that another statement has changed.
func clanAnswer(ctx context.Context, on interface {
	database.Queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, text string) (string, error) {
	if !strings.HasPrefix(text, "SELECT") {
		result, err := on.ExecContext(ctx, text)
		if err != nil {
			return "", err
		}
		n, err := result.RowsAffected()
		return strconv.FormatInt(n, 10), err
	}
	return clanRows(ctx, on, text)
}

func clanRows(ctx context.Context, on database.Queryer, text string) (string, error) {
	rows, err := on.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var all []string
	for rows.Next() {
		cells, into := make([]sql.NullInt64, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprint(cells))
	}
	slices.Sort(all)
	return strings.Join(all, " "), rows.Err()
}

// compare returns how the rows of both sides differ, and what the transactions have left.
func (c *clan) compare(ctx context.Context) error {
	for _, table := range []string{"parents", "children", "users", "kinds"} {
		got, err := clanRows(ctx, c.routed, "SELECT * FROM "+table)
		want, other := clanRows(ctx, c.whole, "SELECT * FROM "+table)
		if got != want || err != nil || other != nil {
			return fmt.Errorf("%s: %s (%w), one database: %s (%w)", table, got, err, want, other)
		}
	}
	kinds, err := clanRows(ctx, c.home, "SELECT * FROM kinds")
	for _, db := range c.shards {
		if copied, other := clanRows(ctx, db, "SELECT * FROM kinds"); copied != kinds || err != nil || other != nil {
			return fmt.Errorf("kinds: %s (%w) at home, %s (%w)", kinds, err, copied, other)
		}
	}
	for _, db := range append([]*sql.DB{c.home}, c.shards...) {
		if n := db.Stats().InUse; n > 0 {
			return fmt.Errorf("%d connections in use", n)
		}
	}
	prepared := "XA RECOVER"
	if c.postgres {
		prepared = "SELECT prepared FROM pg_prepared_xacts"
	}
	return dialect.Each(ctx, c.home, func(*sql.Rows) error { return errors.New("a prepared transaction is left") }, prepared)
}

// Constraints are violated by statements, and on PostgreSQL by COMMIT.
func TestRandomTransactionsUnderConstraintsLeaveWhatOneDatabaseHas(t *testing.T) {
	for name, run := range map[string]func(t *testing.T) database.Server{
		"MariaDB":    func(t *testing.T) database.Server { return server.RunMariaDB(t) },
		"MySQL":      func(t *testing.T) database.Server { return server.RunMySQL(t) },
		"PostgreSQL": func(t *testing.T) database.Server { return server.RunPostgres(t, "max_prepared_transactions=100") },
	} {
		t.Run(name, func(t *testing.T) {
			s := run(t)
			for _, mode := range []sharding.TxMode{sharding.BestEffort, sharding.Atomic} {
				c := openClan(t, s, mode)
				for seed := range effort.Cases[uint64](60, 3000) {
					ctx, cancel := context.WithTimeout(sharding.AllShards(t.Context()), time.Minute)
					log, err := c.transact(ctx, rand.New(rand.NewPCG(seed, 31)))
					if err == nil {
						err = c.compare(ctx)
					}
					cancel()
					if err != nil {
						t.Fatalf("mode %d, seed %d: %v\n%s", mode, seed, err, strings.Join(log, "\n"))
					}
				}
			}
		})
	}
}
