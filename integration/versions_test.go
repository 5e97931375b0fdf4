// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

// versioned are the files of a shop on two databases, and what they are run by.
type versioned struct {
	dbs   sharding.DBs
	files fstest.MapFS
	on    dialect.Server
}

// openByName opens a database of a server by its name.
type openByName = func(t testing.TB, name string) *sql.DB

func onEachServer(t *testing.T, test func(*testing.T, openByName)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, server.ShareMariaDB(t).Open) })
	t.Run("MySQL", func(t *testing.T) { test(t, server.ShareMySQL(t).Open) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, server.SharePostgres(t).Open) })
}

const firstVersion = `CREATE TABLE regions (id BIGINT PRIMARY KEY);
CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, region_id BIGINT, CONSTRAINT in_region FOREIGN KEY (region_id) REFERENCES regions (id));
CREATE TABLE items (id BIGINT PRIMARY KEY, order_id BIGINT, user_id BIGINT NOT NULL, CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id));
CREATE INDEX orders_user ON orders (user_id);`

func newVersioned(t *testing.T, open openByName) *versioned {
	t.Helper()
	v := &versioned{dbs: sharding.DBs{"east": open(t, "ddl_east"), "west": open(t, "ddl_west")}, files: fstest.MapFS{}}
	var err error
	if v.on, err = dialect.Detect(t.Context(), v.dbs["east"]); err != nil {
		t.Fatal(err)
	}
	drop := "DROP INDEX orders_user"
	if v.on.Name() == "mysql" {
		drop += " ON orders"
	}
	v.file(1, firstVersion, drop+";\nDROP TABLE items;\nDROP TABLE orders;\nDROP TABLE regions;")
	v.file(2, "ALTER TABLE orders ADD note VARCHAR(20), ADD CONSTRAINT some CHECK (id > 0);", "ALTER TABLE orders DROP CONSTRAINT some, DROP COLUMN note;")
	return v
}

func (v *versioned) file(number int, up, down string) {
	text := "-- +goose Up\n" + up + "\n-- +goose Down\n" + down + "\n"
	if down == "" {
		text = "-- +goose NO TRANSACTION\n-- +goose Up\n" + up + "\n"
	}
	v.files[fmt.Sprintf("%05d_shop.sql", number)] = &fstest.MapFile{Data: []byte(text)}
}

func (v *versioned) runner(t *testing.T) *versions.Runner {
	t.Helper()
	spread := func(pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"east", "west"}, 4, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	router, err := sharding.New(v.dbs,
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: spread("orders_%d"), Group: "shop"},
		sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(4), Map: spread("items_%d"), Group: "shop"},
		sharding.Broadcast("regions"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := versions.New(t.Context(), versions.Config{Router: router, Files: v.files})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (v *versioned) states(t *testing.T) string {
	t.Helper()
	m, err := v.runner(t).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, line := range m.Lines {
		for _, db := range m.Databases {
			all = append(all, fmt.Sprintf("%s %d/%d", line.Cells[db].State, line.Cells[db].Done, line.Cells[db].Steps))
		}
	}
	return strings.Join(all, ", ")
}

// exec runs a statement in the western database.
func (v *versioned) exec(t *testing.T, statement string) {
	t.Helper()
	v.execIn(t, "west", statement)
}

func (v *versioned) execIn(t *testing.T, name, statement string) {
	t.Helper()
	if _, err := v.dbs[name].ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// dropIndex drops the index of a physical table.
func (v *versioned) dropIndex(index, table string) string {
	if v.on.Name() == "mysql" {
		return "DROP INDEX " + index + " ON " + table
	}
	return "DROP INDEX " + index + "_" + table
}

func TestVersionsAreRunAndUndoneOnEachServer(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		for range 2 {
			r := v.runner(t)
			if err := r.Up(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if got, want := v.states(t), "applied 7/7, applied 7/7, applied 2/2, applied 2/2"; got != want {
				t.Errorf("it is %s, not %s", got, want)
			}
			v.exec(t, "INSERT INTO orders_3 (id, user_id, note) VALUES (1, 3, 'x')")
			v.exec(t, "INSERT INTO items_3 (id, order_id, user_id) VALUES (1, 1, 3)")
			if _, err := v.dbs["west"].ExecContext(t.Context(), "INSERT INTO items_1 (id, order_id, user_id) VALUES (1, 1, 1)"); err == nil {
				t.Error("a foreign key leads to another shard")
			}
			if drift, err := r.Drift(t.Context()); err != nil || len(drift) > 0 {
				t.Errorf("%v, %v", drift, err)
			}
			for want := int64(2); want >= 0; want-- {
				if undone, err := r.Down(t.Context()); err != nil || undone != want {
					t.Fatal(undone, err)
				}
			}
		}
	})
}

// Each database of PostgreSQL has its own enumerated types, whose names are equal.
func TestDriftNamesAnEnumeratedTypeOfPostgresThatDiffers(t *testing.T) {
	p := server.SharePostgres(t)
	dbs := sharding.DBs{"east": p.Open(t, "drift_east"), "west": p.Open(t, "drift_west")}
	for _, db := range dbs {
		database.Exec(t, db, "CREATE TYPE mood AS ENUM ('sad', 'happy')")
	}
	tables, err := sharding.Spread([]string{"east", "west"}, 2, "notes_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "user_id", Rule: sharding.Low(1), Map: tables})
	if err != nil {
		t.Fatal(err)
	}
	r, err := versions.New(t.Context(), versions.Config{Router: router, Files: fstest.MapFS{
		"1_notes.sql": {Data: []byte("-- +goose Up\nCREATE TABLE notes (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, m mood);\n-- +goose Down\nDROP TABLE notes;\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Up(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, dbs["west"], "ALTER TYPE mood ADD VALUE 'calm'")
	if drift, err := r.Drift(t.Context()); err != nil || len(drift) == 0 || !strings.Contains(fmt.Sprint(drift), "'calm'") {
		t.Errorf("%v, %v", drift, err)
	}
	database.Exec(t, dbs["east"], "ALTER TYPE mood ADD VALUE 'calm'")
	if drift, err := r.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Errorf("%v, %v", drift, err)
	}
}

// A shard was changed by hand: the version stops there, is done on the others, and ends
// when the shard is mended.
func TestAVersionIsFinishedAfterAShardHasFailed(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		r := v.runner(t)
		if err := r.Up(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		v.exec(t, "ALTER TABLE orders_3 ADD note VARCHAR(20)")
		if err := r.Up(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "west/orders_3") {
			t.Fatal(err)
		}
		drift, err := r.Drift(t.Context())
		if err != nil || len(drift) == 0 {
			t.Error(drift, err)
		}
		v.exec(t, "ALTER TABLE orders_3 DROP COLUMN note")
		if err := r.Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got, want := v.states(t), "applied 7/7, applied 7/7, applied 2/2, applied 2/2"; got != want {
			t.Errorf("it is %s, not %s", got, want)
		}
	})
}

// What was in flight when a runner died is recognised where DDL is not transactional.
func TestWhatWasInFlightIsRecognisedByTheDefinition(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		if v.on.Name() == "postgres" {
			v.file(3, "CREATE INDEX CONCURRENTLY later ON orders (id, user_id);", "")
		} else {
			v.file(3, "CREATE INDEX later ON orders (id, user_id);", "")
		}
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		begin := func() { // as a kill leaves it
			v.exec(t, "UPDATE shardid_ddl SET state = 'began', after_ddl = '' WHERE version = 3 AND place = 'orders_3'")
		}
		begin() // the statement was executed
		if got := v.states(t); !strings.HasSuffix(got, "in flight 1/2") {
			t.Error(got)
		}
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		begin() // it was not
		v.exec(t, v.dropIndex("later", "orders_3"))
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if drift, err := v.runner(t).Drift(t.Context()); err != nil || len(drift) > 0 {
			t.Errorf("%v, %v", drift, err)
		}
		begin() // it was, and the other shards have not begun
		for name, tables := range map[string][]string{"east": {"orders_0", "orders_2"}, "west": {"orders_1"}} {
			for _, table := range tables {
				v.execIn(t, name, v.dropIndex("later", table))
			}
			v.execIn(t, name, "DELETE FROM shardid_ddl WHERE version = 3 AND state <> 'began'")
		}
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got := v.states(t); !strings.HasSuffix(got, "applied 2/2, applied 2/2") {
			t.Error(got)
		}
		begin() // it cannot be told: somebody else has changed the table
		v.exec(t, "ALTER TABLE orders_3 ADD stray BIGINT")
		if err := v.runner(t).Up(t.Context(), 0); !errors.Is(err, versions.ErrUnclear) || !strings.Contains(err.Error(), "shardid ddl resolve --version 3 --table west/orders_3 ") {
			t.Fatal(err)
		}
		at := sharding.Target{DB: "west", Table: "orders_3"}
		if err := v.runner(t).Resolve(t.Context(), 3, at, true); err != nil {
			t.Fatal(err)
		}
		if got := v.states(t); !strings.HasSuffix(got, "applied 2/2") {
			t.Error(got)
		}
		if err := v.runner(t).Resolve(t.Context(), 3, at, false); err == nil {
			t.Error("nothing is in flight, and it was resolved")
		}
	})
}

// A runner died during its first version: nothing but the statement that was in flight is there to
// compare with.
func TestTheVeryFirstStatementsAreRecognisedToo(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		tables, _, _ := strings.Cut(firstVersion, "CREATE INDEX")
		v.file(1, tables, "") // without a transaction
		if err := v.runner(t).Up(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		beganWith := func(statement int, place string, left ...string) { // as a kill in the east leaves it
			v.exec(t, "DROP TABLE items_1, items_3, orders_1, orders_3, regions, shardid_ddl")
			for _, table := range []string{"items_0", "items_2", "orders_0", "orders_2", "regions"} {
				if !slices.Contains(left, table) {
					v.execIn(t, "east", "DROP TABLE "+table)
				}
			}
			v.execIn(t, "east", fmt.Sprintf("DELETE FROM shardid_ddl WHERE statement > %d OR statement = %[1]d AND place <> '%s'", statement, place))
			v.execIn(t, "east", fmt.Sprintf("UPDATE shardid_ddl SET state = 'began', after_ddl = '' WHERE statement = %d", statement))
			if err := v.runner(t).Up(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got := v.states(t); !strings.HasPrefix(got, "applied 5/5, applied 5/5") {
				t.Error(got)
			}
		}
		beganWith(3, "items_0", "regions", "orders_0", "orders_2", "items_0")
		beganWith(3, "items_2", "regions", "orders_0", "orders_2", "items_2")
		beganWith(2, "orders_0", "regions", "orders_0")
		beganWith(1, "regions", "regions") // of which the east has this one
	})
}

// Nothing is left to compare a table with that was dropped, and need not be.
func TestATableThatNoLongerExistsCountsAsDropped(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		v.files = fstest.MapFS{"00001_region.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE regions (id BIGINT PRIMARY KEY);\n-- +goose Down\nDROP TABLE regions;\n")}}
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		fingerprint := fmt.Sprintf("%x", sha256.Sum256([]byte("DROP TABLE regions")))
		for _, name := range []string{"east", "west"} {
			v.execIn(t, name, "INSERT INTO shardid_ddl SELECT version, 'down', statement, place, 'began', '"+fingerprint+"', after_ddl, '', noted_at FROM shardid_ddl")
			v.execIn(t, name, "DROP TABLE regions")
		}
		if undone, err := v.runner(t).Down(t.Context()); err != nil || undone != 1 {
			t.Error(undone, err)
		}
		if got := v.states(t); got != "pending 0/1, pending 0/1" {
			t.Error(got)
		}
	})
}

// A lock is held as long as the server executes what a killed runner has sent.
func TestARunnerGivesUpWhileAnotherHasTheLock(t *testing.T) {
	onEachServer(t, func(t *testing.T, open openByName) {
		v := newVersioned(t, open)
		conn, err := v.dbs["east"].Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock := "SELECT pg_advisory_lock(hashtext('shardid_ddl'))::text"
		if v.on.Name() == "mysql" {
			lock = "SELECT GET_LOCK(CONCAT('shardid_ddl.', LEFT(SHA2(DATABASE(), 256), 48)), 0)"
		}
		var got sql.NullString
		if err := conn.QueryRowContext(t.Context(), lock).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if err := v.runner(t).Up(t.Context(), 0); !errors.Is(err, versions.ErrLocked) {
			t.Error(err)
		}
		if states := v.states(t); strings.Contains(states, "applied") {
			t.Error(states)
		}
		unlock := "SELECT pg_advisory_unlock(hashtext('shardid_ddl'))"
		if v.on.Name() == "mysql" {
			unlock = "SELECT RELEASE_LOCK(CONCAT('shardid_ddl.', LEFT(SHA2(DATABASE(), 256), 48)))"
		}
		if err := conn.QueryRowContext(t.Context(), unlock).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if err := v.runner(t).Up(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
