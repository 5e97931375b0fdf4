// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// directory is users by id in four tables in two databases, with lookups by e-mail and city.
type directory struct {
	*shop

	statements []shardsql.Statement
}

const userColumns = " (id INTEGER PRIMARY KEY, email VARCHAR(100) COLLATE NOCASE, city VARCHAR(100), note TEXT, UNIQUE (email))"

// newDirectory stores the lookup tables in the database home, or in a separate one for "". Sharded
// says that the cities are sharded separately.
func newDirectory(t testing.TB, home string, sharded bool, options ...sharding.Option) *directory {
	t.Helper()
	return directoryOf(t, files(t), home, sharded, options...)
}

func directoryOf(t testing.TB, open func(name string) *sql.DB, home string, sharded bool, options ...sharding.Option) *directory {
	t.Helper()
	d := &directory{shop: &shop{dbs: sharding.DBs{"a": open("a.db"), "b": open("b.db")}}}
	if d.home = d.dbs[home]; d.home == nil {
		d.home = open("home.db")
	}
	users := sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: spread(t, 4, "users_%d"), Lookups: []sharding.Lookup{
		{Column: "email", Table: "users_by_email", Unique: true}, {Column: "city", Table: "users_by_city"},
	}}
	for _, at := range users.Map.Targets() {
		exec(t, d.dbs[at.DB], "CREATE TABLE "+at.Table+userColumns)
		exec(t, d.dbs[at.DB], "CREATE INDEX "+at.Table+"_city ON "+at.Table+" (city)")
	}
	options = append(options, users)
	if sharded {
		options = append(options, sharding.Table{Name: "users_by_city", Key: "city", Rule: sharding.HashText(2), Map: spread(t, 2, "users_by_city_%d")})
	}
	var err error
	if d.router, err = sharding.New(d.dbs, options...); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"email", "city"} {
		if err := lookups.Create(t.Context(), d.lookup(column)); err != nil {
			t.Fatal(err)
		}
	}
	d.routed = shardsql.OpenDB(shardsql.Config{Router: d.router, Home: d.home, Observer: shardsql.Observer{
		Statement: func(_ context.Context, s shardsql.Statement) { d.statements = append(d.statements, s) },
	}})
	t.Cleanup(func() { _ = d.routed.Close() })
	return d
}

func (d *directory) lookup(column string) lookups.Config {
	return lookups.Config{Router: d.router, Home: d.home, Table: "users", Column: column}
}

func (d *directory) add(t testing.TB, on execer, id int64, email, city any) {
	t.Helper()
	exec(t, on, "INSERT INTO users (id, email, city) VALUES (?, ?, ?)", id, email, city)
}

// sound compares the lookup tables with the shards.
func (d *directory) sound(t testing.TB, leftOver int64) {
	t.Helper()
	for _, column := range []string{"email", "city"} {
		r, err := lookups.Verify(t.Context(), d.lookup(column))
		if err != nil {
			t.Error(err)
		}
		if column == "email" && r.LeftOver != leftOver {
			t.Errorf("%d entries of e-mails are left over, want %d", r.LeftOver, leftOver)
		}
	}
}

// last returns the targets of the statement that ended last.
func (d *directory) last() []sharding.Target { return d.statements[len(d.statements)-1].Targets }

// The row exists, and keeps its own value.
func TestAnUpsertThatStoresNoValueMayNameThatOfAnotherRow(t *testing.T) {
	for _, home := range []string{"", "a"} {
		for _, ending := range []string{"DO UPDATE SET note = 'again'", "DO NOTHING"} {
			d := newDirectory(t, home, false)
			d.add(t, d.routed, 1, "one@x", "Rome")
			d.add(t, d.routed, 2, "two@x", "Rome")
			exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (1, 'two@x', NULL) ON CONFLICT (id) "+ending)
			for id, email := range map[int64]string{1: "one@x", 2: "two@x"} {
				if found := one[int64](t, d.routed, "SELECT id FROM users WHERE email = '"+email+"'"); found != id {
					t.Errorf("home %q, %s: %s is that of %d", home, ending, email, found)
				}
			}
			for _, text := range []string{
				"INSERT INTO users (id, email, city) VALUES (3, 'two@x', NULL) ON CONFLICT (id) " + ending,
				"INSERT INTO users (id, email, city) VALUES (1, 'two@x', NULL) ON CONFLICT (id) DO UPDATE SET email = excluded.email",
			} {
				if _, err := d.routed.Exec(text); err == nil {
					t.Errorf("home %q: %s", home, text)
				}
			}
			d.sound(t, 0)
		}
	}
}

func TestALookupLeadsToTheShard(t *testing.T) {
	for _, home := range []string{"", "a"} {
		for _, sharded := range []bool{false, true} {
			t.Run(fmt.Sprint("home ", home, ", sharded ", sharded), func(t *testing.T) {
				d := newDirectory(t, home, sharded)
				for id := range int64(8) {
					d.add(t, d.routed, id, fmt.Sprintf("u%d@x", id), []string{"Rome", "Oslo"}[id%2])
				}
				d.sound(t, 0)
				for query, want := range map[string]struct {
					arg     any
					answer  int64
					targets int
				}{
					"SELECT id FROM users WHERE email = ?":                                   {"U6@X", 6, 1},
					"SELECT COUNT(*) FROM users WHERE email = ?":                             {"nobody", 0, 1},
					"SELECT COUNT(*) FROM users WHERE email IN (?, 'u2@x')":                  {"u6@x", 2, 1},
					"SELECT COUNT(*) FROM users WHERE email IN (?, 'u3@x')":                  {"u6@x", 2, 2},
					"SELECT COUNT(*) FROM users WHERE email = ? OR id = 3":                   {"u6@x", 2, 2},
					"SELECT COUNT(*) FROM users WHERE city = ?":                              {"Oslo", 4, 2},
					"SELECT COUNT(*) FROM users WHERE city = ? AND id = 6":                   {"Rome", 1, 1},
					"SELECT COUNT(*) FROM users WHERE email = ? OR note = 'x'":               {"u6@x", 1, 4},
					"SELECT u.id FROM users u JOIN users v ON v.id = u.id WHERE v.email = ?": {"u5@x", 5, 1},
				} {
					if got := one[int64](t, d.routed, query, want.arg); got != want.answer {
						t.Errorf("%s: %d, want %d", query, got, want.answer)
					}
					if got := d.last(); len(got) != want.targets {
						t.Errorf("%s: asked %v, want %d targets", query, got, want.targets)
					}
				}
			})
		}
	}
}

func TestASecondOwnerOfAUniqueValueIsADuplicate(t *testing.T) {
	for _, home := range []string{"", "a"} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 1, "one@x", "Rome")
		for _, write := range []string{
			"INSERT INTO users (id, email, city) VALUES (2, 'ONE@x', 'Oslo')",
			"INSERT INTO users (id, email, city) VALUES (3, 'One@x', 'Oslo')",
			"INSERT INTO users (id, email, city) VALUES (5, 'one@x', 'Oslo')", // of the same table
			"INSERT INTO users (id, email, city) VALUES (6, 'new@x', NULL), (10, 'one@x', NULL)",
		} {
			_, err := d.routed.Exec(write)
			if err == nil || !strings.Contains(err.Error(), "UNIQUE constraint failed") {
				t.Errorf("%s: %v", write, err)
			}
		}
		d.add(t, d.routed, 2, "two@x", nil)
		if _, err := d.routed.Exec("UPDATE users SET email = 'one@x' WHERE id = 2"); err == nil || !strings.Contains(err.Error(), "UNIQUE constraint failed") {
			t.Error(err)
		}
		if n := one[int64](t, d.routed, "SELECT COUNT(*) FROM users"); n != 2 {
			t.Errorf("%d rows", n)
		}
		d.sound(t, 0)
	}
}

// GORM and sqlx pass the pointers of a struct as they are.
func TestANilPointerIsNULLThatEqualsNoOther(t *testing.T) {
	d := newDirectory(t, "a", false)
	for range 2 { // the second time, the rows are there
		exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT DO NOTHING", 1, (*string)(nil), "Rome", 3, (*string)(nil), (*string)(nil))
	}
	if n := one[int64](t, d.routed, "SELECT COUNT(*) FROM users WHERE email IS NULL"); n != 2 {
		t.Errorf("%d rows", n)
	}
	d.sound(t, 0)
}

// All slots are in one table, which would update the row that has the value. The lookup table names its owner.
func TestAnUpsertByTheValueOfAnotherSlotIsRefusedOnOneTableToo(t *testing.T) {
	d := &directory{shop: &shop{dbs: sharding.DBs{"a": files(t)("a.db")}}}
	d.home = d.dbs["a"]
	at := sharding.Target{DB: "a", Table: "users"}
	m, err := sharding.MapOf(at, at, at, at)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, d.home, "CREATE TABLE users"+userColumns)
	if d.router, err = sharding.New(d.dbs, sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: m,
		Lookups: []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), d.lookup("email")); err != nil {
		t.Fatal(err)
	}
	d.routed = shardsql.OpenDB(shardsql.Config{Router: d.router, Home: d.home})
	defer func() { _ = d.routed.Close() }()
	d.add(t, d.routed, 1, "one@x", "Rome")
	for _, conflict := range []string{"(email) DO UPDATE SET note = excluded.note", "(email) DO NOTHING", "DO NOTHING"} {
		exec(t, d.routed, "INSERT INTO users (id, email) VALUES (5, 'one@x') ON CONFLICT "+conflict) // of the same slot
		if _, err := d.routed.Exec("INSERT INTO users (id, email) VALUES (6, 'one@x') ON CONFLICT " + conflict); !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("%s: %v", conflict, err)
		}
	}
	if n := one[int64](t, d.routed, "SELECT SUM(id) FROM users"); n != 1 {
		t.Errorf("the sum of the ids is %d", n)
	}
}

func TestAValueThatARowLosesMayBeTakenByAnother(t *testing.T) {
	for _, home := range []string{"", "b"} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 1, "one@x", "Rome")
		d.add(t, d.routed, 2, "two@x", "Rome")
		exec(t, d.routed, "UPDATE users SET email = ? WHERE id = ?", "uno@x", 1)
		d.add(t, d.routed, 3, "one@x", "Oslo")
		exec(t, d.routed, "DELETE FROM users WHERE email = 'two@x'")
		d.add(t, d.routed, 4, "two@x", "Oslo")
		exec(t, d.routed, "UPDATE users SET email = NULL WHERE email = ?", "uno@x")
		d.add(t, d.routed, 5, "uno@x", "Oslo")
		for email, id := range map[string]int64{"one@x": 3, "two@x": 4, "uno@x": 5} {
			if got := one[int64](t, d.routed, "SELECT id FROM users WHERE email = ?", email); got != id {
				t.Errorf("%s: %d, want %d", email, got, id)
			}
		}
		d.sound(t, 0)
	}
}

func TestARollbackLeavesNoOwner(t *testing.T) {
	for _, home := range []string{"", "a"} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 1, "one@x", "Rome")
		tx, err := d.routed.BeginTx(within(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		d.add(t, tx, 3, "three@x", "Rome")
		if id := one[int64](t, tx, "SELECT id FROM users WHERE email = 'three@x'"); id != 3 {
			t.Errorf("a transaction does not find its own row: %d", id)
		}
		exec(t, tx, "DELETE FROM users WHERE email = 'one@x'")
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		d.sound(t, 0)
		d.add(t, d.routed, 2, "three@x", "Rome")
		if id := one[int64](t, d.routed, "SELECT id FROM users WHERE email = 'one@x'"); id != 1 {
			t.Error(id)
		}
	}
}

// GORM's nested transactions and statements that fail undo a part of a transaction, which then commits.
func TestWhatIsUndoneInATransactionLeavesNoOwner(t *testing.T) {
	for _, home := range []string{"", "a"} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 2, "taken@x", "Rome")
		tx, err := d.routed.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		d.add(t, tx, 1, "kept@x", "Rome")
		exec(t, tx, "SAVEPOINT first")
		d.add(t, tx, 5, "five@x", "Oslo")
		exec(t, tx, "ROLLBACK TO SAVEPOINT first")
		d.add(t, tx, 5, "again@x", "Oslo")
		exec(t, tx, "SAVEPOINT second")
		d.add(t, tx, 9, "nine@x", "Oslo")
		exec(t, tx, "RELEASE SAVEPOINT second")
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO users (id, email, city) VALUES (13, 'new@x', 'Bonn'), (17, 'taken@x', 'Bonn')"); err == nil {
			t.Error("two rows have one e-mail")
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		d.sound(t, 0)
		if n := one[int](t, d.routed, "SELECT COUNT(*) FROM users"); n != 4 {
			t.Errorf("home %q: %d users", home, n)
		}
	}
}

// If the row committed before its entry, and the entry could not, no query by the value would find the row.
func TestWithBestEffortAnEntryIsCommittedBeforeTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		failing string   // the database that does not commit
		texts   []string // CITYA is a city whose entries are in a
	}{
		"of a new row":     {"home", []string{"UPDATE users SET note = 'n' WHERE id = 2", "FAIL", "INSERT INTO users (id, email, city) VALUES (4, 'new@x', NULL)"}},
		"of a changed row": {"home", []string{"UPDATE users SET note = 'n' WHERE id = 2", "FAIL", "UPDATE users SET email = 'new@x' WHERE id = 2"}},
		"in another shard": {"b", []string{"UPDATE users SET note = 'n' WHERE id = 2", "FAIL", "INSERT INTO users (id, email, city) VALUES (4, NULL, 'CITYB')"}},
		"and of the entries of the same shard": {"a", []string{"INSERT INTO users (id, email, city) VALUES (1, NULL, 'CITYB')", "FAIL", "INSERT INTO users (id, email, city) VALUES (5, NULL, 'CITYB')",
			"INSERT INTO users (id, email, city) VALUES (9, NULL, 'CITYA')"}},
		"of a chain": {"home", []string{"UPDATE users SET note = 'n' WHERE id = 2", "UPDATE users SET note = 'n' WHERE id = 3", "FAIL",
			"INSERT INTO users (id, email, city) VALUES (4, NULL, 'CITYB')", "INSERT INTO users (id, email, city) VALUES (1, 'new@x', NULL)"}},
	} {
		d := newDirectory(t, "", true, sharding.Transactions(sharding.BestEffort))
		for id := range 2 {
			d.add(t, d.routed, int64(2+id), nil, nil)
		}
		exec(t, d.home, "CREATE TABLE notes (id INTEGER)")
		failing := map[string]*sql.DB{"a": d.dbs["a"], "b": d.dbs["b"], "home": d.home}[c.failing]
		exec(t, failing, "CREATE TABLE parents (id INTEGER PRIMARY KEY)")
		exec(t, failing, "CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
		fail := map[string]string{"a": "UPDATE users SET note = 'f' WHERE id = 2", "b": "UPDATE users SET note = 'f' WHERE id = 3", "home": "INSERT INTO notes VALUES (1)"}[c.failing]
		trigger := map[string]string{"a": "UPDATE ON users_2", "b": "UPDATE ON users_3", "home": "INSERT ON notes"}[c.failing]
		exec(t, failing, "CREATE TRIGGER later AFTER "+trigger+" BEGIN INSERT INTO children VALUES (1); END")
		tx, err := d.routed.BeginTx(within(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range c.texts {
			exec(t, tx, strings.NewReplacer("FAIL", fail, "CITYA", d.cityIn(t, "a"), "CITYB", d.cityIn(t, "b")).Replace(text))
		}
		if err := tx.Commit(); err == nil {
			t.Errorf("%s: the transaction commits", name)
		}
		d.sound(t, 0)
	}
}

// cityIn returns a city whose entries are in a database.
func (d *directory) cityIn(t testing.TB, db string) string {
	t.Helper()
	for _, city := range []string{"Rome", "Paris", "Oslo", "Bonn", "Bern", "Riga", "Lima"} {
		if at, err := d.router.Target("users_by_city", city); err == nil && at.DB == db {
			return city
		}
	}
	t.Fatal("no city in " + db)
	return ""
}

// After a rollback a row has the value again that the transaction has taken from it. So another row
// of the transaction may get the value only if the lookup table is rolled back, too.
func TestATransactionMovesAValueToAnotherRowOnlyIfARollbackUndoesAllOfIt(t *testing.T) {
	for home, refused := range map[string]bool{"": true, "b": false} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 1, "one@x", "Rome")
		tx, err := d.routed.BeginTx(within(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "DELETE FROM users WHERE id = 1")
		_, err = tx.Exec("INSERT INTO users (id, email, city) VALUES (3, 'one@x', NULL)")
		if errors.Is(err, sharding.ErrLookup) != refused || err != nil && !refused {
			t.Errorf("home %q: %v", home, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if id := one[int64](t, d.routed, "SELECT id FROM users WHERE email = 'one@x'"); id != 1 {
			t.Error(id)
		}
		d.sound(t, 0)
	}
}

// Rows 1 and 3 are in one database, and the lookup table in another one. The UPDATE itself takes
// away the value of row 3.
func TestAnUpdateToAValueOfAnotherRowIsADuplicate(t *testing.T) {
	for _, home := range []string{"", "a", "b"} {
		d := newDirectory(t, home, false)
		d.add(t, d.routed, 1, "one@x", "Rome")
		d.add(t, d.routed, 3, "three@x", "Rome")
		for _, text := range []string{
			"UPDATE users SET email = 'one@x' WHERE id = 3",
			"UPDATE users SET email = 'One@X' WHERE id IN (3)",
			"UPDATE users SET email = 'one@x' WHERE email = 'three@x'",
			"UPDATE users SET email = 'one@x' WHERE id = (SELECT id FROM users WHERE email = 'three@x')", // the router cannot read the old values of its rows
		} {
			if _, err := d.routed.Exec(text); err == nil || errors.Is(err, sharding.ErrLookup) || !strings.Contains(err.Error(), "UNIQUE") {
				t.Errorf("home %q: %s: %v", home, text, err)
			}
		}
		d.sound(t, 0)
		exec(t, d.home, "INSERT INTO users_by_email (email, id, claim) VALUES ('nobody@x', 5, 77)")
		if _, err := d.routed.Exec("UPDATE users SET email = 'nobody@x' WHERE id = 3"); err != nil { // 5 is on the same database
			t.Errorf("home %q: the entry of a writer that was killed: %v", home, err)
		}
		d.sound(t, 0)
	}
}

// A writer that was killed leaves an entry, which the next one replaces.
func TestAnEntryWithoutARowDoesNoHarm(t *testing.T) {
	d := newDirectory(t, "", false)
	exec(t, d.home, "INSERT INTO users_by_email (email, id, claim) VALUES ('one@x', 1, 77), ('two@x', 2, 78)")
	if n := one[int64](t, d.routed, "SELECT COUNT(*) FROM users WHERE email = 'one@x'"); n != 0 {
		t.Error(n)
	}
	d.sound(t, 2)
	d.add(t, d.routed, 2, "one@x", "Rome")
	if id := one[int64](t, d.routed, "SELECT id FROM users WHERE email = 'one@x'"); id != 2 {
		t.Error(id)
	}
	d.sound(t, 1)
	if r, err := lookups.Tidy(t.Context(), d.lookup("email")); err != nil || r.Removed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	d.sound(t, 0)
}

func TestUpsertsKeepLookups(t *testing.T) {
	d := newDirectory(t, "", false)
	d.add(t, d.routed, 1, "one@x", "Rome")
	d.add(t, d.routed, 2, "two@x", "Rome")
	exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (1, 'uno@x', 'Oslo') ON CONFLICT (id) DO UPDATE SET email = excluded.email, city = excluded.city")
	exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (1, 'uno@x', 'Oslo') ON CONFLICT DO NOTHING")
	exec(t, d.routed, "REPLACE INTO users (id, email, city) VALUES (2, 'due@x', 'Oslo')")
	d.add(t, d.routed, 3, "one@x", "Rome")
	for email, id := range map[string]int64{"uno@x": 1, "due@x": 2, "one@x": 3} {
		if got := one[int64](t, d.routed, "SELECT id FROM users WHERE email = ?", email); got != id {
			t.Errorf("%s: %d, want %d", email, got, id)
		}
	}
	if _, err := d.routed.Exec("INSERT INTO users (id, email, city) VALUES (5, 'due@x', 'Oslo') ON CONFLICT (id) DO UPDATE SET email = excluded.email"); err == nil {
		t.Error("an upsert takes the value of another row")
	}
	d.sound(t, 1) // of what REPLACE has deleted
}

func TestWritesOfUnknownValuesAreRefused(t *testing.T) {
	d := newDirectory(t, "", false)
	for _, write := range []string{
		"INSERT INTO users (id, email, city) VALUES (1, lower('A@X'), 'Rome')",
		"INSERT INTO users (id, email, city) SELECT id, email, city FROM users WHERE id = 1",
		"UPDATE users SET email = lower(email) WHERE id = 1",
		"UPDATE users SET (email, city) = (1, 2) WHERE id = 1",
		"INSERT INTO users (id, email, city) VALUES (1, 'a', 'b') ON CONFLICT (id) DO UPDATE SET email = excluded.email || 'x'",
	} {
		var refusal *sharding.RouteError
		if _, err := d.routed.Exec(write); !errors.Is(err, sharding.ErrLookup) || !errors.As(err, &refusal) || refusal.Hint == "" {
			t.Errorf("%s: %v", write, err)
		}
		if e, err := shardsql.Explain(t.Context(), d.routed, write); err != nil || e.Kind != shardsql.Refused {
			t.Errorf("%s is explained as %v, %v", write, e.Kind, err)
		}
	}
}

func TestManyRowsAreChangedAtOnce(t *testing.T) {
	d := newDirectory(t, "", true, sharding.Transactions(sharding.BestEffort))
	var rows []string
	for id := range 1000 {
		rows = append(rows, fmt.Sprintf("(%d, 'u%d@x', 'c%d')", id, id, id%7))
	}
	exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES "+strings.Join(rows, ", "))
	d.sound(t, 0)
	all := sharding.AllShards(within(t))
	if _, err := d.routed.ExecContext(all, "UPDATE users SET city = 'Oslo' WHERE city = 'c3'"); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, d.routed, "SELECT COUNT(*) FROM users WHERE city = 'Oslo'"); n != 143 {
		t.Error(n)
	}
	if _, err := d.routed.ExecContext(all, "DELETE FROM users WHERE city = 'c4'"); err != nil {
		t.Fatal(err)
	}
	d.sound(t, 0)
}

func TestExplainShowsTheQuestionToTheLookupTable(t *testing.T) {
	d := newDirectory(t, "", true)
	e, err := shardsql.Explain(t.Context(), d.routed, "SELECT * FROM users WHERE city = ?", "Rome")
	if err != nil || e.Kind != shardsql.Lookup || len(e.Lookups) != 1 || !strings.Contains(e.Lookups[0].Text, "FROM users_by_city_") {
		t.Errorf("%+v, %v", e, err)
	}
	e, err = shardsql.Explain(t.Context(), d.routed, "SELECT * FROM users WHERE city = ? AND id = 3", "Rome")
	if err != nil || e.Kind != shardsql.One {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestALookupTableThatComparesDifferentlyIsRefused(t *testing.T) {
	for what, ddl := range map[string]string{
		"collation": "CREATE TABLE users_by_email (email VARCHAR(100) PRIMARY KEY, id INTEGER NOT NULL, claim BIGINT NOT NULL)",
		"key":       "CREATE TABLE users_by_email (email VARCHAR(100) COLLATE NOCASE, id INTEGER NOT NULL, claim BIGINT NOT NULL)",
		"missing":   "",
	} {
		d := newDirectory(t, "", false)
		exec(t, d.home, "DROP TABLE users_by_email")
		if ddl != "" {
			exec(t, d.home, ddl)
		}
		if _, err := d.routed.Exec("INSERT INTO users (id, email, city) VALUES (1, 'a', 'b')"); !errors.Is(err, sharding.ErrLookup) {
			t.Errorf("%s: %v", what, err)
		}
		var id int64
		if err := d.routed.QueryRow("SELECT id FROM users WHERE email = 'a'").Scan(&id); !errors.Is(err, sharding.ErrLookup) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestALookupOfAColumnWithoutAUniqueIndexIsRefused(t *testing.T) {
	d := newDirectory(t, "", false)
	for _, at := range d.router.Targets("users") {
		exec(t, d.dbs[at.DB], "DROP TABLE "+at.Table)
		exec(t, d.dbs[at.DB], "CREATE TABLE "+at.Table+strings.Replace(userColumns, ", UNIQUE (email)", "", 1))
	}
	const want = "column email has no unique index on the shards (email); create one on each of them"
	if _, err := d.routed.Exec("INSERT INTO users (id, email, city) VALUES (1, 'a', 'b')"); !errors.Is(err, sharding.ErrLookup) || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
}

func TestTheErrorOfTablesThatNobodyCreatedSaysWhatCreatesThem(t *testing.T) {
	d := newDirectory(t, "", false)
	for _, at := range d.router.Targets("users") {
		exec(t, d.dbs[at.DB], "DROP TABLE "+at.Table)
	}
	if _, err := d.routed.Exec("INSERT INTO users (id, email, city) VALUES (1, 'a', 'b')"); err == nil || !strings.Contains(err.Error(), "shardid ddl") {
		t.Error(err)
	}
	routed, copies := rated(t, sharding.BestEffort)
	for _, db := range copies {
		exec(t, db, "DROP TABLE rates")
	}
	if _, err := routed.Exec("INSERT INTO rates (id, name) VALUES (1, 'a')"); !errors.Is(err, sharding.ErrCopies) || !strings.HasSuffix(err.Error(), "in all others") {
		t.Error(err)
	}
}

// A writer holds a connection to the database of its row while it waits for one to that of the
// lookup table; others hold and wait in the opposite order.
func TestWritersNeedOneConnectionOfEachPool(t *testing.T) {
	for _, home := range []string{"", "a"} {
		d := newDirectory(t, home, true)
		d.routed = shardsql.OpenDB(shardsql.Config{Router: d.router, Home: d.home})
		for _, db := range []*sql.DB{d.home, d.dbs["a"], d.dbs["b"]} {
			db.SetMaxOpenConns(1)
		}
		ctx := within(t)
		var wg sync.WaitGroup
		for w := range int64(8) {
			wg.Go(func() {
				for i := range int64(20) {
					id := w + 8*i
					for _, write := range []string{
						"INSERT INTO users (id, email, city) VALUES (?1, ?2, ?2)",
						"UPDATE users SET city = ?2, email = ?2 WHERE id = ?1",
						"UPDATE users SET email = NULL WHERE id = ?1 AND city = ?2",
					} {
						if _, err := d.routed.ExecContext(ctx, write, id, fmt.Sprintf("%d.%d@x", id, len(write))); err != nil {
							t.Errorf("%s: %v", write, err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		if err := d.routed.Close(); err != nil {
			t.Error(err)
		}
		for _, column := range []string{"email", "city"} {
			if r, err := lookups.Verify(t.Context(), d.lookup(column)); err != nil {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}
}

// Concurrent writers that set, delete and change the same few values never give one value two
// owners.
func TestWritersOfTheSameValuesAtOnce(t *testing.T) {
	d := directoryOf(t, filesWaiting(t, 5*time.Millisecond), "", true)
	d.routed = shardsql.OpenDB(shardsql.Config{Router: d.router, Home: d.home})
	defer func() { _ = d.routed.Close() }()
	var wg sync.WaitGroup
	for w := range int64(4) {
		wg.Go(func() {
			for i := range int64(60) {
				id, email := w+4*(i%3), fmt.Sprintf("u%d@x", (w+i)%3)
				for _, write := range []string{
					"INSERT INTO users (id, email, city) VALUES (?, ?, 'Rome')",
					"UPDATE users SET email = NULL WHERE id = ? AND email = ?",
					"DELETE FROM users WHERE id = ? OR id < 0 AND email = ?",
				} {
					_, _ = d.routed.ExecContext(t.Context(), write, id, email) // duplicates, and on SQLite "database is locked"
				}
				var n int64
				if err := d.routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM users WHERE email = ?", email).Scan(&n); err == nil && n > 1 {
					t.Errorf("%s has %d owners", email, n)
				}
			}
		})
	}
	wg.Wait()
	for _, column := range []string{"email", "city"} {
		if _, err := lookups.Verify(t.Context(), d.lookup(column)); err != nil {
			t.Error(err)
		}
	}
	var owners []string
	for _, at := range d.router.Targets("users") {
		some, err := texts(d.dbs[at.DB], "SELECT email FROM "+at.Table+" WHERE email IS NOT NULL")
		if err != nil {
			t.Fatal(err)
		}
		owners = append(owners, some...)
	}
	seen := map[string]bool{}
	for _, email := range owners {
		if seen[email] {
			t.Errorf("%s has two owners", email)
		}
		seen[email] = true
	}
}
