// SPDX-License-Identifier: Apache-2.0

package integration_test

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
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// mixedQueries are queries whose subqueries are executed first. Each ? is a small number.
var mixedQueries = []string{
	"SELECT id, qty FROM orders WHERE qty > (SELECT AVG(qty) FROM orders WHERE id > ?)",
	"SELECT id FROM orders WHERE user_id IN (SELECT id FROM users WHERE vip = ?)",
	"SELECT id FROM orders WHERE user_id = ? AND qty = (SELECT MAX(qty) FROM orders)",
	"SELECT id, vip FROM users WHERE id IN (SELECT user_id FROM orders WHERE qty > ?)",
	"SELECT COUNT(*) AS n FROM users WHERE id NOT IN (SELECT user_id FROM orders)",
	"SELECT SUM(qty) AS n FROM orders WHERE user_id NOT IN (SELECT id FROM users WHERE vip < ?)",
	"SELECT id FROM orders WHERE id = (SELECT MAX(id) FROM orders WHERE user_id = ?)",
	"SELECT (SELECT COUNT(*) FROM orders) AS n, id FROM users WHERE id < ?",
	"SELECT id FROM orders WHERE code IN (SELECT code FROM orders WHERE qty = ?) AND user_id = ?",
	"SELECT id, code FROM orders WHERE code = (SELECT MIN(code) FROM orders WHERE qty > ?)",
	"SELECT id FROM orders WHERE qty IN (SELECT level FROM levels WHERE id < ?)",
	"SELECT o.id, l.level FROM orders o JOIN levels l ON l.id = o.qty WHERE o.user_id IN (SELECT id FROM users WHERE vip > ?)",
	"SELECT id, qty, code FROM orders WHERE user_id = ? FOR UPDATE",
	"SELECT id, vip FROM users",
}

// mixed makes statements of programs.
type mixed struct {
	*rand.Rand

	postgres, seeks bool
}

// statement returns a statement and its arguments.
func (m mixed) statement() (text string, args []any) {
	user, n := m.IntN(8), m.IntN(6)
	id := n*8 + user
	switch m.IntN(14) {
	case 0, 1:
		text, args = "INSERT INTO orders (id, user_id, qty, code) VALUES (?, ?, ?, ?)", []any{id, user, m.IntN(6), "c" + strconv.Itoa(id)}
	case 2:
		text, args = "UPDATE orders SET qty = qty + ? WHERE user_id = ?", []any{n, user}
	case 3:
		text, args = "DELETE FROM orders WHERE user_id = ? AND qty > ?", []any{user, n}
	case 4:
		text, args = "UPDATE users SET vip = ? WHERE id = ?", []any{n, user}
	case 5:
		text, args = "INSERT INTO users (id, vip) VALUES (?, ?)", []any{user, n}
	case 6:
		text, args = "DELETE FROM users WHERE id = ?", []any{user}
	case 7:
		text, args = "INSERT INTO orders (id, user_id, qty, code) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE qty = 7", []any{id, user, n, "c" + strconv.Itoa(id)}
		if m.postgres {
			text = strings.Replace(text, "DUPLICATE KEY UPDATE", "CONFLICT (id) DO UPDATE SET", 1)
		}
		if m.seeks && !m.postgres && m.IntN(2) == 0 { // the code of another row
			args[3] = "c" + strconv.Itoa(m.IntN(48))
		}
	case 8:
		text, args = "UPDATE orders SET qty = ? WHERE code = ?", []any{n, "c" + strconv.Itoa(id)}
	case 9:
		text, args = "UPDATE levels SET level = ? WHERE id = ?", []any{n, user}
	case 10:
		other := (user + 1) % 8
		text, args = "INSERT INTO orders (id, user_id, qty, code) VALUES (?, ?, 1, ?), (?, ?, 2, ?)", []any{id, user, "c" + strconv.Itoa(id), n*8 + other, other, "c" + strconv.Itoa(n*8+other)}
	default:
		return m.query()
	}
	return m.numbered(text), args
}

func (m mixed) query() (text string, args []any) {
	text = mixedQueries[m.IntN(len(mixedQueries))]
	for range strings.Count(text, "?") {
		args = append(args, m.IntN(6))
	}
	return m.numbered(text), args
}

func (m mixed) numbered(text string) string {
	for i := 1; m.postgres && strings.Contains(text, "?"); i++ {
		text = strings.Replace(text, "?", "$"+strconv.Itoa(i), 1)
	}
	return text
}

// mixedTwins returns a routed database with orders on shards, users at home and levels everywhere, one with single
// tables, and the pools of the routed one.
func mixedTwins(t *testing.T, open namedDatabase, mode sharding.TxMode, seeks bool) (routed, whole *sql.DB, pools []*sql.DB) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "mixed_orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	whole, dbs := open(t, "mixed_whole"), sharding.DBs{"a": open(t, "mixed_a"), "b": open(t, "mixed_b")}
	home := open(t, "mixed_home")
	pools = []*sql.DB{home, dbs["a"], dbs["b"]}
	const orders, levels, users = " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, qty INT, code VARCHAR(20) UNIQUE)", "levels (id BIGINT PRIMARY KEY, level INT)", "users (id BIGINT PRIMARY KEY, vip INT)"
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+orders)
	}
	for _, db := range append([]*sql.DB{whole}, pools...) {
		database.Exec(t, db, "DROP TABLE IF EXISTS levels")
		database.Exec(t, db, "CREATE TABLE "+levels)
	}
	for _, db := range []*sql.DB{whole, home} {
		database.Exec(t, db, "DROP TABLE IF EXISTS users")
		database.Exec(t, db, "CREATE TABLE "+users)
	}
	database.Exec(t, whole, "DROP TABLE IF EXISTS orders")
	database.Exec(t, whole, "CREATE TABLE orders"+orders)
	table := sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m}
	if seeks {
		database.Exec(t, home, "DROP TABLE IF EXISTS mixed_codes")
		table.Lookups = []sharding.Lookup{{Column: "code", Table: "mixed_codes", Unique: true}}
	}
	router, err := sharding.New(dbs, sharding.Transactions(mode), sharding.Broadcast("levels"), table)
	if err != nil {
		t.Fatal(err)
	}
	if mode == sharding.Atomic {
		if err := twophase.Create(t.Context(), router, home); err != nil {
			t.Fatal(err)
		}
	}
	if seeks {
		c := lookups.Config{Router: router, Home: home, Table: "orders", Column: "code"}
		if err := lookups.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, db := range pools {
		db.SetMaxOpenConns(1 + map[bool]int{true: 1}[seeks])
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole, pools
}

type mixedSession interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// mixedAnswer returns what a statement does: its rows, or the number of rows that it changed.
func mixedAnswer(ctx context.Context, on mixedSession, text string, args []any) (string, error) {
	if strings.HasPrefix(text, "SELECT") {
		if p, ok := on.(preparer); ok && len(text)%2 == 0 {
			return mixedPrepared(ctx, p, text, args)
		}
		return mixedRows(ctx, on, text, args)
	}
	r, err := on.ExecContext(ctx, text, args...)
	if err != nil {
		return "", err
	}
	n, err := r.RowsAffected()
	return strconv.FormatInt(n, 10), err
}

// mixedRows returns sorted rows.
func mixedRows(ctx context.Context, on mixedSession, text string, args []any) (string, error) {
	rows, err := on.QueryContext(ctx, text, args...)
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
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprint(row))
	}
	slices.Sort(all)
	return strings.Join(all, " "), rows.Err()
}

// program sends random statements to both databases, on connections, in transactions or without, and returns
// how many both executed.
func (m mixed) program(ctx context.Context, routed, whole *sql.DB) (done int, log []string, err error) {
	on, alike := mixedSession(routed), mixedSession(whole)
	var txs [2]*sql.Tx
	switch m.IntN(4) {
	case 0:
	case 1:
		c, err := routed.Conn(ctx)
		if err != nil {
			return 0, nil, err
		}
		defer func() { _ = c.Close() }()
		on = c
	default:
		for i, db := range []*sql.DB{routed, whole} {
			if txs[i], err = db.BeginTx(ctx, nil); err != nil {
				return 0, nil, err
			}
			defer func() { _ = txs[i].Rollback() }()
		}
		on, alike = txs[0], txs[1]
	}
	points := 0
	for range 8 + m.IntN(8) {
		text, args := m.statement()
		if txs[0] != nil {
			switch p := m.IntN(points + 12); {
			case p == 0:
				points++
				text, args = "SAVEPOINT p"+strconv.Itoa(points), nil
			case p < points:
				text, args = "ROLLBACK TO SAVEPOINT p"+strconv.Itoa(p), nil
				points = p
			}
		}
		got, failed := mixedAnswer(ctx, on, text, args)
		var refusal *sharding.RouteError
		if errors.As(failed, &refusal) {
			log = append(log, fmt.Sprintf("%s %v: refused: %v", text, args, failed))
			continue
		}
		want, other := mixedAnswer(ctx, alike, text, args)
		log = append(log, fmt.Sprintf("%s %v: %s %v", text, args, got, failed))
		if (failed == nil) != (other == nil) || failed == nil && got != want {
			return done, log, fmt.Errorf("%s %v:\n%s (%w)\none table: %s (%w)", text, args, got, failed, want, other)
		}
		if done++; failed != nil && m.postgres && txs[0] != nil {
			break
		}
	}
	if txs[0] == nil {
		return done, log, nil
	}
	end := (*sql.Tx).Commit
	if m.IntN(3) == 0 {
		end = (*sql.Tx).Rollback
	}
	one, two := end(txs[0]), end(txs[1])
	if (one == nil) != (two == nil) {
		return done, log, fmt.Errorf("the end: %w, one table: %w", one, two)
	}
	return done, log, nil
}

// Statements at home, on shards and on broadcast tables are mixed, on one connection and in transactions of each mode.
func TestRandomProgramsOverHomeAndShardsLeaveWhatOneDatabaseHas(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range kinds {
		for _, mode := range []sharding.TxMode{sharding.SingleShard, sharding.BestEffort, sharding.Atomic} {
			if mode == sharding.Atomic && name == "PostgreSQL" {
				continue // the server prepares no transactions
			}
			for seeks, with := range map[bool]string{false: "", true: " with a lookup table"} {
				t.Run(fmt.Sprintf("%s, mode %d%s", name, mode, with), func(t *testing.T) { mixRandomly(t, open, mode, seeks, name == "PostgreSQL") })
			}
		}
	}
}

func mixRandomly(t *testing.T, open namedDatabase, mode sharding.TxMode, seeks, postgres bool) {
	t.Helper()
	routed, whole, pools := mixedTwins(t, open, mode, seeks)
	done := 0
	for seed := range effort.Cases[uint64](20, 5000) {
		m := mixed{rand.New(rand.NewPCG(seed, 21)), postgres, seeks}
		ctx, cancel := context.WithTimeout(sharding.AllShards(t.Context()), 20*time.Second)
		n, log, err := m.program(ctx, routed, whole)
		for _, text := range []string{"SELECT * FROM orders", "SELECT * FROM users", "SELECT * FROM levels"} {
			if err != nil {
				break
			}
			got, failed := mixedAnswer(ctx, routed, text, nil)
			want, other := mixedAnswer(ctx, whole, text, nil)
			if got != want || failed != nil || other != nil {
				err = fmt.Errorf("%s:\n%s (%w)\none database: %s (%w)", text, got, failed, want, other)
			}
		}
		cancel()
		if done += n; err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(log, "\n"))
		}
		for i, db := range pools {
			if n := db.Stats().InUse; n > 0 {
				t.Fatalf("seed %d: pool %d has %d connections in use", seed, i, n)
			}
		}
	}
	if t.Logf("%d statements", done); done < 60 {
		t.Error("too few")
	}
}

type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// mixedPrepared executes a prepared query twice.
func mixedPrepared(ctx context.Context, on preparer, text string, args []any) (string, error) {
	st, err := on.PrepareContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer func() { _ = st.Close() }()
	first, err := mixedRows(ctx, stmtSession{st}, text, args)
	if err != nil {
		return "", err
	}
	again, err := mixedRows(ctx, stmtSession{st}, text, args)
	if err == nil && first != again {
		err = fmt.Errorf("then %s, now %s", first, again)
	}
	return again, err
}

type stmtSession struct{ st *sql.Stmt }

func (s stmtSession) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return s.st.QueryContext(ctx, args...)
}

func (s stmtSession) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return s.st.ExecContext(ctx, args...)
}

func TestAProgramWhoseContextEndsHoldsNoConnectionAfterwards(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			routed, whole, pools := mixedTwins(t, open, sharding.BestEffort, true)
			ended := 0
			for seed := range effort.Cases[uint64](100, 5000) {
				m := mixed{rand.New(rand.NewPCG(seed, 22)), name == "PostgreSQL", true}
				ctx, cancel := context.WithTimeout(sharding.AllShards(t.Context()), time.Duration(m.IntN(6000))*time.Microsecond)
				if _, _, err := m.program(ctx, routed, whole); errors.Is(err, context.DeadlineExceeded) {
					ended++
				}
				cancel()
				for i, db := range pools { // database/sql rolls a transaction back in the background
					testwait.Until(t, fmt.Sprintf("seed %d: pool %d has no connection in use", seed, i), func() bool { return db.Stats().InUse == 0 })
				}
			}
			t.Logf("%d contexts ended", ended)
		})
	}
}
