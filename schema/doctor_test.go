// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// testRouter is a router over SQLite files, and their databases.
type testRouter struct {
	*sharding.Router

	dbs sharding.DBs
}

// newTestRouter makes a router over the databases a and b.
func newTestRouter(t *testing.T, options ...sharding.Option) testRouter {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"a", "b"} { // nobody waits for their rows to be on the disk
		dbs[name] = open(t, "file:"+filepath.Join(t.TempDir(), name)+"?_pragma=synchronous(0)")
	}
	r, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	return testRouter{r, dbs}
}

// orders are four tables, orders_0 to orders_3, over a and b.
func orders(t *testing.T, rule sharding.Rule) sharding.Table {
	t.Helper()
	layout, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: "orders", Key: "user_id", Rule: rule, Map: layout}
}

// create makes every physical table of orders.
func (w testRouter) create(t *testing.T, columns string) {
	t.Helper()
	for _, target := range w.Targets("orders") {
		exec(t, w.dbs[target.DB], "CREATE TABLE "+target.Table+" ("+columns+")")
	}
}

// insert puts a row where its key belongs.
func (w testRouter) insert(t *testing.T, id, user any) {
	t.Helper()
	target, err := w.Target("orders", user)
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, target, id, user)
}

// put inserts a row into a table, whether it belongs there or not.
func (w testRouter) put(t *testing.T, target sharding.Target, id, user any) {
	t.Helper()
	if _, err := w.dbs[target.DB].ExecContext(t.Context(), "INSERT INTO "+target.Table+" (id, user_id) VALUES (?, ?)", id, user); err != nil {
		t.Fatal(err)
	}
}

func (w testRouter) doctor(t *testing.T, c schema.DoctorConfig) schema.Diagnosis {
	t.Helper()
	d, err := schema.Doctor(t.Context(), w.Router, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDoctorTellsOfEachTable(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(10)))
	w.create(t, plain)
	var reached []int
	total := 0
	w.doctor(t, schema.DoctorConfig{Observe: func(done, all int) { reached, total = append(reached, done), all }})
	if total < 2 || len(reached) != total || !slices.IsSorted(reached) || reached[0] != 1 || reached[total-1] != total {
		t.Errorf("%v of %d", reached, total)
	}
}

// say is the findings as "severity code place: examples", sorted.
func say(d schema.Diagnosis) []string {
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

func expect(t *testing.T, d schema.Diagnosis, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := say(d); !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		for _, f := range d.Findings {
			t.Log(f.Message)
		}
	}
}

const plain = "id INTEGER PRIMARY KEY, user_id INTEGER"

func TestDoctorFindsNothingInShardsThatAreRight(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(10)), sharding.Broadcast("regions"))
	w.create(t, plain)
	for _, db := range w.dbs {
		exec(t, db, "CREATE TABLE regions (id INTEGER PRIMARY KEY)")
	}
	for i := range 100 {
		w.insert(t, i, i-50)
	}
	d := w.doctor(t, schema.DoctorConfig{})
	expect(t, d)
	rows := int64(0)
	for _, c := range d.Targets {
		rows += c.Rows
		if !c.All && c.Physical != "regions" {
			t.Errorf("%v was not looked at whole", c)
		}
	}
	if rows != 100 || len(d.Targets) != 6 || !d.Healthy() {
		t.Errorf("%d rows in %d tables, healthy %v", rows, len(d.Targets), d.Healthy())
	}
}

// The result must not depend on whether the database counts or the rule places each row:
// both find exactly the rows that were put into wrong tables.
func TestDoctorFindsMisplacedRowsUnderEveryRule(t *testing.T) {
	for name, rule := range map[string]sharding.Rule{
		"low": sharding.Low(10), "mod": sharding.Mod(12), "offset": sharding.OffsetStep(2, 4), "bits": sharding.Bits(3, 4),
		"hash": sharding.Hash(8), "compat": sharding.Compat(4), "ranges": sharding.Ranges(-20, 0, 20),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestRouter(t, orders(t, rule))
			w.create(t, plain)
			targets := w.Targets("orders")
			wrong := map[string]string{}
			for i := range 400 {
				user := i - 200
				home, err := w.Target("orders", user)
				if err != nil { // Compat refuses some keys
					continue
				}
				target := targets[i/len(targets)%len(targets)] // neighbours on one, as no rule has them
				if target != home {
					wrong[strconv.Itoa(user)] = home.String()
				}
				w.put(t, target, i, user)
			}
			d := w.doctor(t, schema.DoctorConfig{})
			misplaced := 0
			for _, c := range d.Targets {
				misplaced += int(c.Misplaced)
			}
			if misplaced != len(wrong) || misplaced == 0 {
				t.Errorf("%d rows are misplaced, %d were found", len(wrong), misplaced)
			}
			for _, f := range d.Findings {
				if f.Code != schema.MisplacedRows || len(f.Examples) == 0 {
					t.Errorf("%+v", f)
				}
				for _, e := range f.Examples {
					if wrong[e.Key] != e.Belongs {
						t.Errorf("%s belongs to %s, not %s", e.Key, wrong[e.Key], e.Belongs)
					}
				}
			}
		})
	}
}

func TestDoctorFindsRowsWithoutAKey(t *testing.T) {
	for _, rule := range []sharding.Rule{sharding.Low(4), sharding.Hash(4)} {
		w := newTestRouter(t, orders(t, rule))
		w.create(t, "id INTEGER PRIMARY KEY, user_id")
		w.put(t, w.Targets("orders")[1], 1, nil)
		w.put(t, w.Targets("orders")[1], 2, "seven")
		d := w.doctor(t, schema.DoctorConfig{})
		if len(d.Findings) != 1 || d.Findings[0].Code != schema.UnplaceableRows || len(d.Findings[0].Examples) != 2 {
			t.Errorf("%v", say(d))
		}
	}
}

func TestDoctorDoesNotReadTheRowsOfChildren(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(4)))
	w.create(t, "id INTEGER PRIMARY KEY, user_id")
	w.put(t, w.Targets("orders")[1], 1, nil)
	w.put(t, w.Targets("orders")[1], 2, 7)
	exec(t, w.dbs["a"], "ALTER TABLE orders_0 RENAME user_id TO parent")
	d := w.doctor(t, schema.DoctorConfig{MaxRows: -1, Children: []string{"Orders", "others"}})
	expect(t, d, "error missing_column a/orders_0", "warning extra_column a/orders_0")
	for _, c := range d.Targets {
		if c.Rows != 0 || c.All {
			t.Errorf("%+v was read", c)
		}
	}
}

// A slot that is being moved has rows in two places.
func TestDoctorAcceptsRowsOfMovingSlotsInBothPlaces(t *testing.T) {
	table := orders(t, sharding.Low(4))
	table.Map = table.Map.Sharing(5)
	w := newTestRouter(t, table)
	w.create(t, plain)
	w.put(t, w.Targets("orders")[3], 1, 5)
	w.put(t, w.Targets("orders")[3], 2, 9)
	expect(t, w.doctor(t, schema.DoctorConfig{}), "error misplaced_rows b/orders_3 9>b/orders_1")
}

func TestDoctorComparesEmbeddedSlotsFromTheBoundaryOn(t *testing.T) {
	for _, rule := range []sharding.Rule{sharding.Low(4), sharding.Hash(16)} {
		table := orders(t, rule)
		table.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(4), From: 1000}}
		w := newTestRouter(t, table)
		w.create(t, plain)
		for user := range 40 {
			slot, err := rule.Slot(user)
			if err != nil {
				t.Fatal(err)
			}
			w.insert(t, user, user)                       // before there were genes
			w.insert(t, 1600+16*user+int(slot), user)     // with the user's
			w.insert(t, 160000+16*user+int(slot^1), user) // with another's
		}
		d := w.doctor(t, schema.DoctorConfig{})
		found := 0
		for _, f := range d.Findings {
			if f.Code != schema.GeneDiffers {
				t.Errorf("%+v", f)
			}
			for _, e := range f.Examples {
				if !strings.HasPrefix(e.Key, "160") {
					t.Errorf("%+v", e)
				}
			}
			found++
		}
		if found != 4 {
			t.Errorf("%v", say(d))
		}
	}
}

func TestDoctorFindsTextKeysThatAreNotComparedByTheirBytes(t *testing.T) {
	table := orders(t, sharding.HashText(4))
	table.Also = []sharding.Alt{{Column: "id", Rule: sharding.HashText(4), From: 1000}}
	w := newTestRouter(t, table)
	for i, types := range []string{"TEXT, user_id TEXT", "TEXT COLLATE NOCASE, user_id TEXT", "TEXT, user_id TEXT COLLATE RTRIM", "TEXT COLLATE BINARY, user_id BLOB"} {
		target := w.Targets("orders")[i]
		exec(t, w.dbs[target.DB], "CREATE TABLE "+target.Table+" (id "+types+")")
	}
	expect(t, w.doctor(t, schema.DoctorConfig{}), "warning collation b/orders_1", "warning collation a/orders_2", "error column_differs b/orders_3")
	integers := newTestRouter(t, orders(t, sharding.Low(4)))
	integers.create(t, "id INTEGER PRIMARY KEY, user_id TEXT COLLATE NOCASE")
	expect(t, integers.doctor(t, schema.DoctorConfig{}))
}

func TestDoctorFindsDrift(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(4)), sharding.Broadcast("regions"))
	w.create(t, plain+", n TEXT NOT NULL")
	for _, target := range w.Targets("orders")[:3] {
		exec(t, w.dbs[target.DB], "CREATE UNIQUE INDEX n_"+target.Table+" ON "+target.Table+" (n, id)")
		exec(t, w.dbs[target.DB], "CREATE INDEX u_"+target.Table+" ON "+target.Table+" (user_id)")
	}
	exec(t, w.dbs["a"], "ALTER TABLE orders_0 ADD note TEXT; CREATE INDEX extra ON orders_0 (note)")
	exec(t, w.dbs["b"], "DROP TABLE orders_1; CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER, n INTEGER)")
	exec(t, w.dbs["a"], "CREATE TABLE regions (id INTEGER)")
	expect(t, w.doctor(t, schema.DoctorConfig{}),
		"info extra_index a/orders_0", "warning extra_column a/orders_0",
		"error column_differs b/orders_1", "error missing_index b/orders_1", "warning missing_index b/orders_1",
		"error missing_index b/orders_3", "warning missing_index b/orders_3", "error missing_table b/regions")
}

func TestDoctorFindsUniqueKeysThatHoldWithinEachShardOnly(t *testing.T) {
	table := orders(t, sharding.Low(4))
	table.Also = []sharding.Alt{{Column: "gene", Rule: sharding.Low(4)}}
	table.Parents = []sharding.Parent{{Column: "parent", Table: "orders"}}
	table.Lookups = []sharding.Lookup{{Column: "looked", Table: "by_looked", Unique: true}}
	w := newTestRouter(t, table)
	w.create(t, plain+", gene INTEGER UNIQUE, parent INTEGER UNIQUE, looked TEXT UNIQUE, number TEXT UNIQUE, note TEXT, UNIQUE (number, note), UNIQUE (number, USER_ID), UNIQUE (number, id)")
	d := w.doctor(t, schema.DoctorConfig{})
	var messages []string
	for _, f := range d.Findings {
		if text := f.Message + "; " + f.Fix; f.Code == schema.UniqueKey && f.Severity == schema.Warning && !slices.Contains(messages, text) {
			messages = append(messages, text)
		}
	}
	want := []string{
		"the unique key on (number) holds within each shard, not across them; declare a unique lookup of number (docs/lookups.md), or add user_id to the key",
		"the unique key on (number, note) holds within each shard, not across them; add user_id to the key",
	}
	if slices.Sort(messages); !slices.Equal(messages, want) || len(d.Findings) != 8 || !d.Healthy() {
		t.Errorf("healthy %v:\n%s\nwant\n%s", d.Healthy(), strings.Join(messages, "\n"), strings.Join(want, "\n"))
	}
}

func TestDoctorFindsColumnsInAnotherOrder(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(4)))
	w.create(t, plain+", n TEXT, note TEXT")
	expect(t, w.doctor(t, schema.DoctorConfig{}))
	exec(t, w.dbs["b"], "DROP TABLE orders_3; CREATE TABLE orders_3 ("+plain+", note TEXT, n TEXT)")
	d := w.doctor(t, schema.DoctorConfig{})
	expect(t, d, "warning column_order b/orders_3")
	if text := d.Findings[0].Message; text != "column note is where other shards have n, so that a query of * is refused when several shards answer it" {
		t.Error(text)
	}
}

func TestDoctorNamesWhatIsNotThere(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Low(4)))
	w.create(t, plain)
	exec(t, w.dbs["a"], "DROP TABLE orders_0; DROP TABLE orders_2; CREATE TABLE orders_2 (id INTEGER PRIMARY KEY)")
	expect(t, w.doctor(t, schema.DoctorConfig{}),
		"error missing_table a/orders_0", "error missing_column a/orders_2")
	if err := w.dbs["b"].Close(); err != nil {
		t.Fatal(err)
	}
	d := w.doctor(t, schema.DoctorConfig{})
	if d.Findings[0].Code != schema.Unreachable || d.Findings[0].Database != "b" || d.Healthy() {
		t.Errorf("%v", say(d))
	}
}

func TestDoctorStopsAtItsBounds(t *testing.T) {
	for _, rule := range []sharding.Rule{sharding.Low(4), sharding.Hash(4)} {
		w := newTestRouter(t, orders(t, rule))
		w.create(t, plain)
		for i := range 11 {
			w.put(t, w.Targets("orders")[0], i, 0)
		}
		for limit, want := range map[int64]int64{10: 10, 11: 11, -1: 11, 0: 11} {
			got := w.doctor(t, schema.DoctorConfig{MaxRows: limit}).Targets[0]
			if got.Rows != want || got.All != (want == 11) {
				t.Errorf("with %d rows: %+v", limit, got)
			}
		}
	}
	w := newTestRouter(t, orders(t, sharding.Low(4)))
	w.create(t, plain)
	if d := w.doctor(t, schema.DoctorConfig{Timeout: time.Nanosecond}); len(d.Findings) != 2 || d.Findings[0].Code != schema.Unreachable {
		t.Errorf("%v", say(d))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := schema.Doctor(ctx, w.Router, schema.DoctorConfig{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The rows that go-gorm/sharding loses: those of a key that was updated, those of
// negative keys, in tables of their own, and those of statements that it could not
// parse, in the table that bears the logical name.
func TestDoctorFindsTheRowsThatGoGormShardingMisplaces(t *testing.T) {
	w := newTestRouter(t, orders(t, sharding.Compat(4)))
	w.create(t, plain)
	for user := range 20 {
		w.insert(t, user, user)
	}
	exec(t, w.dbs["b"], "UPDATE orders_3 SET user_id = 8 WHERE user_id = 7") // stays where it was
	exec(t, w.dbs["a"], `CREATE TABLE "orders_-1" (`+plain+`); INSERT INTO "orders_-1" VALUES (100, -1)`)
	exec(t, w.dbs["a"], "CREATE TABLE orders ("+plain+"); INSERT INTO orders VALUES (101, 6)")
	exec(t, w.dbs["b"], "CREATE TABLE orders_7 ("+plain+"); CREATE TABLE orders_archive ("+plain+"); CREATE TABLE reorders_1 ("+plain+")")
	exec(t, w.dbs["a"], "INSERT INTO orders_0 VALUES (102, -3)")
	expect(t, w.doctor(t, schema.DoctorConfig{}),
		"error misplaced_rows b/orders_3 8>a/orders_0", "error stray_table a/orders_-1", "error logical_table a/orders",
		"warning stray_table b/orders_7", "error unplaceable_rows a/orders_0 -3")
}

// ordersAndItems are the tables of orders and of their items, without rows. The items have these parents.
func ordersAndItems(t *testing.T, parents ...sharding.Parent) testRouter {
	t.Helper()
	layout, err := sharding.Spread([]string{"a", "b"}, 4, "items_%d")
	if err != nil {
		t.Fatal(err)
	}
	of := orders(t, sharding.Mod(4))
	of.Group = "shop"
	w := newTestRouter(t, of, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(4), Map: layout, Group: "shop", Parents: parents})
	w.create(t, "id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL")
	for _, at := range layout.Targets() {
		exec(t, w.dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, order_id INTEGER)")
	}
	return w
}

func TestDoctorFindsRowsWhoseParentsAreElsewhere(t *testing.T) {
	w := ordersAndItems(t, sharding.Parent{Column: "order_id", Table: "orders"}, sharding.Parent{Column: "gone", Table: "orders"})
	for user := range 8 {
		w.insert(t, 10+user, user)
	}
	for id, order := range map[int]any{1: 11, 5: 15, 9: nil, 13: 12, 17: 0, 21: 0} { // of users of the slot 1
		if _, err := w.dbs["b"].ExecContext(t.Context(), "INSERT INTO items_1 (id, user_id, order_id) VALUES (?, ?, ?)", id, id, order); err != nil {
			t.Fatal(err)
		}
	}
	d := w.doctor(t, schema.DoctorConfig{})
	want := []string{
		"missing_column a/items_0", "missing_column a/items_2", "missing_column b/items_1", "missing_column b/items_3",
		"missing_parent b/items_1",
	}
	var got []string
	for _, f := range d.Findings {
		got = append(got, string(f.Code)+" "+f.Place.String())
		if f.Code == schema.MissingParent && (f.Severity != schema.Warning || !slices.Equal(f.Examples, []schema.Example{{Key: "0"}, {Key: "12"}}) ||
			!strings.HasPrefix(f.Message, "3 rows are here whose order_id is no id of orders_1; ")) {
			t.Errorf("%+v", f)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A parent that cannot be searched does not keep the doctor from looking at the children.
func TestDoctorLooksAtRowsWhoseParentsAreMissing(t *testing.T) {
	w := ordersAndItems(t, sharding.Parent{Column: "order_id", Table: "orders", ID: "number"})
	exec(t, w.dbs["b"], "DROP TABLE orders_3")
	for _, at := range w.Targets("items") {
		exec(t, w.dbs[at.DB], "INSERT INTO "+at.Table+" (id, user_id, order_id) VALUES (1, 1, 1)")
	}
	var got []string
	for _, f := range w.doctor(t, schema.DoctorConfig{}).Findings {
		got = append(got, string(f.Code)+" "+f.Place.String())
	}
	slices.Sort(got)
	if want := []string{
		"misplaced_rows a/items_0", "misplaced_rows a/items_2", "misplaced_rows b/items_3",
		"missing_column a/items_0", "missing_column a/items_2", "missing_column b/items_1", "missing_table b/orders_3",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
