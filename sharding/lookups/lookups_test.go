// SPDX-License-Identifier: Apache-2.0

package lookups_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// users are rows in two databases that existed before their lookups.
type users struct {
	home *sql.DB
	dbs  sharding.DBs
}

func newUsers(t *testing.T, rows int) *users {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(2000)&_pragma=synchronous(off)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	u := &users{home: open("home"), dbs: sharding.DBs{"a": open("a"), "b": open("b")}}
	for i := range 4 {
		var values []string
		for id := i; id < rows; id += 4 {
			values = append(values, fmt.Sprintf("(%d, 'U%d@x', 'c%d')", id, id, id%3))
		}
		exec(t, u.dbs[[]string{"a", "b"}[i%2]], fmt.Sprintf(`CREATE TABLE users_%d (id INTEGER PRIMARY KEY, email VARCHAR(100) COLLATE NOCASE UNIQUE, city TEXT);
			CREATE INDEX users_%[1]d_city ON users_%[1]d (city); INSERT INTO users_%[1]d VALUES %[2]s`, i, strings.Join(values, ", ")))
	}
	return u
}

func exec(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// config declares both lookups; the one by city is sharded.
func (u *users) config(t *testing.T, column string, building bool) lookups.Config {
	t.Helper()
	spread := func(tables int, pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"a", "b"}, tables, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	router, err := sharding.New(u.dbs,
		sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: spread(4, "users_%d"), Lookups: []sharding.Lookup{
			{Column: "email", Table: "users_by_email", Unique: true, Building: building},
			{Column: "city", Table: "users_by_city", Building: building},
		}},
		sharding.Table{Name: "users_by_city", Key: "city", Rule: sharding.HashText(2), Map: spread(2, "users_by_city_%d")})
	if err != nil {
		t.Fatal(err)
	}
	c := lookups.Config{Router: router, Home: u.home, Table: "users", Column: column, ChunkRows: 7}
	if err := lookups.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBuildEntersTheExistingRows(t *testing.T) {
	u := newUsers(t, 100)
	for column, entries := range map[string]int64{"email": 100, "city": 100} { // rows of two users are two entries
		r, err := lookups.Build(t.Context(), u.config(t, column, true))
		if err != nil || r.Rows != 100 || r.Entries != entries || r.Missing+r.LeftOver != 0 {
			t.Errorf("%s: %+v, %v", column, r, err)
		}
		if _, err := lookups.Verify(t.Context(), u.config(t, column, false)); err != nil {
			t.Error(err)
		}
	}
}

func TestEachPassReportsAllRows(t *testing.T) {
	u := newUsers(t, 100)
	c := u.config(t, "email", true)
	type place struct {
		pass lookups.Pass
		at   sharding.Target
	}
	rows, order := map[place]int64{}, []lookups.Pass{}
	c.Observe = func(p lookups.Progress) {
		rows[place{p.Pass, p.Target}] = p.Rows
		if len(order) == 0 || order[len(order)-1] != p.Pass {
			order = append(order, p.Pass)
		}
	}
	if _, err := lookups.Build(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := []lookups.Pass{lookups.Entering, lookups.ComparingRows, lookups.ComparingEntries}; !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
	total := map[lookups.Pass]int64{}
	for at, n := range rows {
		total[at.pass] += n
	}
	for _, pass := range order {
		if total[pass] != 100 {
			t.Errorf("%s: %d rows", pass, total[pass])
		}
	}
}

func TestBuildContinuesAfterAnInterruption(t *testing.T) {
	u := newUsers(t, 100)
	c := u.config(t, "email", true)
	ctx, cancel := context.WithCancel(t.Context())
	chunks := 0
	c.Observe = func(lookups.Progress) {
		if chunks++; chunks == 5 {
			cancel()
		}
	}
	if _, err := lookups.Build(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	entered := map[sharding.Target]int64{}
	c.Observe = func(p lookups.Progress) { entered[p.Target] = max(entered[p.Target], p.Entered) }
	r, err := lookups.Build(t.Context(), c)
	if err != nil || r.Rows != 100 || r.Entries != 100 {
		t.Errorf("%+v, %v", r, err)
	}
	second := int64(0)
	for _, n := range entered {
		second += n
	}
	if second < 60 || second > 68 { // of 25 rows a table, by seven
		t.Errorf("%d entries by the second call", second)
	}
}

func TestBuildReportsValuesThatTwoRowsHave(t *testing.T) {
	u := newUsers(t, 20)
	exec(t, u.dbs["a"], "UPDATE users_2 SET email = 'u3@X' WHERE id = 2")
	exec(t, u.dbs["b"], "UPDATE users_1 SET email = 'u3@x' WHERE id = 5")
	c := u.config(t, "email", true)
	r, err := lookups.Build(t.Context(), c)
	if !errors.Is(err, lookups.ErrDuplicates) || !strings.Contains(err.Error(), ": 2 rows of users have the email of another row: u3@x (id 5, b/users_1) and u3@X (id 2, a/users_2) and U3@x (id 3, b/users_3)") {
		t.Error(err)
	}
	want := []lookups.Owner{
		{Value: "u3@x", Key: "5", Target: sharding.Target{DB: "b", Table: "users_1"}},
		{Value: "u3@X", Key: "2", Target: sharding.Target{DB: "a", Table: "users_2"}},
		{Value: "U3@x", Key: "3", Target: sharding.Target{DB: "b", Table: "users_3"}},
	}
	if len(r.Duplicates) != 1 || !slices.Equal(r.Duplicates[0], want) {
		t.Errorf("%+v", r.Duplicates)
	}
	if v, err := lookups.Verify(t.Context(), c); !errors.Is(err, lookups.ErrDuplicates) || errors.Is(err, lookups.ErrMissing) || v.Missing != 2 || len(v.Duplicates) != 1 || !slices.Equal(v.Duplicates[0], want) {
		t.Errorf("%+v, %v", v, err)
	}
	exec(t, u.home, "DELETE FROM users_by_email WHERE email = 'u7@x'")
	v, err := lookups.Verify(t.Context(), c)
	if !errors.Is(err, lookups.ErrDuplicates) || !errors.Is(err, lookups.ErrMissing) || v.Missing != 3 || !strings.Contains(err.Error(), "1 of 20 values of users.email, such as [U7@x (id 7)]") {
		t.Errorf("%+v, %v", v, err)
	}
	exec(t, u.dbs["a"], "UPDATE users_2 SET email = 'u2@x' WHERE id = 2")
	exec(t, u.dbs["b"], "UPDATE users_1 SET email = 'u5@x' WHERE id = 5")
	if r, err := lookups.Build(t.Context(), c); err != nil || r.LeftOver != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALookupIsBuiltWhileRowsAreWritten(t *testing.T) {
	u := newUsers(t, 200)
	c := u.config(t, "email", true)
	db := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: u.home})
	defer func() { _ = db.Close() }()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := i % 200
			_, _ = db.ExecContext(t.Context(), "UPDATE users SET email = ? WHERE id = ?", fmt.Sprintf("new%d@x", i), id) // SQLite may be busy
			_, _ = db.ExecContext(t.Context(), "DELETE FROM users WHERE id = ?", (id+100)%200)
			_, _ = db.ExecContext(t.Context(), "INSERT INTO users (id, email, city) VALUES (?, ?, 'x')", (id+100)%200, fmt.Sprintf("again%d@x", i))
		}
	})
	_, err := lookups.Build(t.Context(), c)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Error(err)
	}
	if r, err := lookups.Verify(t.Context(), u.config(t, "email", false)); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALookupThatIsInUseIsNotFilledAgain(t *testing.T) {
	u := newUsers(t, 4)
	if _, err := lookups.Build(t.Context(), u.config(t, "email", false)); err == nil || !strings.Contains(err.Error(), "Building") {
		t.Error(err)
	}
	r, err := lookups.Verify(t.Context(), u.config(t, "email", false))
	if !errors.Is(err, lookups.ErrMissing) || r.Missing != 4 || len(r.Examples) != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALookupTableThatIsNotMadeIsNamed(t *testing.T) {
	u := newUsers(t, 4)
	for _, column := range []string{"email", "city"} {
		c := u.config(t, column, true)
		exec(t, u.home, "DROP TABLE IF EXISTS users_by_email")
		exec(t, u.dbs["b"], "DROP TABLE IF EXISTS users_by_city_1")
		for name, do := range map[string]func(context.Context, lookups.Config) (lookups.Report, error){"build": lookups.Build, "verify": lookups.Verify} {
			if _, err := do(t.Context(), c); !errors.Is(err, lookups.ErrNotMade) || !strings.Contains(err.Error(), "shardid lookup create") || !strings.Contains(err.Error(), "users_by_"+column) {
				t.Errorf("%s of %s: %v", name, column, err)
			}
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	u := newUsers(t, 4)
	good := u.config(t, "email", true)
	for name, c := range map[string]lookups.Config{
		"nothing": {}, "no home": {Router: good.Router, Table: "users", Column: "email"},
		"table":  {Router: good.Router, Home: u.home, Table: "people", Column: "email"},
		"column": {Router: good.Router, Home: u.home, Table: "users", Column: "id"},
		"chunk":  {Router: good.Router, Home: u.home, Table: "users", Column: "email", ChunkRows: -1},
	} {
		if err := c.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// Slot 0 moves from a/users_0 to a new table of b after the rows of the shards were read, and
// before the entries are.
func TestEntriesOfASlotThatMovesMeanwhileAreKept(t *testing.T) {
	u := newUsers(t, 40)
	building := u.config(t, "email", true)
	if _, err := lookups.Build(t.Context(), building); err != nil {
		t.Fatal(err)
	}
	exec(t, u.dbs["b"], "CREATE TABLE users_new (id INTEGER PRIMARY KEY, email VARCHAR(100) COLLATE NOCASE UNIQUE, city TEXT)")
	c := u.config(t, "email", false)
	now, _ := c.Router.Table("users")
	places := []sharding.Target{{DB: "b", Table: "users_new"}}
	for slot := range sharding.Slot(3) {
		at, _ := now.Map.Target(slot + 1)
		places = append(places, at)
	}
	to, err := sharding.MapOf(places...)
	if err != nil {
		t.Fatal(err)
	}
	c.Observe = func(p lookups.Progress) {
		if p.Target.Table != "users_3" || p.Rows < 10 {
			return // some rows are still to be read
		}
		if err := c.Router.Swap(map[string]sharding.Map{"users": to.At(now.Map.Version() + 1)}); err != nil {
			t.Fatal(err)
		}
		for id := 0; id < 40; id += 4 {
			exec(t, u.dbs["b"], fmt.Sprintf("INSERT INTO users_new VALUES (%d, 'U%d@x', 'c')", id, id))
		}
		exec(t, u.dbs["a"], "DELETE FROM users_0")
	}
	r, err := lookups.Tidy(t.Context(), c)
	if err != nil || r.Entries != 40 || r.LeftOver+r.Removed+r.Missing != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// By the unique index of a shard, an upsert finds a row with another key of its slot: the entry
// leads to that row under either key.
func TestAnEntryUnderAnotherKeyOfTheSlotIsNotLeftOver(t *testing.T) {
	u := newUsers(t, 8)
	if _, err := lookups.Build(t.Context(), u.config(t, "email", true)); err != nil {
		t.Fatal(err)
	}
	u.config(t, "city", false) // makes its table
	c := u.config(t, "email", false)
	db := shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: u.home})
	defer func() { _ = db.Close() }()
	exec(t, db, "INSERT INTO users (id, email, city) VALUES (11, 'U3@x', 'c0') ON CONFLICT (email) DO UPDATE SET id = id")
	r, err := lookups.Tidy(t.Context(), c)
	if err != nil || r.Entries != 8 || r.LeftOver+r.Removed+r.Missing != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The driver returns the text of a DATETIME as a time, and writes times in another form, which sorts before it.
func TestVerifyEndsWhereValuesAreNotSortedAsTheyAreReturned(t *testing.T) {
	u := newUsers(t, 4)
	for i := range 4 {
		exec(t, u.dbs[[]string{"a", "b"}[i%2]], fmt.Sprintf("DROP TABLE users_%d; CREATE TABLE users_%[1]d (id INTEGER PRIMARY KEY, email DATETIME UNIQUE, city TEXT); INSERT INTO users_%[1]d VALUES (%[1]d, '2026-01-02T10:00:00Z', 'c')", i))
	}
	c := u.config(t, "email", false)
	if err := lookups.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := lookups.Verify(ctx, c); !errors.Is(err, sharding.ErrLookup) {
		t.Errorf("%+v, %v", r, err)
	}
}
