// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func inspect(t *testing.T, job *migrate.Job) []migrate.Finding {
	t.Helper()
	found, err := job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// codes are the codes of the findings that are more than information.
func codes(found []migrate.Finding) (all []migrate.Code) {
	for _, f := range found {
		if f.Severity != migrate.Info {
			all = append(all, f.Code)
		}
	}
	return all
}

func TestInspectOfATableThatCanBeMigratedBlocksNothing(t *testing.T) {
	found := inspect(t, newShop(t, 20).job(t, "id"))
	if migrate.Blocked(found) || !slices.Equal(codes(found), []migrate.Code{migrate.UniqueAcross}) {
		t.Errorf("%+v", found)
	}
}

// Each reading of a table is reported, so that a caller can estimate how long the
// inspection takes.
func TestInspectReportsEachReadingOfATable(t *testing.T) {
	cfg := newShop(t, 20).config(t, "id")
	var read int64
	var last migrate.Step
	cfg.Observe = func(s migrate.Step) {
		if s.Name == migrate.StepInspected {
			read, last = read+s.Rows, s
		}
	}
	job, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inspect(t, job)
	if want := int64(3 * 20); read != want || last.Of != want || last.Table != "orders" {
		t.Errorf("%d rows were read, the last of them by %+v, want %d", read, last, want)
	}
}

func TestInspectNamesBlockingFindings(t *testing.T) {
	for name, test := range map[string]struct {
		change []string
		code   migrate.Code
		says   string
	}{
		"a trigger": {[]string{"CREATE TRIGGER audit AFTER INSERT ON orders BEGIN SELECT 1; END"}, migrate.ForeignTriggers, "audit"},
		"a child":   {[]string{"CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id))"}, migrate.OutsideJob, "items"},
		"a cascade from outside": {[]string{"CREATE TABLE users (id INTEGER PRIMARY KEY)", "DROP TABLE orders",
			"CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE)"}, migrate.OutsideJob, "users, which is not in the job and changes rows"},
		"a missing value": {[]string{"DROP TABLE orders", "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER)", "INSERT INTO orders VALUES (0, NULL), (7, NULL)"}, migrate.NoShardingKey, "user_id is NULL in 2 rows, the first of which is row 0"},
		"a missing key":   {[]string{"DROP TABLE orders", "CREATE TABLE orders (id INTEGER PRIMARY KEY)"}, migrate.NoShardingKey, "user_id"},
		"a table with the name of the retired one": {[]string{"CREATE TABLE orders_old (x)"}, migrate.NameTaken, "orders_old exists"},
		"a composite key":                          {[]string{"DROP TABLE orders", "CREATE TABLE orders (a INTEGER, b INTEGER, user_id INTEGER, PRIMARY KEY (a, b))"}, migrate.Unsupported, "(a, b)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 5)
			for _, statement := range test.change {
				exec(t, s.source, statement)
			}
			found := inspect(t, s.job(t, "user_id"))
			if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
				return f.Severity == migrate.Block && f.Code == test.code && strings.Contains(f.Message, test.says)
			}) {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestATableMayReferToOneThatStaysWhereItIs(t *testing.T) {
	s := newShop(t, 0)
	exec(t, s.source, "CREATE TABLE users (id INTEGER PRIMARY KEY); INSERT INTO users VALUES (7); DROP TABLE orders")
	exec(t, s.source, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id)); INSERT INTO orders VALUES (1, 7), (2, 7)")
	job := s.job(t, "user_id")
	found := inspect(t, job)
	if migrate.Blocked(found) || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
		return f.Severity == migrate.Warn && f.Code == migrate.OutsideJob && strings.Contains(f.Message, "users")
	}) {
		t.Errorf("%+v", found)
	}
	if err := job.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := job.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestInspectCountsRowsWhoseShardingKeyIsZero(t *testing.T) {
	s := newShop(t, 50) // of 17 users, from 0 on
	found := inspect(t, s.job(t, "user_id"))
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
		return f.Severity == migrate.Warn && f.Code == migrate.ZeroShardingKey && f.Message == "user_id is 0 in 2 rows"
	}) {
		t.Errorf("%+v", found)
	}
}

// byText shards by a column of texts.
func byText(tb testing.TB, key string, rule sharding.Rule) func(*migrate.Config) {
	return func(c *migrate.Config) {
		m, err := sharding.Spread([]string{"a", "b"}, rule.Slots(), "orders_%02d")
		if err != nil {
			tb.Fatal(err)
		}
		c.Tables[0].Table = sharding.Table{Name: "orders", Key: key, Rule: rule, Map: m}
	}
}

func TestInspectFindsTextKeysThatAreNotComparedByTheirBytes(t *testing.T) {
	for types, found := range map[string]bool{"TEXT": false, "TEXT COLLATE NOCASE": true, "TEXT COLLATE BINARY": false, "VARCHAR(9) COLLATE RTRIM NOT NULL": true} {
		s := newShop(t, 0)
		exec(t, s.source, "DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant "+types+")")
		exec(t, s.shards["b"], "CREATE TABLE orders_01 (id INTEGER PRIMARY KEY, tenant "+types+")")
		places := map[string]bool{}
		for _, f := range inspect(t, s.job(t, "id", byText(t, "tenant", sharding.HashText(4)))) {
			if f.Code == migrate.Collation && f.Severity == migrate.Warn && strings.Contains(f.Message, "tenant") {
				places[f.Database+"/"+f.Table] = true
			}
		}
		if places["source/orders"] != found || places["b/orders_01"] != found || len(places) > 2 {
			t.Errorf("%s: %v", types, places)
		}
	}
}

// Its rows may have times that the rule refuses, and the run would end there.
func TestInspectWarnsOfAColumnThatKeepsTimesFinerThanTheirRule(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	daily := sharding.Interval(start, start.AddDate(0, 0, 4), 24*time.Hour)
	for unit, want := range map[time.Duration]bool{time.Second: true, time.Nanosecond: false} {
		s := newShop(t, 0)
		exec(t, s.source, "DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, at DATETIME)")
		found := inspect(t, s.job(t, "id", byText(t, "at", daily.WithPrecision(unit))))
		got := slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Code == migrate.KeyColumn && f.Severity == migrate.Warn && strings.Contains(f.Message, "stores times to 1ns")
		})
		if got != want || migrate.Blocked(found) {
			t.Errorf("%v: %+v", unit, found)
		}
	}
}

func TestInspectBlocksValuesWithoutAPlace(t *testing.T) {
	day := 24 * time.Hour
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		rule sharding.Rule
		says string // "" when all have a place
	}{
		"a list":                     {sharding.List(map[string]sharding.Slot{"note 1": 0, "note 2": 1}), "of 5 values of note that were tried, 3 have no place"},
		"a list of all":              {sharding.List(map[string]sharding.Slot{"note 1": 0, "note 2": 1, "note 3": 0, "note 4": 1, "note 5": 1}), ""},
		"texts under a hash":         {sharding.HashText(4), ""},
		"texts under one of ids":     {sharding.Hash(4), "have no place"},
		"no times under an interval": {sharding.Interval(start, start.Add(4*day), day), "have no place"},
	} {
		found := inspect(t, newShop(t, 5).job(t, "id", byText(t, "note", test.rule)))
		i := slices.IndexFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.Unplaced })
		if test.says == "" && i >= 0 || test.says != "" && (i < 0 || found[i].Severity != migrate.Block || !strings.Contains(found[i].Message, test.says)) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestInspectBlocksChildrenWithoutAParent(t *testing.T) {
	s := newShop(t, 5)
	exec(t, s.source, "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id)); INSERT INTO items VALUES (3, NULL), (4, 1)")
	items := orders(t, "user_id")
	items.Name, items.Via = "items", "order_id"
	m, err := sharding.Spread([]string{"a", "b"}, 4, "items_%02d")
	if err != nil {
		t.Fatal(err)
	}
	items.Map = m
	found := inspect(t, s.job(t, "user_id", func(c *migrate.Config) { c.Tables = append(c.Tables, items) }))
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
		return f.Severity == migrate.Block && f.Table == "items" && strings.Contains(f.Message, "order_id is NULL in 1 row, ")
	}) {
		t.Errorf("%+v", found)
	}
}

func TestInspectWarnsOfChildrenThatOnlyAHintFinds(t *testing.T) {
	for name, test := range map[string]struct {
		key   string // of orders, and of items by way of them
		also  []sharding.Alt
		items string // more columns
		warns bool
	}{
		"placed by the user":        {"user_id", nil, "", true},
		"with the user":             {"user_id", nil, ", user_id INTEGER NOT NULL", false},
		"ids that carry the slot":   {"user_id", []sharding.Alt{{Column: "id", Rule: sharding.Low(2)}}, "", false},
		"ids that will carry it":    {"user_id", []sharding.Alt{{Column: "id", Rule: sharding.Low(2), From: 1000}}, "", true},
		"another column carries it": {"user_id", []sharding.Alt{{Column: "serial", Rule: sharding.Low(2)}}, "", true},
		"placed by the parent's id": {"id", nil, "", false},
	} {
		s := newShop(t, 5)
		exec(t, s.source, "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders (id)"+test.items+")")
		items := orders(t, test.key)
		items.Name, items.Via = "items", "order_id"
		m, err := sharding.Spread([]string{"a", "b"}, 4, "items_%02d")
		if err != nil {
			t.Fatal(err)
		}
		items.Map = m
		found := inspect(t, s.job(t, test.key, func(c *migrate.Config) {
			c.Tables[0].Also = test.also
			c.Tables = append(c.Tables, items)
		}))
		if warns := slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Severity == migrate.Warn && f.Code == migrate.NoShardingKey && f.Table == "items" &&
				f.Message == "user_id of orders is not in it, and order_id does not lead to the shard: applications will reach its rows only under the hint OnKey, and cannot insert any" &&
				strings.Contains(f.Fix, "; or place orders by its id, and this table by order_id without a Via")
		}); warns != test.warns {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestInspectSeesWhatIsOnTheShards(t *testing.T) {
	s := newShop(t, 5)
	exec(t, s.shards["b"], "CREATE TABLE orders_01 (id INTEGER PRIMARY KEY)")
	exec(t, s.shards["b"], "INSERT INTO orders_01 VALUES (1)")
	s.shards["a"] = sql.OpenDB(nobody{})
	found := inspect(t, s.job(t, "id"))
	if found[0].Code != migrate.Unreachable || found[0].Database != "a" {
		t.Errorf("%+v", found)
	}
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.NotEmpty && f.Table == "orders_01" }) {
		t.Errorf("%+v", found)
	}
}

// The codes are for programs, which read them in JSON.
func TestFindingsHaveStableCodesInJSON(t *testing.T) {
	const items = "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL"
	for name, test := range map[string]struct {
		change string
		via    string
		found  string
	}{
		"a foreign key that cascades": {items + " REFERENCES orders (id) ON DELETE CASCADE)", "", `"code":"cascades","severity":"info","database":"source","table":"items"`},
		"a way that leads nowhere":    {items + ")", "order_id", `"code":"relations","severity":"block","database":"source","message"`},
		"a journal that locks":        {items + "); PRAGMA journal_mode = delete", "", `"code":"journal","severity":"warn","database":"source","message"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 5)
			exec(t, s.source, test.change)
			m, err := sharding.Spread([]string{"a", "b"}, 4, "items_%02d")
			if err != nil {
				t.Fatal(err)
			}
			found := inspect(t, s.job(t, "id", func(c *migrate.Config) {
				table := migrate.Table{Table: sharding.Table{Name: "items", Key: "id", Rule: sharding.Low(2), Map: m}, Via: test.via}
				c.Tables = append(c.Tables, table)
			}))
			if text, err := json.Marshal(found); err != nil || !strings.Contains(string(text), test.found) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// Such a key blocks, so an Info finding about it would be a contradiction.
func TestInspectCallsNoCascadeFromOutsideTheJobFollowed(t *testing.T) {
	s := newShop(t, 0)
	exec(t, s.source, "DROP TABLE orders; CREATE TABLE stores (id INTEGER PRIMARY KEY);"+
		"CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES stores (id) ON UPDATE CASCADE)")
	found := inspect(t, s.job(t, "id"))
	if got := codes(found); slices.Contains(got, migrate.Cascades) || !migrate.Blocked(found) {
		t.Errorf("%+v", found)
	}
}

// A connection inside another transaction cannot be pinned.
func TestASettingThatDoesNotHoldIsErrSession(t *testing.T) {
	s := newShop(t, 5)
	s.source.SetMaxOpenConns(1)
	exec(t, s.source, "PRAGMA foreign_keys = 1; BEGIN")
	_, err := s.job(t, "id").Inspect(t.Context())
	if !errors.Is(err, migrate.ErrSession) || !strings.HasSuffix(err.Error(), "foreign_keys is 1, not 0") {
		t.Error(err)
	}
}

// Tables of the job are no blocking finding, in whatever phase the job is.
func TestInspectKnowsItsOwnJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, 50)
	j := s.job(t, "id")
	only := func(when string, code migrate.Code) {
		t.Helper()
		if found := codes(inspect(t, j)); slices.ContainsFunc(found, func(c migrate.Code) bool { return c != code }) {
			t.Errorf("%s: %v", when, found)
		}
	}
	mustRun(t, j)
	only("following", migrate.UniqueAcross)
	mustCutover(t, j)
	only("switched", "")
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	only("rolled back", migrate.UniqueAcross)
	mustCutover(t, j)
	if err := j.Finalize(t.Context()); err != nil {
		t.Fatal(err)
	}
	only("finalized", "")
}

func TestInspectSeesTablesOfOtherJobs(t *testing.T) {
	t.Parallel()
	s, other := newShop(t, 50), newShop(t, 50)
	other.shards = s.shards
	mustRun(t, s.job(t, "id"))
	for name, at := range map[string]*shop{"second": s, "elsewhere": other, "orders": other} {
		found := inspect(t, at.job(t, "id", called(name)))
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Severity == migrate.Block && f.Code == migrate.OtherJob && f.Database == "b" && strings.Contains(f.Message, "job orders") &&
				strings.HasSuffix(f.Fix, "drop the table and DELETE FROM shardid_owner WHERE name = '"+f.Table+"' there")
		}) {
			t.Errorf("%s: %+v", name, found)
		}
		if here := slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.OtherJob && f.Database == "source" }); here != (name == "second") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// nobody is a database that does not answer.
type nobody struct{}

func (nobody) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("connection refused")
}
func (n nobody) Driver() driver.Driver          { return n }
func (nobody) Open(string) (driver.Conn, error) { return nil, errors.New("connection refused") }

func TestInspectSeesAShardThatCannotTakeTheRows(t *testing.T) {
	for name, test := range map[string]struct{ table, says string }{
		"without a column":    {"CREATE TABLE orders_01 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)", "it has no column "},
		"with another column": {strings.Replace(shopSQL, "CREATE TABLE orders (", "CREATE TABLE orders_01 (extra TEXT,", 1), "it has the column "},
		"with a generated column": {
			strings.NewReplacer("CREATE TABLE orders ", "CREATE TABLE orders_01 ", "user_id INTEGER NOT NULL", "user_id INTEGER AS (id % 8) STORED").Replace(shopSQL), "its column user_id is generated",
		},
		"with a key of two columns": {"CREATE TABLE orders_01 (id INTEGER, user_id INTEGER, note TEXT, PRIMARY KEY (id, user_id))", "has the primary key (id, user_id)"},
		"that a rollback closed":    {"CREATE TABLE orders_01_sealed (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)", "it has no column "},
	} {
		s := newShop(t, 5)
		exec(t, s.shards["b"], test.table)
		found := inspect(t, s.job(t, "id"))
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Code == migrate.Misfit && f.Severity == migrate.Block && f.Database == "b" && strings.HasPrefix(f.Table, "orders_01") &&
				strings.Contains(f.Message, test.says) && strings.HasPrefix(f.Fix, "drop this table, so that the job creates it, or ")
		}) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestInspectSaysThatAGeneratedShardingKeyIsNotRead(t *testing.T) {
	s := newShop(t, 5)
	exec(t, s.source, "ALTER TABLE orders ADD COLUMN part INTEGER AS (user_id % 8)")
	found := inspect(t, s.job(t, "part"))
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
		return f.Code == migrate.NoShardingKey && f.Severity == migrate.Block && strings.Contains(f.Message, "part is a generated column")
	}) {
		t.Errorf("%+v", found)
	}
}
