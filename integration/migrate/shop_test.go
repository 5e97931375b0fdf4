package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
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
	}
	database.Exec(t, s.source, `CREATE TABLE orders (
		id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
		user_id INT NOT NULL,
		code VARCHAR(20) NULL,
		note VARCHAR(100) NOT NULL DEFAULT '',
		total DECIMAL(12,2) NULL,
		weight FLOAT NULL,
		made DATETIME(6) NULL,
		UNIQUE KEY code (code), KEY by_user (user_id))`)
	return s
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

const shopRow = "CONCAT_WS('|', id, user_id, IFNULL(code, 'NULL'), note, IFNULL(total, 'NULL'), IFNULL(weight+0e0, 'NULL'), IFNULL(made, 'NULL'))"

func shopRows(t testing.TB, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT "+shopRow+" FROM "+table)
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
	want := shopRows(t, s.source, source)
	var got []string
	for i, at := range table.Map.Targets() {
		got = append(got, shopRows(t, s.shards[at.DB], at.Table+suffix)...)
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
	for rest := time.Millisecond; ; rest *= 2 {
		done, err = j.Cutover(t.Context(), longPause)
		if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "writers are faster") || rest > time.Minute {
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

// change makes one random transaction; unique keys may refuse it.
func (s *migrationShop) change(random *rand.Rand) error {
	id, other, code := random.IntN(3000)+1, random.IntN(3000)+1, random.IntN(3000)
	choices := [][]statement{
		{{"INSERT INTO orders (user_id, code, weight) VALUES (?, ?, ?)", []any{id % 17, fmt.Sprint("n", code), float64(code) + 0.3}}},
		{{"UPDATE orders SET note = ?, total = ? WHERE id = ?", []any{fmt.Sprint("changed ", other), float64(code) + 0.5, id}}},
		{{"UPDATE orders SET user_id = ? WHERE id BETWEEN ? AND ?", []any{other % 17, id, id + 3}}},
		{{"DELETE FROM orders WHERE id = ?", []any{id}}},
		{{"REPLACE INTO orders (id, user_id, code) VALUES (?, ?, ?)", []any{id, other % 17, fmt.Sprint("c", other)}}},
		{{"INSERT INTO orders (id, user_id, code) VALUES (?, 3, ?) ON DUPLICATE KEY UPDATE note = 'dup'", []any{id, fmt.Sprint("c", other)}}},
		{{"INSERT IGNORE INTO orders (id, user_id, code) VALUES (?, 4, ?)", []any{id, fmt.Sprint("c", other)}}},
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
		if _, err := tx.ExecContext(context.Background(), do.text, do.args...); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	if random.IntN(10) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}
