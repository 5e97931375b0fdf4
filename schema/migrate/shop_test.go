// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// shop is a source with a table of orders, and two databases for its shards.
type shop struct {
	source *sql.DB
	shards sharding.DBs
	dir    string
}

const shopSQL = `CREATE TABLE orders (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	code TEXT UNIQUE,
	note TEXT NOT NULL DEFAULT '',
	total REAL
)`

func newShop(tb testing.TB, rows int) *shop {
	tb.Helper()
	s := openShop(tb, tb.TempDir())
	exec(tb, s.source, shopSQL)
	exec(tb, s.source, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO orders (id, user_id, code, note, total) SELECT i, i %% 17, 'c' || i, 'note ' || i, i * 1.1 FROM n WHERE %[1]d > 0`, rows))
	return s
}

func openShop(tb testing.TB, dir string) *shop {
	tb.Helper()
	return &shop{openFile(tb, dir, "source"), sharding.DBs{"a": openFile(tb, dir, "a"), "b": openFile(tb, dir, "b")}, dir}
}

func openFile(tb testing.TB, dir, name string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(tb testing.TB, db *sql.DB, query string) {
	tb.Helper()
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

func count(tb testing.TB, db *sql.DB, query string, args ...any) (n int64) {
	tb.Helper()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// orders is the table as it is to be sharded, by id unless key says otherwise.
func orders(tb testing.TB, key string) migrate.Table {
	tb.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		tb.Fatal(err)
	}
	return migrate.Table{Table: sharding.Table{Name: "orders", Key: key, Rule: sharding.Low(2), Map: m}}
}

func (s *shop) config(tb testing.TB, key string) migrate.Config {
	return migrate.Config{Source: s.source, Shards: s.shards, Tables: []migrate.Table{orders(tb, key)}, ChunkRows: 50}
}

func (s *shop) job(tb testing.TB, key string, change ...func(*migrate.Config)) *migrate.Job {
	tb.Helper()
	cfg := s.config(tb, key)
	for _, c := range change {
		c(&cfg)
	}
	j, err := migrate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

const allColumns = `quote(id) || '|' || quote(user_id) || '|' || quote(code) || '|' || quote(note) || '|' || quote(total)`

func list(tb testing.TB, db *sql.DB, table string) []string {
	tb.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT "+allColumns+" FROM "+table)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			tb.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// onShards lists every row of the shards, and checks that it lies where the rule
// says.
func (s *shop) onShards(tb testing.TB, t migrate.Table, suffix string) []string {
	tb.Helper()
	var all []string
	for _, at := range t.Map.Targets() {
		name := at.Table + suffix
		all = append(all, list(tb, s.shards[at.DB], name)...)
		for _, key := range numbers(tb, s.shards[at.DB], "SELECT "+t.Key+" FROM "+name) {
			if want, err := t.Target(key); err != nil || want != at {
				tb.Errorf("a row of %s %d lies on %s, not %s (%v)", t.Key, key, at, want, err)
			}
		}
	}
	slices.Sort(all)
	return all
}

func numbers(tb testing.TB, db *sql.DB, query string) (all []int64) {
	tb.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			tb.Fatal(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// compare fails unless the shards have exactly the rows of the source's table.
func (s *shop) compare(tb testing.TB, t migrate.Table, source string) {
	tb.Helper()
	s.compareSealed(tb, t, source, "")
}

func (s *shop) compareSealed(tb testing.TB, t migrate.Table, source, suffix string) {
	tb.Helper()
	want, got := list(tb, s.source, source), s.onShards(tb, t, suffix)
	slices.Sort(want)
	if slices.Equal(want, got) {
		return
	}
	tb.Errorf("the source has %d rows, the shards %d", len(want), len(got))
	for i, line := range want {
		if _, found := slices.BinarySearch(got, line); !found {
			tb.Errorf("only on the source: %s", line)
			if i > 5 {
				break
			}
		}
	}
	for i, line := range got {
		if _, found := slices.BinarySearch(want, line); !found {
			tb.Errorf("only on a shard: %s", line)
			if i > 5 {
				break
			}
		}
	}
}

// writers change the source until stop is called, which returns how many
// statements succeeded.
func (s *shop) writers(tb testing.TB, n int) (stop func() int64) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	done := make([]int64, n)
	for i := range n {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				if s.change(random) == nil {
					done[i]++
				}
			}
		})
	}
	return sync.OnceValue(func() int64 {
		cancel()
		wg.Wait()
		sum := int64(0)
		for _, n := range done {
			sum += n
		}
		return sum
	})
}

// change makes one random change; unique keys may refuse it.
func (s *shop) change(random *rand.Rand) error {
	id, other := random.IntN(600)+1, random.IntN(600)+1
	statements := []string{
		fmt.Sprintf("INSERT INTO orders (user_id, code) VALUES (%d, 'n%d')", id%17, random.IntN(1000)),
		fmt.Sprintf("UPDATE orders SET note = 'changed %d' WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE orders SET user_id = %d WHERE id = %d", other%17, id),
		fmt.Sprintf("DELETE FROM orders WHERE id = %d", id),
		fmt.Sprintf("INSERT OR REPLACE INTO orders (id, user_id, code) VALUES (%d, %d, 'c%d')", id, other%17, other),
		fmt.Sprintf("UPDATE OR REPLACE orders SET code = 'c%d' WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE orders SET id = %d WHERE id = %d", 100_000+random.IntN(1000), id),
		fmt.Sprintf("BEGIN IMMEDIATE; UPDATE orders SET code = 'swap' WHERE id = %d; UPDATE orders SET code = 'c%d' WHERE id = %d; UPDATE orders SET code = 'c%d' WHERE id = %[1]d; COMMIT", id, id, other, other),
	}
	text := statements[random.IntN(len(statements))]
	if !strings.HasPrefix(text, "BEGIN") {
		_, err := s.source.ExecContext(context.Background(), text)
		return err
	}
	return s.swap(text)
}

func (s *shop) swap(text string) error {
	conn, err := s.source.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(context.Background(), text); err != nil {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK") // fails when there is none
		return err
	}
	return nil
}
