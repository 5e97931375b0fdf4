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
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// sales are invoices with lines with tags: only invoices know their customer, by
// which all of them are sharded. Papers are sharded by their invoice, whose id
// may change.
type sales struct {
	*shop

	writer *sql.DB // with foreign keys
	ids    migrate.IDs
	// turns are given to the writer with each step of a runner: on a busy machine
	// it would be faster than any runner can follow.
	turns chan struct{}
}

const salesSQL = `
CREATE TABLE invoices (id INTEGER PRIMARY KEY AUTOINCREMENT, customer_id INT NOT NULL, code TEXT UNIQUE, twin_id INT REFERENCES invoices (id) ON DELETE SET NULL);
CREATE TABLE lines (id INTEGER PRIMARY KEY AUTOINCREMENT, invoice_id INT NOT NULL REFERENCES invoices ON DELETE CASCADE ON UPDATE CASCADE, what TEXT);
CREATE TABLE tags (id INTEGER PRIMARY KEY, line_id INT NOT NULL REFERENCES lines (id) ON DELETE CASCADE ON UPDATE CASCADE, invoice INT NOT NULL DEFAULT 0, what TEXT);
CREATE TABLE papers (id INTEGER PRIMARY KEY AUTOINCREMENT, invoice_id INT NULL);`

func newSales(tb testing.TB, ids migrate.IDs, rows int) *sales {
	tb.Helper()
	return fillSales(tb, openSales(tb, tb.TempDir(), ids), rows)
}

func openSales(tb testing.TB, dir string, ids migrate.IDs) *sales {
	tb.Helper()
	s := &sales{shop: openShop(tb, dir), ids: ids, turns: make(chan struct{}, 30)}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "source.db")+"?_pragma=busy_timeout(20000)&_pragma=foreign_keys(on)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	s.writer = db
	return s
}

func fillSales(tb testing.TB, s *sales, rows int) *sales {
	tb.Helper()
	exec(tb, s.source, salesSQL)
	for _, text := range []string{
		"INSERT INTO invoices SELECT i, i % 13, 'c' || i, CASE i % 3 WHEN 0 THEN i / 3 END FROM n",
		"INSERT INTO lines SELECT i, (i + 1) / 2, 'line ' || i FROM n",
		"INSERT INTO tags SELECT i, (i + 1) / 2, CASE i % 2 WHEN 0 THEN (i + 3) / 4 ELSE 0 END, 'tag ' || i FROM n",
		"INSERT INTO papers SELECT i, i FROM n",
	} {
		exec(tb, s.writer, fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) %s", rows, text))
	}
	return s
}

func (s *sales) config(tb testing.TB) migrate.Config {
	tb.Helper()
	table := func(name, key, via string, references ...migrate.Reference) migrate.Table {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%02d")
		if err != nil {
			tb.Fatal(err)
		}
		return migrate.Table{Table: sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: m}, Via: via, References: references}
	}
	return migrate.Config{
		Source: s.source, Shards: s.shards, ChunkRows: 30, IDs: s.ids,
		Tables: []migrate.Table{
			table("invoices", "customer_id", ""),
			table("lines", "customer_id", "invoice_id"),
			table("tags", "customer_id", "line_id", migrate.Reference{Column: "invoice", Table: "invoices"}),
			table("papers", "invoice_id", "", migrate.Reference{Column: "invoice_id", Table: "invoices"}),
		},
	}
}

func (s *sales) job(tb testing.TB, change ...func(*migrate.Config)) *migrate.Job {
	tb.Helper()
	cfg := s.config(tb)
	for _, c := range change {
		c(&cfg)
	}
	observe := cfg.Observe
	cfg.Observe = func(at migrate.Step) {
		s.giveTurns()
		if observe != nil {
			observe(at)
		}
	}
	j, err := migrate.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

func (s *sales) giveTurns() {
	for range 10 {
		select {
		case s.turns <- struct{}{}:
		default: // the writer has enough to do
		}
	}
}

// newID is what an id of a table, by its place in the job, is to have become.
func (s *sales) newID(tb testing.TB) func(tbl int, old int64) int64 {
	tb.Helper()
	drawn := map[[2]int64]int64{}
	if s.ids.String() == "map table" {
		rows, err := s.source.QueryContext(context.Background(), "SELECT tbl, old, new FROM shardid_ids_invoices")
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var tbl, old, id int64
			if err := rows.Scan(&tbl, &old, &id); err != nil {
				tb.Fatal(err)
			}
			drawn[[2]int64{tbl, old}] = id
		}
		if err := rows.Err(); err != nil {
			tb.Fatal(err)
		}
	}
	return func(tbl int, old int64) int64 {
		if s.ids.String() == "map table" && old != 0 {
			id, ok := drawn[[2]int64{int64(tbl), old}]
			if !ok {
				tb.Errorf("table %d: %d is not in the map table", tbl, old)
			}
			return id
		}
		id, err := s.ids.New(old)
		if err != nil {
			tb.Error(err)
		}
		return id
	}
}

// salesQueries read, of each table: the id, up to two references, the text, and
// the sharding key; suffix is of the physical names.
var salesTables = []struct {
	name, columns, key string
	refers             [2]int // the tables of the references
}{
	{"invoices", "id, COALESCE(twin_id, 0), 0, quote(code) || customer_id", "customer_id", [2]int{0, 0}},
	{"lines", "id, invoice_id, 0, quote(what)", "(SELECT customer_id FROM invoices%[1]s i WHERE i.id = invoice_id)", [2]int{0, 0}},
	{"tags", "id, line_id, invoice, quote(what)", "(SELECT customer_id FROM invoices%[1]s i WHERE i.id = (SELECT l.invoice_id FROM lines%[1]s l WHERE l.id = line_id))", [2]int{1, 0}},
	{"papers", "id, COALESCE(invoice_id, 0), 0, typeof(invoice_id)", "invoice_id", [2]int{0, 0}},
}

// lines are rows of a query as text, with what they name turned by f.
func salesRows(tb testing.TB, db *sql.DB, query string, f func(id, a, b, key int64) (int64, int64, int64, int64)) []string {
	tb.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var id, a, b, key int64
		var text string
		if err := rows.Scan(&id, &a, &b, &text, &key); err != nil {
			tb.Fatal(err)
		}
		id, a, b, key = f(id, a, b, key)
		all = append(all, fmt.Sprintf("%d %d %d %s on %d", id, a, b, text, key&3))
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// compare fails unless the shards have exactly the rows of the source, with new
// ids, where they belong.
func (s *sales) compare(tb testing.TB, sourceSuffix, shardSuffix string) {
	tb.Helper()
	newID := s.newID(tb)
	for ord, t := range salesTables {
		key := t.key
		if strings.Contains(key, "%") {
			key = fmt.Sprintf(key, sourceSuffix)
		}
		want := salesRows(tb, s.source, fmt.Sprintf("SELECT %s, %s FROM %s%s", t.columns, key, t.name, sourceSuffix), func(id, a, b, key int64) (int64, int64, int64, int64) {
			a, b = newID(t.refers[0], a), newID(t.refers[1], b)
			if t.name == "papers" {
				key = a
			}
			return newID(ord, id), a, b, key
		})
		var got []string
		for slot := range int64(4) {
			got = append(got, salesRows(tb, s.shards[[]string{"a", "b"}[slot%2]], fmt.Sprintf("SELECT %s, 0 FROM %s_%02d%s", t.columns, t.name, slot, shardSuffix),
				func(id, a, b, _ int64) (int64, int64, int64, int64) { return id, a, b, slot })...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if slices.Equal(want, got) {
			continue
		}
		tb.Errorf("%s: the source has %d rows, the shards %d", t.name, len(want), len(got))
		report(tb, "only on the source", want, got)
		report(tb, "only on a shard", got, want)
	}
}

func report(tb testing.TB, what string, from, in []string) {
	tb.Helper()
	shown := 0
	for _, line := range from {
		if _, found := slices.BinarySearch(in, line); !found && shown < 4 {
			tb.Errorf("%s: %s", what, line)
			shown++
		}
	}
}

// write changes the source until stop is called.
func (s *sales) write(tb testing.TB) (stop func() int64) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var done atomic.Int64
	wg.Go(func() {
		random := rand.New(rand.NewPCG(rand.Uint64(), 3))
		for {
			select {
			case <-s.turns:
			case <-ctx.Done():
				return
			}
			if _, err := s.writer.ExecContext(context.Background(), salesChange(random)); err == nil {
				done.Add(1)
			}
		}
	})
	return sync.OnceValue(func() int64 {
		cancel()
		wg.Wait()
		return done.Load()
	})
}

func salesChange(random *rand.Rand) string {
	id, other := random.IntN(200)+1, random.IntN(200)+1
	statements := []string{
		fmt.Sprintf("INSERT INTO invoices (customer_id, code, twin_id) VALUES (%d, 'n%d', (SELECT MAX(id) FROM invoices))", other%13, random.IntN(1000)),
		fmt.Sprintf("INSERT INTO lines (invoice_id, what) VALUES (%d, 'new')", id),
		fmt.Sprintf("INSERT INTO tags (line_id, invoice, what) VALUES (%d, %d, 'new')", id, other),
		fmt.Sprintf("INSERT INTO papers (invoice_id) VALUES (%d)", id),
		fmt.Sprintf("UPDATE invoices SET customer_id = %d WHERE id BETWEEN %d AND %d", other%13, id, id+2),
		fmt.Sprintf("UPDATE lines SET invoice_id = %d WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE tags SET line_id = %d, what = 'moved' WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE papers SET invoice_id = %d WHERE id = %d", other, id),
		fmt.Sprintf("UPDATE invoices SET id = %d WHERE id = %d", 1000+random.IntN(1000), id),
		fmt.Sprintf("DELETE FROM invoices WHERE id = %d", id),
		fmt.Sprintf("DELETE FROM lines WHERE id = %d", id),
		fmt.Sprintf("INSERT OR REPLACE INTO invoices (id, customer_id, code) VALUES (%d, %d, 'c%d')", id, other%13, other),
		fmt.Sprintf("UPDATE OR REPLACE invoices SET code = 'c%d' WHERE id = %d", other, id),
	}
	return statements[random.IntN(len(statements))]
}

// modes are the ways to number rows, each with what a test needs of its own.
func modes() map[string]func() migrate.IDs {
	return map[string]func() migrate.IDs{
		"kept":      migrate.KeepIDs,
		"affine":    func() migrate.IDs { return migrate.Affine(10, 3) },
		"keyed":     func() migrate.IDs { return migrate.Keyed([16]byte{7, 7}) },
		"map table": func() migrate.IDs { return migrate.MapTable(counter(5_000_000)) },
	}
}

// counter counts up from an id, in strides that show which ids are its own.
func counter(from int64) keygen.Generator[int64] {
	var n atomic.Int64
	return keygen.Func[int64](func(context.Context) (int64, error) { return from + 7*n.Add(1), nil })
}
