// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema"
)

func inspect(t *testing.T, db *sql.DB) map[string]schema.Table {
	t.Helper()
	report, err := schema.Inspect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]schema.Table{}
	for _, table := range report.Tables {
		tables[table.Name] = table
	}
	return tables
}

func codes(table schema.Table) string {
	var all []string
	for _, f := range table.Findings {
		all = append(all, fmt.Sprintf("%s:%s", f.Severity, f.Code))
	}
	return strings.Join(all, " ")
}

func TestInspectKnowsWhichSQLiteKeysNumberThemselves(t *testing.T) {
	for create, want := range map[string]string{
		"(a INTEGER PRIMARY KEY AUTOINCREMENT, b)":                    "",
		"(a integer\nprimary key autoincrement, b)":                   "",
		"(a INTEGER NOT NULL, b, PRIMARY KEY (a AUTOINCREMENT))":      "",
		"(b, a INTEGER, CONSTRAINT p PRIMARY KEY (a))":                "info:reuses_ids",
		"(a INTEGER PRIMARY KEY, b DEFAULT 'it''s AUTOINCREMENT')":    "info:reuses_ids",
		"(a INTEGER PRIMARY KEY, /* AUTOINCREMENT */ b -- ditto\n)":   "info:reuses_ids",
		`(a INTEGER PRIMARY KEY, "x AUTOINCREMENT", [AUTOINCREMENT])`: "info:reuses_ids",
		"(a INTEGER PRIMARY KEY, b TEXT) STRICT":                      "info:reuses_ids",
		"(a INT PRIMARY KEY, b)":                                      "info:no_auto_increment",
		"(a BIGINT PRIMARY KEY, b)":                                   "info:no_auto_increment",
		"(a INTEGER PRIMARY KEY DESC, b)":                             "info:no_auto_increment",
		"(a INTEGER PRIMARY KEY, b) WITHOUT ROWID":                    "info:no_auto_increment",
		"(a VARCHAR(9) PRIMARY KEY, b)":                               "error:non_integer_key",
		"(a PRIMARY KEY, b)":                                          "error:non_integer_key",
		"(a INTEGER, b)":                                              "error:no_primary_key",
		"(a INTEGER, b INTEGER, PRIMARY KEY (b, a))":                  "error:composite_key",
		"(a INTEGER, b INTEGER, claim INTEGER, PRIMARY KEY (a, b))":   "info:lookup_table",
		"(a VARCHAR(9) PRIMARY KEY, b INTEGER, claim BIGINT)":         "info:lookup_table",
		"(a VARCHAR(9) PRIMARY KEY, b INTEGER, claim TEXT)":           "error:non_integer_key",
		"(a INT, b INTEGER, claim INTEGER, PRIMARY KEY (b, a))":       "error:composite_key",
		"(a INT PRIMARY KEY, b INTEGER, claim INTEGER)":               "info:no_auto_increment",
	} {
		db := newDB(t)
		exec(t, db, `CREATE TABLE "t ""x" `+create)
		table := inspect(t, db)[`t "x`]
		if got := codes(table); got != want {
			t.Errorf("%s: %q, want %q", create, got, want)
		}
		if table.Key != nil && table.Key.AutoIncrement {
			expectNextIsGiven(t, db, *table.Key)
		}
	}
}

// expectNextIsGiven deletes the last row and asks the database itself.
func expectNextIsGiven(t *testing.T, db *sql.DB, before schema.Key) {
	t.Helper()
	if before.Next != 1 || before.Highest != nil {
		t.Errorf("of an empty table: %+v", before)
	}
	exec(t, db, `INSERT INTO "t ""x" (a) VALUES (5), (9)`)
	exec(t, db, `DELETE FROM "t ""x" WHERE a = 9`)
	key := inspect(t, db)[`t "x`].Key
	given := scan[uint64](t, db, `INSERT INTO "t ""x" DEFAULT VALUES RETURNING rowid`)
	if given != key.Next || *key.Highest != 5 {
		t.Errorf("the table gave %d after %+v", given, key)
	}
}

func TestInspectWarnsOfIDsOutOfTheOrdinary(t *testing.T) {
	db := newDB(t)
	for _, statement := range []string{
		"CREATE TABLE negative (a INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO negative VALUES (-5)",
		"CREATE TABLE zero (a INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO zero VALUES (0), (1)",
		"CREATE TABLE half (a INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO half VALUES (4611686018427387905)",
		"CREATE TABLE full (a INTEGER PRIMARY KEY AUTOINCREMENT)", "INSERT INTO full VALUES (9223372036854775807)",
		"CREATE TABLE mixed (a INT PRIMARY KEY)", "INSERT INTO mixed VALUES (1), ('x')",
		"CREATE TABLE fraction (a INT PRIMARY KEY)", "INSERT INTO fraction VALUES (0.5), (1)",
	} {
		exec(t, db, statement)
	}
	tables := inspect(t, db)
	for name, want := range map[string]string{
		"negative": "warning:non_positive_id",
		"zero":     "warning:non_positive_id",
		"half":     "warning:range_used",
		"full":     "error:range_used",
		"mixed":    "error:non_integer_key",
		"fraction": "error:non_integer_key",
	} {
		if got := codes(tables[name]); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if full := tables["full"].Key; full.Next != math.MaxInt64+1 || full.PercentUsed != 100 {
		t.Errorf("of a used up key: %+v", full)
	}
	if next := tables["negative"].Key.Next; next != 1 {
		t.Errorf("next above a negative id is %d", next)
	}
	if tables["mixed"].Key != nil {
		t.Error("a key with text in it is no integer key")
	}
}

func TestInspectFindsUniqueKeysThatNoShardCanCheckForTheOthers(t *testing.T) {
	for statements, want := range map[string]string{
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT UNIQUE)":                                                   "the unique key on (email) cannot be checked across shards",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a, b, UNIQUE (b, a))":                                                 "the unique key on (b, a) cannot be checked across shards",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, email); CREATE UNIQUE INDEX t_email ON t (email)":                     "the unique key t_email on (email) cannot be checked across shards",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, email); CREATE UNIQUE INDEX x ON t (lower(email)) WHERE id > 1":       "the unique key x on (an expression) cannot be checked across shards",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, email); CREATE INDEX t_email ON t (email)":                            "",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, email); CREATE UNIQUE INDEX t_email ON t (email, id)":                 "",
		"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a, b UNIQUE); CREATE UNIQUE INDEX z ON t (a); CREATE INDEX y ON t(a)": "the unique key z on (a) cannot be checked across shards; the unique key on (b) cannot be checked across shards",
	} {
		db := newDB(t)
		exec(t, db, statements)
		var got []string
		for _, f := range inspect(t, db)["t"].Findings {
			got = append(got, f.Message)
			if f.Code != schema.UniqueKey || f.Severity != schema.Warning {
				t.Errorf("%s: %+v", statements, f)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %q", statements, got, want)
		}
	}
}

func TestInspectCountsWhatIsLeftInWords(t *testing.T) {
	for highest, want := range map[string]string{
		"9223372036854775807": "no id is left",
		"9223372036854775806": "1 id is left",
		"9223372036854775805": "2 ids are left",
	} {
		db := newDB(t)
		exec(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t VALUES ("+highest+")")
		if f := inspect(t, db)["t"].Findings; len(f) != 1 || !strings.HasSuffix(f[0].Message, "; "+want) {
			t.Errorf("above %s: %+v", highest, f)
		}
	}
}

func TestInspectLeavesOutTablesThatAreNotTheUsers(t *testing.T) {
	db := newDB(t)
	exec(t, db, "CREATE VIRTUAL TABLE words USING fts5(word); CREATE VIEW v AS SELECT 1; CREATE TABLE sqlitedata (a INTEGER PRIMARY KEY)")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if tables := inspect(t, db); len(tables) != 1 || tables["sqlitedata"].Name == "" {
		t.Errorf("found %v", tables)
	}
}

func TestNextIDIsAboveWhatTheTableHasGiven(t *testing.T) {
	db := newDB(t)
	exec(t, db, `CREATE TABLE "Order" (id INTEGER PRIMARY KEY AUTOINCREMENT, n INT, s TEXT)`)
	expectNext := func(column string, want int64) {
		t.Helper()
		if got, err := schema.NextID(t.Context(), db, "order", column); err != nil || got != want {
			t.Errorf("NextID of %s = %d, %v; want %d", column, got, err, want)
		}
	}
	expectNext("id", 1)
	exec(t, db, `INSERT INTO "Order" (n) VALUES (7), (-7), (NULL)`)
	exec(t, db, `DELETE FROM "Order" WHERE id > 1`)
	expectNext("ID", 4)
	expectNext("n", 8)
	exec(t, db, `UPDATE "Order" SET n = -7`)
	expectNext("n", 1)
}

func TestNextIDSaysWhyThereIsNone(t *testing.T) {
	db := newDB(t)
	exec(t, db, "CREATE TABLE a (id INTEGER PRIMARY KEY, s TEXT, mixed INT); INSERT INTO a VALUES (9223372036854775807, 's', 'x'); CREATE VIEW v AS SELECT id FROM a")
	for at, want := range map[[2]string]error{
		{"a", "id"}:    schema.ErrKeyExhausted,
		{"a", "s"}:     schema.ErrNoIntegerKey,
		{"a", "mixed"}: schema.ErrNoIntegerKey,
		{"a", "x"}:     schema.ErrNoIntegerKey,
		{"b", "id"}:    schema.ErrNoTable,
		{"v", "id"}:    schema.ErrNoTable,
		{"", ""}:       schema.ErrNoTable,
	} {
		if _, err := schema.NextID(t.Context(), db, at[0], at[1]); !errors.Is(err, want) {
			t.Errorf("NextID of %v: %v, want %v", at, err, want)
		}
	}
}

func TestInspectResolvesWhatAForeignKeyLeavesOut(t *testing.T) {
	db := newDB(t)
	exec(t, db, `CREATE TABLE parent (a INTEGER, b INTEGER, PRIMARY KEY (b, a));
		CREATE TABLE child (id INTEGER PRIMARY KEY, y INTEGER, x INTEGER, FOREIGN KEY (y, x) REFERENCES parent, FOREIGN KEY (x) REFERENCES nowhere)`)
	got := fmt.Sprint(inspect(t, db)["child"].ForeignKeys)
	if want := "[{ [x] nowhere [] NO ACTION NO ACTION} { [y x] parent [b a] NO ACTION NO ACTION}]"; got != want {
		t.Errorf("foreign keys %s, want %s", got, want)
	}
}

func TestInspectLeavesOutWhatBelongsToAMigrationOrToSlots(t *testing.T) {
	db := newDB(t)
	for _, name := range []string{"shardid_job", "shardid_log_orders", "Shardid_fence", "shard_map", "shard_lease", "orders"} {
		exec(t, db, `CREATE TABLE "`+name+`" (job TEXT PRIMARY KEY)`)
	}
	if tables := inspect(t, db); len(tables) != 1 || tables["orders"].Name == "" {
		t.Errorf("%v", tables)
	}
}

func TestNoDatabaseIsAnErrorAndNoPanic(t *testing.T) {
	if err := schema.Apply(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "give an open *sql.DB") {
		t.Error(err)
	}
}
