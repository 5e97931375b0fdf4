// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

const (
	makeShop = `-- +goose Up
CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, CONSTRAINT positive CHECK (orders.id > 0));
CREATE TABLE items (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT REFERENCES orders (id), region BIGINT REFERENCES regions);
CREATE INDEX orders_user ON orders (user_id);
CREATE TABLE regions (id BIGINT PRIMARY KEY);

-- +goose Down
DROP TABLE regions;
DROP INDEX orders_user;
DROP TABLE items;
DROP TABLE orders;
`
	addNote = `-- +goose Up
ALTER TABLE "orders" ADD COLUMN note TEXT; -- orders stay orders in comments
-- +goose Down
ALTER TABLE orders DROP COLUMN note;
`
)

// shop is two databases with four slots in three physical tables of orders and of items.
type shop struct {
	dbs    sharding.DBs
	router *sharding.Router
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{dbs: sharding.DBs{}}
	for _, name := range []string{"east", "west"} {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), name+".db")+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		s.dbs[name] = db
	}
	s.route(t)
	return s
}

func (s *shop) route(t *testing.T) {
	t.Helper()
	at := func(table string) sharding.Map {
		m, err := sharding.MapOf(sharding.Target{DB: "east", Table: table + "_0"}, sharding.Target{DB: "west", Table: table + "_1"},
			sharding.Target{DB: "east", Table: table + "_2"}, sharding.Target{DB: "east", Table: table + "_0"})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var err error
	s.router, err = sharding.New(s.dbs,
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: at("orders"), Group: "shop"},
		sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(4), Map: at("items"), Group: "shop"},
		sharding.Table{Name: "events", Key: "id", Rule: sharding.Mod(4), Map: at("events")},
		sharding.Broadcast("regions"))
	if err != nil {
		t.Fatal(err)
	}
}

func files(texts ...string) fs.FS {
	all := fstest.MapFS{}
	for i, text := range texts {
		all[fmt.Sprintf("%05d_version.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func (s *shop) runner(t *testing.T, texts ...string) *versions.Runner {
	t.Helper()
	r, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: files(texts...)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *shop) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tables returns the names of tables and indexes of a database.
func (s *shop) tables(t *testing.T, db string) string {
	t.Helper()
	rows, err := s.dbs[db].QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'shardid_ddl' ORDER BY name")
	s.must(t, err)
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var name string
		s.must(t, rows.Scan(&name))
		all = append(all, name)
	}
	s.must(t, rows.Err())
	return strings.Join(all, " ")
}

func states(t *testing.T, r *versions.Runner) string {
	t.Helper()
	m, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, line := range m.Lines {
		fmt.Fprintf(&b, "%d:", line.Version)
		for _, db := range m.Databases {
			c, asked := line.Cells[db]
			if !asked {
				c.State = "?"
			}
			fmt.Fprintf(&b, " %s %d/%d", c.State, c.Done, c.Steps)
		}
		b.WriteString("; ")
	}
	return b.String()
}

func TestAVersionIsRunOnEveryPhysicalTableAndUndone(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop, addNote)
	if got := states(t, r); got != "1: pending 0/7 pending 0/4; 2: pending 0/2 pending 0/1; " {
		t.Error(got)
	}
	s.must(t, r.Up(t.Context(), 0))
	if got := s.tables(t, "east"); got != "items_0 items_2 orders_0 orders_2 orders_user_orders_0 orders_user_orders_2 regions" {
		t.Error(got)
	}
	if got := s.tables(t, "west"); got != "items_1 orders_1 orders_user_orders_1 regions" {
		t.Error(got)
	}
	if got := states(t, r); got != "1: applied 7/7 applied 4/4; 2: applied 2/2 applied 1/1; " {
		t.Error(got)
	}
	var text string
	s.must(t, s.dbs["east"].QueryRowContext(t.Context(), "SELECT sql FROM sqlite_master WHERE name = 'items_2'").Scan(&text))
	if !strings.Contains(text, `REFERENCES "orders_2" (id)`) || !strings.Contains(text, `REFERENCES "regions"`) {
		t.Error(text)
	}
	s.must(t, r.Up(t.Context(), 0)) // nothing is left to do
	if drift, err := r.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Error(drift, err)
	}
	for want := int64(2); want >= 0; want-- {
		if undone, err := r.Down(t.Context()); err != nil || undone != want {
			t.Fatal(undone, err)
		}
	}
	if got := s.tables(t, "east") + s.tables(t, "west"); got != "" {
		t.Error(got)
	}
	s.must(t, r.Up(t.Context(), 1))
	if got := states(t, r); got != "1: applied 7/7 applied 4/4; 2: pending 0/2 pending 0/1; " {
		t.Error(got)
	}
}

func TestPlanSaysWhatWouldBeSentAndSendsNothing(t *testing.T) {
	s := newShop(t)
	steps, err := s.runner(t, makeShop, addNote).Plan(t.Context(), 0)
	s.must(t, err)
	if len(steps) != 14 || s.tables(t, "east") != "" {
		t.Fatal(steps)
	}
	last := steps[len(steps)-1]
	if last.Target.String() != "west/orders_1" || last.SQL != `ALTER TABLE "orders_1" ADD COLUMN note TEXT` {
		t.Error(last)
	}
}

func TestWhatCannotBeUnderstoodIsRefusedAndNothingIsSent(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO regions VALUES (1)", "DELETE FROM orders", "CREATE VIEW v AS SELECT * FROM orders", "TRUNCATE TABLE orders",
		"CREATE TABLE coupons (id BIGINT)", "CREATE TABLE orders AS SELECT 1", "CREATE TABLE orders (id BIGINT) AS TABLE items",
		"CREATE TABLE main.orders (id BIGINT)", "CREATE TEMPORARY TABLE orders (id BIGINT)", "DROP TABLE orders, coupons",
		"CREATE TABLE orders (id BIGINT REFERENCES events (id))", "CREATE TABLE regions (id BIGINT REFERENCES orders (id))",
		"CREATE INDEX ON orders (id)", "DROP INDEX nobody", "ALTER TABLE orders RENAME TO orders_old", "ALTER TABLE orders RENAME TO events",
		"ALTER TABLE orders INHERIT items", "ALTER TABLE orders ADD CHECK (id IN (SELECT id FROM items))", "ALTER TABLE orders ADD note TEXT, FROBNICATE",
		"ALTER TABLE orders", "CREATE TABLE orders", "DROP TABLE", "CREATE INDEX i ON orders (items.id)", "ALTER TABLE orders ADD note TEXT DEFAULT 'a",
		"DROP TABLE orders; DROP TABLE items",
	} {
		s := newShop(t)
		r := s.runner(t, makeShop, "-- +goose Up\n-- +goose StatementBegin\n"+text+"\n-- +goose StatementEnd")
		if err := r.Up(t.Context(), 0); !errors.Is(err, versions.ErrStatement) {
			t.Errorf("%s: %v", text, err)
		}
		if got := s.tables(t, "east"); got != "" {
			t.Errorf("%s: %s was made", text, got)
		}
	}
}

func TestFilesThatAreNoVersionsAreRefused(t *testing.T) {
	s := newShop(t)
	for _, all := range []fs.FS{fstest.MapFS{}, files("CREATE TABLE orders (id BIGINT)"), files("-- +goose Up\n-- +goose Down\nDROP TABLE orders;")} {
		if _, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: all}); !errors.Is(err, versions.ErrFiles) {
			t.Error(err)
		}
	}
	if _, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: fstest.MapFS{"orders.sql": {}}}); err == nil || !strings.Contains(err.Error(), "there are none; name them like 00001_orders.sql") {
		t.Error(err)
	}
	if _, err := versions.New(t.Context(), versions.Config{Router: s.router}); err == nil {
		t.Error("no files were taken")
	}
	if _, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: files(makeShop), Concurrency: -1}); err == nil {
		t.Error("Concurrency -1 was taken")
	}
	if err := s.runner(t, makeShop).Up(t.Context(), 9); !errors.Is(err, versions.ErrFiles) {
		t.Error(err)
	}
}

func TestAFileThatWasChangedAfterItWasRunIsRefused(t *testing.T) {
	s := newShop(t)
	s.must(t, s.runner(t, makeShop).Up(t.Context(), 0))
	other := s.runner(t, strings.Replace(makeShop, "user_id BIGINT NOT NULL,", "user_id INT NOT NULL,", 1), addNote)
	if err := other.Up(t.Context(), 0); !errors.Is(err, versions.ErrChanged) {
		t.Error(err)
	}
	if _, err := other.Down(t.Context()); !errors.Is(err, versions.ErrChanged) {
		t.Error(err)
	}
}

func TestAVersionBelowOneThatWasRunIsRefused(t *testing.T) {
	s := newShop(t)
	all := fstest.MapFS{"00005_shop.sql": {Data: []byte(makeShop)}}
	r, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: all})
	s.must(t, err)
	s.must(t, r.Up(t.Context(), 0))
	all["00003_note.sql"] = &fstest.MapFile{Data: []byte(addNote)}
	if r, err = versions.New(t.Context(), versions.Config{Router: s.router, Files: all}); err != nil {
		t.Fatal(err)
	}
	if err := r.Up(t.Context(), 0); !errors.Is(err, versions.ErrOrder) {
		t.Error(err)
	}
	delete(all, "00005_shop.sql")
	if r, err = versions.New(t.Context(), versions.Config{Router: s.router, Files: all}); err != nil {
		t.Fatal(err)
	}
	if err := r.Up(t.Context(), 0); !errors.Is(err, versions.ErrOrder) {
		t.Error(err)
	}
	if got := states(t, r); got != "3: pending 0/2 pending 0/1; 5: applied 0/0 applied 0/0; " {
		t.Error(got)
	}
}

// Only one database has the version, so that the others cannot show that a file is missing.
func TestAVersionWithoutAFileIsNotComplete(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop)
	s.must(t, r.Up(t.Context(), 0))
	_, err := s.dbs["west"].ExecContext(t.Context(), "INSERT INTO shardid_ddl SELECT 7, direction, statement, place, 'began', fingerprint, before_ddl, '', noted_at FROM shardid_ddl WHERE statement = 1")
	s.must(t, err)
	m, err := r.Status(t.Context())
	s.must(t, err)
	if last := m.Lines[len(m.Lines)-1]; m.Complete() || last.Version != 7 || last.Cells["west"].State != versions.InFlight {
		t.Errorf("complete is %t: %+v", m.Complete(), m.Lines)
	}
}

func TestAShardThatFailsIsFinishedByTheNextRun(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop, addNote)
	_, err := s.dbs["west"].ExecContext(t.Context(), "CREATE TABLE items_1 (x)")
	s.must(t, err)
	if err := r.Up(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "west/items_1") {
		t.Fatal(err)
	}
	if got := states(t, r); got != "1: applied 7/7 pending 0/4; 2: pending 0/2 pending 0/1; " {
		t.Error(got)
	}
	_, err = s.dbs["west"].ExecContext(t.Context(), "DROP TABLE items_1")
	s.must(t, err)
	s.must(t, r.Up(t.Context(), 0))
	if got := states(t, r); got != "1: applied 7/7 applied 4/4; 2: applied 2/2 applied 1/1; " {
		t.Error(got)
	}
}

func TestAVersionThatFailsOnTheFirstDatabaseIsSentToNoOther(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop, "-- +goose Up\nALTER TABLE orders ADD COLUMN user_id BIGINT;")
	if err := r.Up(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "east") || strings.Contains(err.Error(), "west") {
		t.Error(err)
	}
	if _, err := r.Down(t.Context()); err != nil {
		t.Error(err) // version 1, as nothing of 2 is noted
	}
}

func TestWhileADatabaseCannotBeReachedNoVersionIsBegun(t *testing.T) {
	s := newShop(t)
	s.must(t, s.runner(t, makeShop).Up(t.Context(), 0))
	west := s.dbs["west"]
	s.dbs["west"] = sql.OpenDB(gone{})
	s.route(t)
	r := s.runner(t, makeShop, addNote)
	var unreachable *versions.UnreachableError
	if err := r.Up(t.Context(), 0); !errors.As(err, &unreachable) || unreachable.Database != "west" || !errors.Is(err, errGone) {
		t.Error(err)
	}
	if _, err := r.Down(t.Context()); !errors.As(err, &unreachable) {
		t.Error(err)
	}
	if got := states(t, r); got != "1: applied 7/7 ? 0/0; 2: pending 0/2 ? 0/0; " {
		t.Error(got)
	}
	if err := r.Adopt(t.Context(), 2); !errors.As(err, &unreachable) {
		t.Error(err)
	}
	s.dbs["west"] = west
	s.route(t)
	s.must(t, s.runner(t, makeShop, addNote).Up(t.Context(), 0))
}

func TestDriftNamesTheShardThatDiffers(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop)
	s.must(t, r.Up(t.Context(), 0))
	for _, text := range []string{"DROP INDEX orders_user_orders_2", "CREATE INDEX mine ON regions (id)"} {
		_, err := s.dbs["east"].ExecContext(t.Context(), text)
		s.must(t, err)
	}
	drift, err := r.Drift(t.Context())
	s.must(t, err)
	var said []string
	for _, d := range drift {
		said = append(said, d.String())
	}
	want := []string{
		"east/orders_2 lacks what most others have: CREATE INDEX orders_user ON orders ( user_id )",
		"east/regions has what most others lack: CREATE INDEX mine ON regions ( id )",
	}
	if !slices.Equal(said, want) && !(len(said) == 2 && said[0] == want[0] && strings.Contains(said[1], "west/regions lacks")) {
		t.Errorf("%q", said)
	}
	if err := r.Adopt(t.Context(), 1); !errors.Is(err, versions.ErrDiffers) {
		t.Error(err)
	}
}

func TestIndexesThatGORMNamesAreNoDrift(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, makeShop)
	s.must(t, r.Up(t.Context(), 0))
	for _, at := range s.router.Targets("orders") {
		_, err := s.dbs[at.DB].ExecContext(t.Context(), fmt.Sprintf("CREATE INDEX idx_%s_user_id ON %[1]s (user_id)", at.Table))
		s.must(t, err)
	}
	drift, err := r.Drift(t.Context())
	s.must(t, err)
	if len(drift) > 0 {
		t.Errorf("%q", drift)
	}
}

func TestTablesThatWereMadeOtherwiseAreAdopted(t *testing.T) {
	s := newShop(t)
	s.must(t, s.runner(t, makeShop).Up(t.Context(), 0))
	for _, db := range s.dbs {
		_, err := db.ExecContext(t.Context(), "DROP TABLE shardid_ddl")
		s.must(t, err)
	}
	r := s.runner(t, makeShop, addNote)
	s.must(t, r.Adopt(t.Context(), 1))
	s.must(t, r.Up(t.Context(), 0))
	if got := states(t, r); got != "1: applied 7/7 applied 4/4; 2: applied 2/2 applied 1/1; " {
		t.Error(got)
	}
	if err := r.Adopt(t.Context(), 7); !errors.Is(err, versions.ErrFiles) {
		t.Error(err)
	}
}

func TestAVersionWithoutDownIsNotUndone(t *testing.T) {
	s := newShop(t)
	r := s.runner(t, "-- +goose Up\nCREATE TABLE orders (id BIGINT);")
	s.must(t, r.Up(t.Context(), 0))
	if _, err := r.Down(t.Context()); !errors.Is(err, versions.ErrNoDown) {
		t.Error(err)
	}
}

func TestSeveralRunnersAtOnceRunEachStatementOnce(t *testing.T) {
	s := newShop(t)
	var mu sync.Mutex
	sent := 0
	var wg sync.WaitGroup
	for range 4 {
		r, err := versions.New(t.Context(), versions.Config{Router: s.router, Files: files(makeShop, addNote), Observe: func(versions.Step) {
			mu.Lock()
			defer mu.Unlock()
			sent++
		}})
		s.must(t, err)
		wg.Go(func() {
			if err := r.Up(context.WithoutCancel(t.Context()), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sent != 14 {
		t.Errorf("%d statements were done", sent)
	}
}
