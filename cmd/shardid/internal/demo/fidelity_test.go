// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
)

// silent is a Progress that nobody watches.
type silent struct{}

func (silent) Begin(string, int64) {}
func (silent) Add(int64)           {}
func (silent) End(string)          {}

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	uri, err := database.SQLiteURI(path, "mode=rwc")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// odd holds values that a careless copy changes.
const odd = `
CREATE TABLE Odd (
  "Id" INTEGER PRIMARY KEY AUTOINCREMENT,
  anything,
  n NUMERIC(10, 2) DEFAULT (1 + 1),
  r DOUBLE PRECISION NOT NULL DEFAULT 0.5,
  t VARCHAR(20) DEFAULT 'it''s' COLLATE NOCASE CHECK (length(t) < 100 OR t COLLATE BINARY = ''),
  b BLOB,
  d DATETIME DEFAULT CURRENT_TIMESTAMP,
  day DATE,
  yes BOOLEAN DEFAULT "true",
  "select" TEXT COLLATE "RTRIM"
);
INSERT INTO Odd VALUES
  (-7, 1, '12.30', 1, 'a' || char(0) || 'b', x'', '2024-01-02 03:04:05', '2024-02-30', 1, 'x '),
  (1, 1.0, 'twelve', -0.0, '', x'00ff', '2024-01-02T03:04:05Z', 20240101, 0, NULL),
  (2, '1', 9007199254740993, 1e300, '请放在门口 🚲', 'text', 1704164645, '', 'yes', char(10)),
  (3, x'31', '', 9223372036854775807, NULL, zeroblob(3), NULL, 2460000.5, NULL, '''" -- /*'),
  (4, NULL, -9223372036854775807, 1e-320, CAST(x'ff41' AS TEXT), NULL, 'never', NULL, 2, '?'),
  (5000000000, 9e999, 0.1, 5, 'x', 5, '2024-01-02 03:04:05.123456789+08:00', '12:00', x'01', '');
CREATE TABLE OddStrict ("Id" INTEGER PRIMARY KEY AUTOINCREMENT, "OddId" INT, a ANY, t TEXT NOT NULL DEFAULT 'z') STRICT;
INSERT INTO OddStrict ("OddId", a) VALUES (1, '01'), (-7, 1.0), (1, x'00'), (99, NULL), (5000000000, 1);
`

func TestEveryValueIsCopiedWithItsTypeAndBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.db")
	execute(t, openDB(t, path), odd)
	result, err := Run(t.Context(), Config{File: path, Table: "odd", Child: "oddstrict.ODDID", Dir: t.TempDir(), Progress: silent{}})
	if err != nil || !result.Verdict().Clean() {
		t.Fatalf("%+v, %v", result, err)
	}
	for table, columns := range map[string]string{
		"Odd":       `anything, n, r, t, b, d, day, yes, "select"`,
		"OddStrict": "a, t",
	} {
		// The databases themselves say what they hold, so that neither the
		// driver nor the comparison under test has a part in this. Writers give
		// rows the values of others, so the keys are left out.
		want := literals(t, path, table, columns)
		var got []string
		for _, s := range result.Shards {
			if s.Table[:len(s.Table)-len("_00")] == table {
				got = append(got, literals(t, filepath.Join(result.Dir, s.DB+".db"), s.Table, columns)...)
			}
		}
		for _, row := range want {
			if !slices.Contains(got, row) {
				t.Errorf("%s: no shard has %s", table, row)
			}
		}
		for _, row := range got {
			if !slices.Contains(want, row) {
				t.Errorf("%s: the source never had %s", table, row)
			}
		}
	}
}

// literals returns each row as SQL literals with the types of the values.
func literals(t *testing.T, path, table, columns string) []string {
	t.Helper()
	var parts []string
	for column := range strings.SplitSeq(columns, ", ") {
		// quote() stops at a NUL byte, hex() does not.
		parts = append(parts, "typeof("+column+") || ' ' || quote("+column+") || ' ' || coalesce(hex("+column+"), '')")
	}
	db := openDB(t, path)
	rows, err := db.QueryContext(t.Context(), "SELECT "+strings.Join(parts, " || '; ' || ")+" FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	return all
}

func TestShardTablesAreDeclaredLikeTheSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.db")
	execute(t, openDB(t, path), odd)
	result, err := Run(t.Context(), Config{File: path, Table: "Odd", Child: "OddStrict.OddId", Dir: t.TempDir(), Progress: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	shard := openDB(t, filepath.Join(result.Dir, "shard0.db"))
	for name, want := range map[string]string{
		"Odd_00": `CREATE TABLE "Odd_00" ("Id" INTEGER PRIMARY KEY, "anything", "n" NUMERIC(10, 2) DEFAULT (1 + 1), "r" DOUBLE PRECISION NOT NULL DEFAULT (0.5),` +
			` "t" VARCHAR(20) DEFAULT ('it''s') COLLATE "NOCASE", "b" BLOB, "d" DATETIME DEFAULT (CURRENT_TIMESTAMP), "day" DATE, "yes" BOOLEAN DEFAULT "true", "select" TEXT COLLATE "RTRIM")`,
		"OddStrict_00": `CREATE TABLE "OddStrict_00" ("Id" INTEGER PRIMARY KEY, "OddId" INT, "a" ANY, "t" TEXT NOT NULL DEFAULT ('z')) STRICT`,
	} {
		var got string
		if err := shard.QueryRowContext(t.Context(), "SELECT sql FROM sqlite_schema WHERE name = ?", name).Scan(&got); err != nil || got != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// A child may share its parent's key, one row for each.
func TestAChildMayHaveItsParentsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.db")
	execute(t, openDB(t, path), `
		CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
		CREATE TABLE profiles (user_id INTEGER PRIMARY KEY, born DATE);
		INSERT INTO users (name) VALUES ('Ada'), ('Ben');
		INSERT INTO profiles VALUES (1, '1980-02-29'), (2, NULL)`)
	result, err := Run(t.Context(), Config{File: path, Table: "users", Child: "profiles.user_id", Dir: t.TempDir(), Progress: silent{}})
	if err != nil || !result.Verdict().Clean() || result.InsertedGORM != 200 || result.InsertedSQLX != 200 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestReadBackNoticesRowsThatAreGoneOrDifferent(t *testing.T) {
	ctx := t.Context()
	r := &run{Config: Config{Rows: 50, Dir: t.TempDir(), Progress: silent{}}}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	for _, phase := range []func(context.Context) error{r.makeSource, r.inspect, r.install, r.migrate, r.verify} {
		if err := phase(ctx); err != nil {
			t.Fatal(err)
		}
	}
	stays := r.traffic.writers[0].mine
	// Each row is read through both applications, and counts twice.
	spoil := func(i int, table, statement string) {
		key := r.source.tables[0].keyOf(stays[i].parent.stored)
		target, err := r.shards.router.Target(table, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.shards.dbs[target.DB].ExecContext(ctx, strings.ReplaceAll(statement, "TABLE", target.Table), key); err != nil {
			t.Fatal(err)
		}
	}
	spoil(0, ordersTable, "DELETE FROM TABLE WHERE id = ?")                                   // with 2 items: 3 rows are not found
	spoil(1, ordersTable, "UPDATE TABLE SET status = 'else' WHERE id = ?")                    // 1 row
	spoil(2, itemsTable, "DELETE FROM TABLE WHERE order_id = ?")                              // 2 rows
	spoil(3, itemsTable, "UPDATE TABLE SET quantity = 99 WHERE order_id = ?")                 // 2 rows
	spoil(4, ordersTable, "UPDATE TABLE SET created_at = '2001-01-01 00:00:00' WHERE id = ?") // 1 row
	if err := r.readBack(ctx); err != nil || r.result.Lost != 2*9 {
		t.Errorf("%d rows are wrong, %v", r.result.Lost, err)
	}
}

func TestMakeOrdersMakesAsManyAsAskedAndTheSameEachTime(t *testing.T) {
	ctx := t.Context()
	var sums []uint64
	for range 2 {
		f := folder{path: t.TempDir()}
		db, err := f.create(ctx, sourceFile)
		if err != nil {
			t.Fatal(err)
		}
		if err := makeOrders(ctx, db, 199, func(int64) {}); err != nil {
			t.Fatal(err)
		}
		var n, highest, next, orphans int64
		if err := db.QueryRowContext(ctx, `SELECT COUNT(*), MAX(id), (SELECT seq FROM sqlite_sequence WHERE name = 'orders') + 1,
			(SELECT COUNT(*) FROM order_items WHERE order_id NOT IN (SELECT id FROM orders)) FROM orders`).Scan(&n, &highest, &next, &orphans); err != nil {
			t.Fatal(err)
		}
		if n != 199 || highest != 201 || next != highest+1+deletedAtEnd || orphans != 0 {
			t.Errorf("%d orders up to %d, next %d, %d orphans", n, highest, next, orphans)
		}
		var sum uint64
		for _, q := range []string{"SELECT +id, +user_id, +status, +total_cents, +note, +created_at FROM orders", "SELECT +id, +order_id, +sku, +quantity, +price_cents, 0 FROM order_items"} {
			err := eachRow(ctx, db, 6, func(row []any) error {
				sum += checksum(encode(nil, row))
				return nil
			}, q)
			if err != nil {
				t.Fatal(err)
			}
		}
		sums = append(sums, sum)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("two runs differ")
	}
}

func TestSameRowDistinguishesTypes(t *testing.T) {
	values := []any{nil, int64(1), int64(0), 1.0, "1", "", []byte("1"), []byte{}, "s\x01"}
	for i, a := range values {
		for j, b := range values {
			if sameRow([]any{a}, []any{b}) != (i == j) {
				t.Errorf("%T(%v) and %T(%v)", a, a, b, b)
			}
		}
	}
	if sameRow([]any{"a", "b"}, []any{"ab", ""}) {
		t.Error("where one value ends and the next begins matters")
	}
}
