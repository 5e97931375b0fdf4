// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/compat"
)

// shardedOrders is a router over a and b, with orders_0 to orders_3, which exist.
func shardedOrders(t *testing.T, dbs sharding.DBs, rule sharding.Rule, columns string, also ...sharding.Alt) *sharding.Router {
	t.Helper()
	layout, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: rule, Map: layout, Also: also})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range r.Targets("orders") {
		database.Exec(t, r.DB(target.DB), "CREATE TABLE "+target.Table+" ("+columns+")")
	}
	return r
}

// diagnosis is the findings as "severity code place: examples", sorted.
func diagnosis(t *testing.T, r *sharding.Router) []string {
	t.Helper()
	d, err := schema.Doctor(t.Context(), r, schema.DoctorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range d.Findings {
		words := []string{string(f.Severity), string(f.Code), f.Place.String()}
		for _, e := range f.Examples {
			words = append(words, strings.TrimSuffix(e.Key+">"+e.Belongs, ">"))
		}
		all = append(all, strings.Join(words, " "))
	}
	slices.Sort(all)
	return all
}

func expectDiagnosis(t *testing.T, r *sharding.Router, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := diagnosis(t, r); !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// doctorDatabases are two databases of each kind of server.
func doctorDatabases(t *testing.T) map[string]sharding.DBs {
	t.Helper()
	m, p := server.RunMariaDB(t), server.RunPostgres(t)
	return map[string]sharding.DBs{
		"MariaDB":    {"a": m.Open(t, "a"), "b": m.Open(t, "b")},
		"PostgreSQL": {"a": p.Open(t, "a"), "b": p.Open(t, "b")},
	}
}

// Doctor finds exactly the misplaced rows, whether the database counts them or the rule places
// each row, and also at the limits of the type.
func TestDoctorFindsMisplacedRowsUnderEveryRule(t *testing.T) {
	users := []int64{9223372036854775807, -9223372036854775808, 1 << 40, -1 << 40}
	for i := range int64(200) {
		users = append(users, i-100)
	}
	rules := map[string]sharding.Rule{
		"low": sharding.Low(10), "mod": sharding.Mod(12), "offset": sharding.OffsetStep(2, 4),
		"bits": sharding.Bits(3, 4), "middle": sharding.Bits(33, 2), "hash": sharding.Hash(8), "ranges": sharding.Ranges(-20, 0, 20),
	}
	for kind, dbs := range doctorDatabases(t) {
		for name, rule := range rules {
			t.Run(kind+" "+name, func(t *testing.T) {
				r := shardedOrders(t, dbs, rule, "id bigint PRIMARY KEY, user_id bigint")
				wrong := scatter(t, r, users)
				d, err := schema.Doctor(t.Context(), r, schema.DoctorConfig{})
				if err != nil {
					t.Fatal(err)
				}
				found := int64(0)
				for _, c := range d.Targets {
					found += c.Misplaced
				}
				if int(found) != len(wrong) || found == 0 {
					t.Errorf("%d rows are misplaced, %d were found", len(wrong), found)
				}
				for _, f := range d.Findings {
					for _, e := range f.Examples {
						if f.Code != schema.MisplacedRows || wrong[e.Key] != e.Belongs {
							t.Errorf("%s of %+v belongs to %s", e.Key, f, wrong[e.Key])
						}
					}
				}
				for _, target := range r.Targets("orders") {
					database.Exec(t, r.DB(target.DB), "DROP TABLE "+target.Table)
				}
			})
		}
	}
}

// scatter puts rows for users into all tables, and returns where those belong that
// are in the wrong one.
func scatter(t *testing.T, r *sharding.Router, users []int64) map[string]string {
	t.Helper()
	targets, wrong := r.Targets("orders"), map[string]string{}
	for i, user := range users {
		home, err := r.Target("orders", user)
		if err != nil {
			t.Fatal(err)
		}
		target := targets[i/len(targets)%len(targets)] // neighbours on one, as no rule has them
		if target != home {
			wrong[strconv.FormatInt(user, 10)] = home.String()
		}
		database.Exec(t, r.DB(target.DB), fmt.Sprintf("INSERT INTO %s VALUES (%d, %d)", target.Table, i, user))
	}
	return wrong
}

func TestDoctorFindsDriftGenesAndRowsWithoutAKey(t *testing.T) {
	for kind, dbs := range doctorDatabases(t) {
		t.Run(kind, func(t *testing.T) {
			r := shardedOrders(t, dbs, sharding.Low(4), "id bigint PRIMARY KEY, user_id bigint, note varchar(20)",
				sharding.Alt{Column: "id", Rule: sharding.Low(4), From: 1000})
			a, b := dbs["a"], dbs["b"]
			database.Exec(t, a, "INSERT INTO orders_0 VALUES (5, 16, ''), (1600, 16, ''), (1601, 16, ''), (1602, NULL, '')")
			for i, db := range []*sql.DB{a, b} {
				database.Exec(t, db, fmt.Sprintf("CREATE UNIQUE INDEX n%d ON orders_%[1]d (note, id)", i))
				database.Exec(t, db, fmt.Sprintf("CREATE INDEX u%d ON orders_%[1]d (user_id)", i))
			}
			database.Exec(t, b, "ALTER TABLE orders_1 ADD extra int")
			database.Exec(t, a, "ALTER TABLE orders_2 DROP COLUMN note")
			database.Exec(t, a, "ALTER TABLE orders_2 ADD note varchar(30) NOT NULL")
			database.Exec(t, b, "DROP TABLE orders_3")
			expectDiagnosis(t, r,
				"error gene_differs a/orders_0 1601", "error unplaceable_rows a/orders_0 NULL", "error missing_table b/orders_3",
				"warning extra_column b/orders_1", "error column_differs a/orders_2",
				"error missing_index a/orders_2", "warning missing_index a/orders_2")
		})
	}
}

// Each database of PostgreSQL has its own enumerated types and domains, whose names are equal.
func TestDoctorFindsTypesOfPostgresThatDiffer(t *testing.T) {
	p := server.SharePostgres(t)
	dbs := sharding.DBs{"a": p.Open(t, "types_a"), "b": p.Open(t, "types_b")}
	for _, db := range dbs {
		database.Exec(t, db, "CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE size AS ENUM ('s', 'm'); CREATE DOMAIN price AS numeric(12,2) CHECK (VALUE >= 0)")
	}
	r := shardedOrders(t, dbs, sharding.Low(2), "id bigint PRIMARY KEY, user_id bigint, m mood NOT NULL, sizes size[], p price")
	expectDiagnosis(t, r)
	for _, change := range []string{"ALTER TYPE mood ADD VALUE 'calm' BEFORE 'happy'", "ALTER TYPE size ADD VALUE 'l'", "ALTER DOMAIN price SET NOT NULL"} {
		database.Exec(t, dbs["a"], change)
		if got := diagnosis(t, r); len(got) != 2 || !strings.HasPrefix(got[0], "error column_differs ") {
			t.Errorf("%s in a alone: %v", change, got)
		}
		database.Exec(t, dbs["b"], change)
		expectDiagnosis(t, r)
	}
}

// MySQL 8 shows no widths of whole numbers, which have no effect without ZEROFILL, and MariaDB and MySQL 5.7 do.
func TestDoctorIgnoresTheDisplayWidthsOfServers(t *testing.T) {
	r := shardedOrders(t, sharding.DBs{"a": server.ShareMariaDB(t).Open(t, "a"), "b": server.ShareMySQL(t).Open(t, "b")}, sharding.Low(2),
		"id bigint unsigned PRIMARY KEY, user_id bigint, qty smallint(4) NOT NULL, yes tinyint(1), y year, d decimal(10,2), z int(6) zerofill, note varchar(20) COLLATE utf8mb4_bin, made datetime(3)")
	expectDiagnosis(t, r)
	database.Exec(t, r.DB("a"), "ALTER TABLE orders_0 MODIFY z int(7) zerofill")
	expectDiagnosis(t, r, "error column_differs a/orders_0")
}

// A server must number rows as the rule says. The test uses real
// counters, because only they show it.
func TestDoctorComparesTheStepsOfServersWithTheRule(t *testing.T) {
	m := server.RunMariaDB(t, "--auto-increment-increment=2", "--auto-increment-offset=1")
	n := server.RunMariaDB(t, "--auto-increment-increment=2", "--auto-increment-offset=2")
	first, second := m.Open(t, "steps"), n.Open(t, "steps")
	for name, db := range map[string]*sql.DB{"events_0": first, "events_1": second, "orders_0": first, "orders_1": second} {
		database.Exec(t, db, "CREATE TABLE "+name+" (id bigint AUTO_INCREMENT PRIMARY KEY)")
	}
	table := func(name string, rule sharding.Rule) sharding.Table {
		layout, err := sharding.MapOf(sharding.Target{DB: "a", Table: name + "_0"}, sharding.Target{DB: "b", Table: name + "_1"})
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: "id", Rule: rule, Map: layout}
	}
	look := func(dbs sharding.DBs, want ...string) {
		t.Helper()
		r, err := sharding.New(dbs, table("events", sharding.OffsetStep(1, 2)), table("orders", sharding.Low(1)))
		if err != nil {
			t.Fatal(err)
		}
		expectDiagnosis(t, r, append(want, "warning shard_numbers_rows a/orders_0", "warning shard_numbers_rows b/orders_1")...)
	}
	look(sharding.DBs{"a": first, "b": second})
	database.Exec(t, second, "SET GLOBAL auto_increment_offset = 1")
	look(sharding.DBs{"a": first, "b": second}, "error wrong_numbering b/events_1")

	database.Exec(t, first, "ALTER TABLE events_0 AUTO_INCREMENT = 2000")
	r, err := sharding.New(sharding.DBs{"a": first, "b": second},
		table("events", sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: 1000, Slots: []sharding.Slot{0, 1}})))
	if err != nil {
		t.Fatal(err)
	}
	expectDiagnosis(t, r, "error epoch_unarmed a/events_0")
	database.Exec(t, second, "SET GLOBAL auto_increment_offset = 2")
	database.Exec(t, second, "ALTER TABLE events_1 AUTO_INCREMENT = 1000")
	expectDiagnosis(t, r)
}

func TestDoctorComparesSequencesWithTheRule(t *testing.T) {
	p := server.RunPostgres(t)
	db := p.Open(t, "steps")
	database.Exec(t, db, "CREATE TABLE events_0 (id bigint GENERATED BY DEFAULT AS IDENTITY (START 1 INCREMENT 2) PRIMARY KEY)")
	database.Exec(t, db, "CREATE TABLE events_1 (id bigint GENERATED BY DEFAULT AS IDENTITY (START 1 INCREMENT 2) PRIMARY KEY)")
	layout, err := sharding.MapOf(sharding.Target{DB: "a", Table: "events_0"}, sharding.Target{DB: "a", Table: "events_1"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "events", Key: "id", Rule: sharding.OffsetStep(1, 2), Map: layout})
	if err != nil {
		t.Fatal(err)
	}
	expectDiagnosis(t, r, "error wrong_numbering a/events_1")
	database.Exec(t, db, "ALTER SEQUENCE events_1_id_seq START 2 RESTART 2")
	expectDiagnosis(t, r)
}

// The rows that go-gorm/sharding loses: those of a key that was updated, those of
// negative keys, in tables of their own, and those of statements that it could not
// parse, in the table that bears the logical name.
func TestDoctorFindsTheRowsThatGoGormShardingMisplaces(t *testing.T) {
	db := server.RunMariaDB(t).Open(t, "shop")
	table, err := compat.Import("orders", "shop", compat.Config{ShardingKey: "user_id", NumberOfShards: 4, IDFrom: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"shop": db}, table)
	if err != nil {
		t.Fatal(err)
	}
	const node = 1 << 12
	for shard := range 4 {
		database.Exec(t, db, fmt.Sprintf("CREATE TABLE orders_%d (id bigint PRIMARY KEY, user_id bigint)", shard))
		for row := range 5 {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders_%d VALUES (%d, %d)", shard, 1<<50+shard*node+row, 100+4*row+shard))
		}
	}
	expectDiagnosis(t, r)
	database.Exec(t, db, "UPDATE orders_3 SET user_id = 108 WHERE user_id = 103")
	database.Exec(t, db, fmt.Sprintf("UPDATE orders_2 SET id = %d WHERE user_id = 102", 1<<50+node+77))
	database.Exec(t, db, "CREATE TABLE `orders_-1` LIKE orders_0")
	database.Exec(t, db, "INSERT INTO `orders_-1` VALUES (1, -1)")
	database.Exec(t, db, "CREATE TABLE orders LIKE orders_0")
	database.Exec(t, db, "INSERT INTO orders VALUES (2, 6)")
	expectDiagnosis(t, r,
		"error misplaced_rows shop/orders_3 108>shop/orders_0", fmt.Sprintf("error gene_differs shop/orders_3 %d", 1<<50+3*node),
		fmt.Sprintf("error gene_differs shop/orders_2 %d", 1<<50+node+77),
		"error stray_table shop/orders_-1", "error logical_table shop/orders")
}

// MariaDB hides what a user may not read; the other tables are looked at all the
// same.
func TestDoctorNamesWhatItMayNotRead(t *testing.T) {
	m := server.RunMariaDB(t)
	r := shardedOrders(t, sharding.DBs{"a": m.Open(t, "a"), "b": m.Open(t, "b")}, sharding.Low(2), "id bigint PRIMARY KEY, user_id bigint")
	database.Exec(t, r.DB("a"), "CREATE USER reader IDENTIFIED BY 'pw'")
	database.Exec(t, r.DB("a"), "GRANT SELECT ON a.orders_0 TO reader")
	database.Exec(t, r.DB("a"), "GRANT SELECT (id) ON a.orders_2 TO reader")
	limited, err := sql.Open("mysql", strings.Replace(m.DSN("a"), "root", "reader:pw", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = limited.Close() }()
	read, err := sharding.New(sharding.DBs{"a": limited, "b": r.DB("b")}, r.Tables()[0])
	if err != nil {
		t.Fatal(err)
	}
	expectDiagnosis(t, read, "error missing_column a/orders_2")
}

func TestDoctorReportsWorkerIDsWithoutAGuard(t *testing.T) {
	for name, run := range map[string]func(t *testing.T) func(tb testing.TB, database string) *sql.DB{
		"MariaDB":    func(t *testing.T) func(testing.TB, string) *sql.DB { t.Helper(); return server.RunMariaDB(t).Open },
		"MySQL":      func(t *testing.T) func(testing.TB, string) *sql.DB { t.Helper(); return server.RunMySQL(t).Open },
		"PostgreSQL": func(t *testing.T) func(testing.TB, string) *sql.DB { t.Helper(); return server.RunPostgres(t).Open },
	} {
		t.Run(name, func(t *testing.T) {
			open := run(t)
			db := open(t, "ids")
			r := shardedOrders(t, sharding.DBs{"a": db, "b": open(t, "others")}, sharding.Low(2), "user_id bigint PRIMARY KEY")
			if err := schema.Apply(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			expectDiagnosis(t, r)
			store := database.StoreOn(t, db)
			startWith(t, store.WorkerNode("host", "1"))
			expectDiagnosis(t, r, "warning unguarded_node a/WORKER_NODE")
			startWith(t, store.GuardedWorkerNode("host", "1"))
			expectDiagnosis(t, r)
		})
	}
}

func TestDoctorReportsSegmentsWithoutAGuard(t *testing.T) {
	m := server.RunMariaDB(t)
	db := m.Open(t, "ids")
	r := shardedOrders(t, sharding.DBs{"a": db, "b": m.Open(t, "others")}, sharding.Low(2), "user_id bigint PRIMARY KEY")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	expectDiagnosis(t, r)
	store := database.StoreOn(t, db)
	database.Exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
	expectDiagnosis(t, r, "warning unguarded_segments a/leaf_alloc")
	if _, err := store.GuardedTag("orders").Reserve(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	expectDiagnosis(t, r)
	for _, theirs := range []string{"tiny_id_info", "cosid"} { // which no row of ours guards
		database.Exec(t, db, "CREATE TABLE "+theirs+" (id int)")
		expectDiagnosis(t, r)
		database.Exec(t, db, "INSERT INTO "+theirs+" VALUES (1)")
		expectDiagnosis(t, r, "warning unguarded_segments a/"+theirs)
		database.Exec(t, db, "DROP TABLE "+theirs)
	}
}

// startWith takes a worker id as a starting process does.
func startWith(t *testing.T, workers keygen.Assigner) {
	t.Helper()
	if _, err := workers.Acquire(t.Context(), keygen.Disposable()); err != nil {
		t.Fatal(err)
	}
}
