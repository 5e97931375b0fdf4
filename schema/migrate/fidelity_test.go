// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// odd are values that a careless copy changes.
var odd = []string{
	"NULL", "''", "'text'", "'ünï 𝄞'", "'quote '' and back\\slash'", "'new' || char(10) || 'line'", "'zero' || char(0) || 'byte'", "char(0)",
	"x''", "x'00ff2c27'", "'123'", "'1e3'", "'0x10'", "123", "-1", "0", "9223372036854775807", "-9223372036854775808",
	"0.1", "1.0", "-0.0", "1e308", "5e-324", "16777215.0", "0.30000000000000004", "9e999", "-9e999", "9007199254740993.0", "123456789012345678",
	"'2024-02-30'", "'0000-00-00'", "'null'", "'NULL'", "CAST(x'c328' AS TEXT)", "zeroblob(5000)", "'[1, {\"a\": null}]'",
}

// newOddShop has each value in a column of each affinity, in rows with ids from
// both ends of what an id can be.
func newOddShop(t *testing.T) *shop {
	t.Helper()
	s := openShop(t, t.TempDir())
	exec(t, s.source, `CREATE TABLE odd_one (id INTEGER PRIMARY KEY, i INTEGER, t TEXT, r REAL, n NUMERIC, b BLOB, "select" VARCHAR(3) COLLATE NOCASE, twice AS (i || i))`)
	ids := []string{"-9223372036854775808", "-1", "0", "9223372036854775806", "9223372036854775807"}
	for i, v := range odd {
		id := strconv.Itoa(i + 10)
		if i < len(ids) {
			id = ids[i]
		}
		exec(t, s.source, fmt.Sprintf(`INSERT INTO odd_one (id, i, t, r, n, b, "select") VALUES (%s, %[2]s, %[2]s, %[2]s, %[2]s, %[2]s, %[2]s)`, id, v))
	}
	return s
}

func (s *shop) oddJob(t *testing.T) *migrate.Job {
	t.Helper()
	spread, err := sharding.Spread([]string{"a", "b"}, 4, "odd_%d")
	if err != nil {
		t.Fatal(err)
	}
	job, err := migrate.New(migrate.Config{
		Source: s.source, Shards: s.shards, ChunkRows: 7,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "odd_one", Key: "id", Rule: sharding.Mod(4), Map: spread}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// oddRows are the rows as SQLite itself writes them down, byte for byte.
func oddRows(t *testing.T, s *shop) (source, shards map[string]bool) {
	t.Helper()
	parts := []string{"id"}
	for _, c := range []string{"i", "t", "r", "n", "b", `"select"`, "twice"} {
		parts = append(parts, "typeof("+c+") || hex(CASE typeof("+c+") WHEN 'real' THEN quote("+c+") ELSE "+c+" END)")
	}
	query := "SELECT " + strings.Join(parts, " || '|' || ")
	source, shards = map[string]bool{}, map[string]bool{}
	read := func(into map[string]bool, from string, db int) {
		pool := s.source
		if db >= 0 {
			pool = s.shards[[]string{"a", "b"}[db%2]]
		}
		rows, err := pool.QueryContext(t.Context(), query+" FROM "+from)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			into[text] = true
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	read(source, "odd_one", -1)
	for i := range 4 {
		read(shards, fmt.Sprintf("odd_%d", i), i)
	}
	return source, shards
}

func sameRows(t *testing.T, s *shop) {
	t.Helper()
	source, shards := oddRows(t, s)
	for row := range source {
		if !shards[row] {
			t.Errorf("no shard has %s", row)
		}
	}
	if len(source) != len(odd) || len(shards) != len(source) {
		t.Errorf("%d values, %d rows on the source, %d on the shards", len(odd), len(source), len(shards))
	}
}

func TestEveryValueIsCopiedBitByBit(t *testing.T) {
	s := newOddShop(t)
	job := s.oddJob(t)
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameRows(t, s)
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
}

func TestEveryValueIsAppliedBitByBit(t *testing.T) {
	s := newOddShop(t)
	job := s.oddJob(t)
	exec(t, s.source, `CREATE TABLE kept AS SELECT id, i, t, r, n, b, "select" FROM odd_one`)
	exec(t, s.source, "UPDATE odd_one SET i = 1, t = 1, r = 1, n = 1, b = 1")
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, s.source, "DELETE FROM odd_one")
	exec(t, s.source, `INSERT INTO odd_one (id, i, t, r, n, b, "select") SELECT id, i, t, r, n, b, "select" FROM kept`)
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameRows(t, s)
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
}
