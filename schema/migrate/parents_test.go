// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// kinSQL makes parents with children under every kind of foreign key.
const kinSQL = `
CREATE TABLE owners (id INTEGER PRIMARY KEY);
CREATE TABLE parents (id INTEGER PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, owner INT REFERENCES owners, up INT REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE, UNIQUE (a, b));
CREATE TABLE cascading (id INTEGER PRIMARY KEY, parent INT REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE nulling (id INTEGER PRIMARY KEY, parent INT REFERENCES parents (id) ON DELETE SET NULL ON UPDATE SET NULL);
CREATE TABLE defaulting (id INTEGER PRIMARY KEY, parent INT DEFAULT 40 REFERENCES parents ON DELETE SET DEFAULT ON UPDATE SET DEFAULT);
CREATE TABLE restricting (id INTEGER PRIMARY KEY, parent INT REFERENCES parents ON DELETE RESTRICT ON UPDATE RESTRICT);
CREATE TABLE passive (id INTEGER PRIMARY KEY, parent INT REFERENCES parents ON DELETE NO ACTION);
CREATE TABLE pairs (id INTEGER PRIMARY KEY, a INT, b INT, FOREIGN KEY (a, b) REFERENCES parents (a, b) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE grandchildren (id INTEGER PRIMARY KEY, child INT REFERENCES cascading ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO owners VALUES (1), (2);
CREATE TABLE numbers (n INTEGER PRIMARY KEY);
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40) INSERT INTO numbers SELECT n FROM r;
INSERT INTO parents SELECT n, n % 5, n, 1 + n % 2, CASE WHEN n > 36 THEN 36 END FROM numbers;
INSERT INTO cascading SELECT n, n FROM numbers UNION SELECT 100 + n, n FROM numbers;
INSERT INTO grandchildren SELECT id, id FROM cascading;
INSERT INTO nulling SELECT n, n FROM numbers;
INSERT INTO defaulting SELECT n, n FROM numbers;
INSERT INTO pairs SELECT n, n % 5, n FROM numbers;
INSERT INTO restricting SELECT n, n FROM numbers WHERE n <= 4;
INSERT INTO passive SELECT n, n FROM numbers WHERE n <= 4`

var kinTables = []string{"parents", "cascading", "nulling", "defaulting", "restricting", "passive", "pairs", "grandchildren"}

// openStrict opens a file as an application does that wants foreign keys held.
func openStrict(tb testing.TB, dir, name string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=foreign_keys(1)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// kin is a job of all tables but the owners, who stay.
type kin struct {
	*migrate.Job

	source, shard *sql.DB
}

func newKin(t *testing.T, parentsFirst bool) kin {
	t.Helper()
	dir := t.TempDir()
	k := kin{source: openStrict(t, dir, "source"), shard: openStrict(t, dir, "shard")}
	exec(t, k.source, kinSQL)
	cfg := migrate.Config{Name: "kin", Source: k.source, Shards: sharding.DBs{"shard": k.shard}, ChunkRows: 7}
	for _, name := range kinTables {
		m, err := sharding.Spread([]string{"shard"}, 2, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Tables = append(cfg.Tables, migrate.Table{Table: sharding.Table{Name: name, Key: "id", Rule: sharding.Low(1), Map: m}})
	}
	if !parentsFirst {
		slices.Reverse(cfg.Tables)
	}
	var err error
	if k.Job, err = migrate.New(cfg); err != nil {
		t.Fatal(err)
	}
	return k
}

// follow fails unless a run makes the source's tables and the shards the same.
func (k kin) follow(t *testing.T, when, suffix, sealed string) {
	t.Helper()
	if err := k.Run(t.Context()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for _, name := range kinTables {
		want := sorted(wholeRows(t, k.source, name+suffix))
		got := sorted(append(wholeRows(t, k.shard, name+"_0"+sealed), wholeRows(t, k.shard, name+"_1"+sealed)...))
		if !slices.Equal(want, got) {
			t.Errorf("%s: %s: the source has %v, the shards %v", when, name, want, got)
		}
	}
}

// onShards changes rows of all tables on the shards, where no foreign key does
// anything.
func (k kin) onShards(t *testing.T, from int) {
	t.Helper()
	for _, name := range kinTables {
		for _, shard := range []string{"_0", "_1"} {
			exec(t, k.shard, fmt.Sprintf("DELETE FROM %s WHERE id IN (%d, %d); UPDATE %[1]s SET id = id + 8000 WHERE id IN (%[4]d, %[5]d)", name+shard, from, from+1, from+2, from+3))
		}
	}
	exec(t, k.shard, fmt.Sprintf("UPDATE parents_0 SET a = a + 20, owner = 2 WHERE id > %d; INSERT INTO parents_1 VALUES (%d, 77, %[2]d, 1, NULL)", from, 10_001+2*from))
}

// onSource changes parents of the source, whose foreign keys do the rest.
func (k kin) onSource(t *testing.T, from int) {
	t.Helper()
	exec(t, k.source, fmt.Sprintf("DELETE FROM parents WHERE id = %d; UPDATE parents SET id = id + 4001 WHERE id = %d; UPDATE parents SET a = a + 10 WHERE id = %d; UPDATE cascading SET id = id + 3001 WHERE id = %d; DELETE FROM cascading WHERE id = %d",
		from, from+1, from+2, from+3, from+4))
}

func wholeRows(t *testing.T, db *sql.DB, table string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	row, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(row))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestChangesOfParentsAreCarriedBackUnderEveryForeignKey(t *testing.T) {
	t.Parallel()
	for order, parentsFirst := range map[string]bool{"parents first": true, "children first": false} {
		k := newKin(t, parentsFirst)
		cutover := func() {
			t.Helper()
			if _, err := k.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
		}
		k.follow(t, order, "", "")
		k.onSource(t, 9)
		k.follow(t, order+", before the switch", "", "")
		cutover()
		k.onShards(t, 1)
		k.follow(t, order+", after the switch", "_old", "")
		if _, err := k.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		k.onSource(t, 17)
		k.follow(t, order+", after the way back", "", "_sealed")
		cutover()
		k.onShards(t, 33)
		k.follow(t, order+", after the second switch", "_old", "")
	}
}

func TestParentsThatStayCanBeDeletedOnceTheJobIsFinalized(t *testing.T) {
	t.Parallel()
	k := newKin(t, true)
	k.follow(t, "before the switch", "", "")
	if _, err := k.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if _, err := k.source.ExecContext(t.Context(), "DELETE FROM owners"); err == nil {
		t.Error("a parent of retired rows was deleted")
	}
	exec(t, k.source, "CREATE TABLE late (id INTEGER PRIMARY KEY, pair INT REFERENCES pairs_old)")
	if err := k.Finalize(t.Context()); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "late refers to pairs_old by (pair)") {
		t.Errorf("with a key to the archive: %v", err)
	}
	exec(t, k.source, "DROP TABLE late")
	for range 2 { // again does no harm
		if err := k.Finalize(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, k.source, "DELETE FROM owners; VACUUM")
	if n := count(t, k.source, "SELECT COUNT(*) FROM parents_old WHERE owner = 1"); n != 20 {
		t.Errorf("the archive has %d rows", n)
	}
	var state string
	if err := k.source.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&state); err != nil || state != "ok" {
		t.Errorf("%s, %v", state, err)
	}
	if _, err := k.source.ExecContext(t.Context(), "DELETE FROM parents_old"); err == nil {
		t.Error("the archive is open")
	}
}
