// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// migrationShop has its source and one half of its shards on one server, the
// other half on another.
type migrationShop struct {
	servers [2]database.Server
	source  *sql.DB
	shards  sharding.DBs
	rest    atomic.Int64 // how long a writer rests after a transaction, in nanoseconds
	speaks  *shopSpeech
}

// shopSpeech has the SQL that differs between kinds of servers.
type shopSpeech struct {
	driver, table, row, integer string

	long    string // makes notes as long as they can be
	counted string // after INT, of a column that the table numbers

	leads, kills          string // who leads the job orders, and how to end a connection
	self                  string // the connection that asks
	deadlock, lockTimeout fault
	lost                  error  // the driver's, of a connection that is gone
	connected, busy       string // the connections of a user, and those of them with a statement under way
	user, silent          string // the user of the tests, and what makes the server close a connection after a silent second
	sleeper               []string
	onShards              [3]string // changes of a table, of an id, by another number

	triggers    string // the names of all triggers
	again       string // inserts a row by a number, or changes it
	dropping    string // the connections that wait to drop a trigger
	waiting     string // the connections that wait for a table's lock
	dropBack    string // drops a trigger of a shard
	there, like string // how many tables have the name, or one like it
	noTable     string // the error of a statement on a table that is not there, with its name
	replaces    [3]string
	fixes       string // the counter of a table after rows came with their ids; "" is nothing
}

var mysqlShop = &shopSpeech{
	driver:      "mysql",
	deadlock:    fault{"ROLLBACK", &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"}},
	lockTimeout: fault{"", &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}},
	lost:        mysql.ErrInvalidConn,
	table: `CREATE TABLE orders (
		id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		user_id INT NOT NULL,
		code VARCHAR(20) NULL,
		note VARCHAR(100) NOT NULL DEFAULT '',
		total DECIMAL(12,2) NULL,
		weight FLOAT NULL,
		made DATETIME(6) NULL,
		UNIQUE KEY code (code), KEY by_user (user_id))`,
	row:       "CONCAT_WS('|', id, user_id, IFNULL(code, 'NULL'), note, IFNULL(total, 'NULL'), IFNULL(weight+0e0, 'NULL'), IFNULL(made, 'NULL'))",
	integer:   "SIGNED",
	long:      "ALTER TABLE orders MODIFY note LONGTEXT NOT NULL",
	counted:   "AUTO_INCREMENT",
	leads:     "SELECT id FROM (SELECT IS_USED_LOCK(LEFT(CONCAT('shardid:', SHA2(CONCAT(DATABASE(), '/orders'), 224)), 64)) AS id) AS l WHERE id IS NOT NULL",
	kills:     "KILL CONNECTION %d",
	self:      "SELECT CONNECTION_ID()",
	connected: "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '%s'",
	busy:      "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '%s' AND (COMMAND <> 'Sleep' OR TIME < 2)", // a busy machine reads a statement late
	user:      "root",
	silent:    "SET SESSION wait_timeout = 1",
	sleeper:   []string{"CREATE USER sleeper", "GRANT ALL ON *.* TO sleeper"},
	onShards: [3]string{
		"INSERT INTO %[1]s (id, user_id, code) VALUES (%[2]d, 3, 's%[2]d-%[3]d') ON DUPLICATE KEY UPDATE note = 'dup'",
		"INSERT IGNORE INTO %[1]s (id, user_id, code) VALUES (%[2]d, 4, 'i%[2]d-%[3]d')",
		"REPLACE INTO %[1]s (id, user_id, code) VALUES (%[2]d, 5, 'r%[2]d-%[3]d')",
	},
	there:    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '%s'",
	triggers: "SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()",
	again:    "INSERT INTO %s (id, user_id) VALUES (100000 + %d, 3) ON DUPLICATE KEY UPDATE note = 'again'",
	waiting:  "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock'",
	dropBack: "DROP TRIGGER shardid_orders_b0_0_ins",
	dropping: "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock' AND INFO LIKE 'DROP TRIGGER%'",
	like:     "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '%s'",
	noTable:  ".%s' doesn't exist",
	replaces: [3]string{
		"REPLACE INTO orders (id, user_id, code) VALUES (?, ?, ?)",
		"INSERT INTO orders (id, user_id, code) VALUES (?, 3, ?) ON DUPLICATE KEY UPDATE note = 'dup'",
		"INSERT IGNORE INTO orders (id, user_id, code) VALUES (?, 4, ?)",
	},
}

var postgresShop = &shopSpeech{
	driver:      "pgx",
	deadlock:    fault{"DO $$BEGIN RAISE 'deadlock detected' USING ERRCODE = '40P01'; END$$", nil},
	lockTimeout: fault{"DO $$BEGIN RAISE 'canceling statement due to lock timeout' USING ERRCODE = '55P03'; END$$", nil},
	lost:        fmt.Errorf("failed to receive message: %w", io.ErrUnexpectedEOF),
	table: `CREATE TABLE orders (
		id INT NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
		user_id INT NOT NULL,
		code VARCHAR(20) NULL UNIQUE,
		note VARCHAR(100) NOT NULL DEFAULT '',
		total DECIMAL(12,2) NULL,
		weight REAL NULL,
		made TIMESTAMP(6) NULL);
		CREATE INDEX by_user ON orders (user_id)`,
	row:       "CONCAT_WS('|', id, user_id, COALESCE(code, 'NULL'), note, COALESCE(total::text, 'NULL'), COALESCE(weight::text, 'NULL'), COALESCE(made::text, 'NULL'))",
	integer:   "BIGINT",
	long:      "ALTER TABLE orders ALTER note TYPE TEXT",
	counted:   "GENERATED BY DEFAULT AS IDENTITY",
	leads:     "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
	kills:     "SELECT pg_terminate_backend(%d)",
	self:      "SELECT pg_backend_pid()",
	connected: "SELECT pid FROM pg_stat_activity WHERE usename = '%s'",
	busy:      "SELECT pid FROM pg_stat_activity WHERE usename = '%s' AND state = 'active'",
	user:      "postgres",
	silent:    "SELECT set_config(name, '1000', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout')",
	sleeper:   []string{"CREATE USER sleeper SUPERUSER"},
	onShards: [3]string{
		"INSERT INTO %[1]s (id, user_id, code) VALUES (%[2]d, 3, 's%[2]d-%[3]d') ON CONFLICT (id) DO UPDATE SET note = 'dup'",
		"INSERT INTO %[1]s (id, user_id, code) VALUES (%[2]d, 4, 'i%[2]d-%[3]d') ON CONFLICT DO NOTHING",
		"INSERT INTO %[1]s (id, user_id, code) VALUES (%[2]d, 5, 'r%[2]d-%[3]d') ON CONFLICT (id) DO UPDATE SET user_id = 5, code = excluded.code, note = ''",
	},
	there:    "SELECT COUNT(*) FROM pg_class WHERE relname = '%s'",
	triggers: "SELECT tgname::text AS name FROM pg_trigger WHERE NOT tgisinternal",
	again:    "INSERT INTO %s (id, user_id) VALUES (100000 + %d, 3) ON CONFLICT (id) DO UPDATE SET note = 'again'",
	waiting:  "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
	dropBack: "DROP FUNCTION shardid_orders_b0_0_ins() CASCADE",
	dropping: "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND (query LIKE 'DROP TRIGGER%' OR query LIKE 'DROP FUNCTION%' OR query LIKE 'LOCK TABLE%')",
	like:     "SELECT COUNT(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE '%s'",
	noTable:  `relation "%s" does not exist`,
	replaces: [3]string{
		"INSERT INTO orders (id, user_id, code) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, code = excluded.code, note = ''",
		"INSERT INTO orders (id, user_id, code) VALUES ($1, 3, $2) ON CONFLICT (id) DO UPDATE SET note = 'dup'",
		"INSERT INTO orders (id, user_id, code) VALUES ($1, 4, $2) ON CONFLICT DO NOTHING",
	},
	fixes: "SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), MAX(id)) FROM %[1]s",
}

// onShops runs a test on each kind of server.
func onShops(t *testing.T, test func(t *testing.T, s *migrationShop)) {
	t.Helper()
	onShopServers(t, test)
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, newMigrationShop(t, server.RunPostgres(t), server.RunPostgres(t)))
	})
}

// onShopServers runs a test on MariaDB and on MySQL.
func onShopServers(t *testing.T, test func(t *testing.T, s *migrationShop)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, newMigrationShop(t, server.RunMariaDB(t), server.RunMariaDB(t)))
	})
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, newMigrationShop(t, server.RunMySQL(t), server.RunMySQL(t)))
	})
}

func newMigrationShop(t *testing.T, a, b database.Server) *migrationShop {
	t.Helper()
	s := &migrationShop{
		servers: [2]database.Server{a, b},
		source:  a.Open(t, "shop"),
		shards:  sharding.DBs{"a": a.Open(t, "shop_a"), "b": b.Open(t, "shop_b")},
		speaks:  mysqlShop,
	}
	if _, is := a.(*server.Postgres); is {
		s.speaks = postgresShop
	}
	s.rest.Store(int64(writersRest()))
	database.Exec(t, s.source, s.speaks.table)
	return s
}

// writersRest is how long a writer rests after a transaction. Without a rest, writers take the processors from
// the runner, which has more changes to follow the longer it takes. In the long run they do not rest.
func writersRest() time.Duration {
	if effort.Soak() {
		return 0
	}
	return 10 * time.Millisecond
}

// fill makes rows with ids from 1 on.
func (s *migrationShop) fill(t *testing.T, rows int) {
	t.Helper()
	for from := 1; from <= rows; from += 1000 {
		var values []string
		for i := from; i <= min(rows, from+999); i++ {
			values = append(values, fmt.Sprintf("(%d,%d,'c%d','it''s note %d',%d.%02d,%d.1,'2024-02-29 12:34:56.%06d')", i, i%17, i, i, i, i%100, i, i))
		}
		database.Exec(t, s.source, "INSERT INTO orders VALUES "+strings.Join(values, ","))
	}
	s.fixCounter(t, "orders")
}

// fixCounter has the counter of a table go on above rows that came with their ids.
func (s *migrationShop) fixCounter(t *testing.T, table string) {
	t.Helper()
	if s.speaks.fixes != "" {
		database.Exec(t, s.source, fmt.Sprintf(s.speaks.fixes, table))
	}
}

func shopOrders(t testing.TB, key string) migrate.Table {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		t.Fatal(err)
	}
	return migrate.Table{Table: sharding.Table{Name: "orders", Key: key, Rule: sharding.Low(2), Map: m}}
}

func (s *migrationShop) config(t testing.TB, key string) migrate.Config {
	t.Helper()
	return migrate.Config{Source: s.source, Shards: s.shards, Tables: []migrate.Table{shopOrders(t, key)}, ChunkRows: 200}
}

func (s *migrationShop) job(t testing.TB, key string, change ...func(*migrate.Config)) *migrate.Job {
	t.Helper()
	cfg := s.config(t, key)
	for _, c := range change {
		c(&cfg)
	}
	j, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (s *migrationShop) rows(t testing.TB, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT "+s.speaks.row+" FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// compare fails unless the shards have exactly the rows of the source's table,
// each where the rule says.
func (s *migrationShop) compare(t testing.TB, key, source, suffix string) {
	t.Helper()
	table := shopOrders(t, key)
	want := s.rows(t, s.source, source)
	var got []string
	for i, at := range table.Map.Targets() {
		got = append(got, s.rows(t, s.shards[at.DB], at.Table+suffix)...)
		var strangers int
		query := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s & 3 <> %d", at.Table+suffix, key, i)
		if err := s.shards[at.DB].QueryRowContext(context.Background(), query).Scan(&strangers); err != nil || strangers > 0 {
			t.Errorf("%s has %d rows of other shards (%v)", at, strangers, err)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) {
		return
	}
	t.Errorf("the source has %d rows, the shards %d", len(want), len(got))
	reportMissing(t, "only on the source", want, got)
	reportMissing(t, "only on a shard", got, want)
}

func reportMissing(t testing.TB, what string, from, in []string) {
	t.Helper()
	shown := 0
	for _, line := range from {
		if _, found := slices.BinarySearch(in, line); !found && shown < 5 {
			t.Errorf("%s: %s", what, line)
			shown++
		}
	}
}

// writers change the source in every way until stop is called, which returns
// how many transactions were committed.
func (s *migrationShop) writers(t testing.TB, n int) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	done := make([]int, n)
	for i := range n {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 11))
			for ctx.Err() == nil {
				if s.change(random) == nil {
					done[i]++
				}
				time.Sleep(time.Duration(s.rest.Load()))
			}
		})
	}
	return sync.OnceValue(func() (sum int) {
		cancel()
		wg.Wait()
		for _, n := range done {
			sum += n
		}
		return sum
	})
}

// cutover switches. On a machine that is busy the writers may be faster than their changes
// are followed; they slow down then, as the error asks.
func (s *migrationShop) cutover(t *testing.T, j *migrate.Job) (done migrate.Switch, err error) {
	t.Helper()
	for rest := 2 * max(writersRest(), time.Millisecond); ; rest *= 2 {
		done, err = j.Cutover(t.Context(), longPause)
		if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "changes arrive faster") || rest > time.Minute {
			return done, err
		}
		t.Logf("the writers rest for %s: %v", rest, err)
		s.rest.Store(int64(rest))
	}
}

// statement has arguments, so that the driver prepares it.
type statement struct {
	text string
	args []any
}

// says returns the statement with the placeholders of the server.
func (s *shopSpeech) says(text string) string {
	for n := 1; s.driver == "pgx" && strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", fmt.Sprint("$", n), 1)
	}
	return text
}

// change makes one random transaction; unique keys may refuse it.
func (s *migrationShop) change(random *rand.Rand) error {
	id, other, code := random.IntN(3000)+1, random.IntN(3000)+1, random.IntN(3000)
	choices := [][]statement{
		{{"INSERT INTO orders (user_id, code, weight) VALUES (?, ?, ?)", []any{id % 17, fmt.Sprint("n", code), float64(code) + 0.3}}},
		{{"UPDATE orders SET note = ?, total = ? WHERE id = ?", []any{fmt.Sprint("changed ", other), float64(code) + 0.5, id}}},
		{{"UPDATE orders SET user_id = ? WHERE id BETWEEN ? AND ?", []any{other % 17, id, id + 3}}},
		{{"DELETE FROM orders WHERE id = ?", []any{id}}},
		{{s.speaks.replaces[0], []any{id, other % 17, fmt.Sprint("c", other)}}},
		{{s.speaks.replaces[1], []any{id, fmt.Sprint("c", other)}}},
		{{s.speaks.replaces[2], []any{id, fmt.Sprint("c", other)}}},
		{{"UPDATE orders SET id = ? WHERE id = ?", []any{200_000 + random.IntN(3000), id}}},
		{
			{"UPDATE orders SET code = NULL WHERE id = ?", []any{id}},
			{"UPDATE orders SET code = ? WHERE id = ?", []any{fmt.Sprint("c", other), id}},
			{"UPDATE orders SET code = ? WHERE id = ?", []any{fmt.Sprint("c", id), other}},
		},
	}
	tx, err := s.source.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	for _, do := range choices[random.IntN(len(choices))] {
		if _, err := tx.ExecContext(context.Background(), s.speaks.says(do.text), do.args...); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	if random.IntN(10) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}
