// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// growing is a table that is extended from one server to two.
type growing struct {
	first, second *server.MariaDB
	dbs           sharding.DBs
	cfg           rebalance.ExpandConfig
}

func newGrowing(t *testing.T) growing {
	t.Helper()
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	g := growingOn(t, first.Open(t, "shop"), second.Open(t, "shop"))
	g.first, g.second = first, second
	return g
}

func growingOn(t *testing.T, one, two *sql.DB) growing {
	t.Helper()
	g := growing{dbs: sharding.DBs{"one": one, "two": two}}
	database.Exec(t, g.dbs["one"], "CREATE TABLE orders_0 (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20) NOT NULL, UNIQUE KEY note (note))")
	for i := range 7 {
		database.Exec(t, g.dbs["one"], fmt.Sprintf("INSERT INTO orders_0 (note) VALUES ('old %d')", i))
	}
	m, err := sharding.MapOf(sharding.Target{DB: "one", Table: "orders_0"})
	if err != nil {
		t.Fatal(err)
	}
	g.cfg = rebalance.ExpandConfig{
		DBs: g.dbs, Margin: 20, Add: []sharding.Target{{DB: "two", Table: "orders_1"}},
		Table: sharding.Table{Name: "orders", Key: "id", Rule: sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}), Map: m},
	}
	return g
}

// pool opens a server as an application does.
func pool(t *testing.T, m *server.MariaDB, parameters string) *sql.DB {
	t.Helper()
	dsn := m.DSN("shop")
	if parameters != "" {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		dsn += separator + parameters
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestOneMasterBecomesTwoWithoutMovingARow(t *testing.T) {
	g := newGrowing(t)
	e, err := rebalance.PlanExpansion(t.Context(), g.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if e.Cut != 29 || e.Rule != "epochs(0 = 0, 29 = 0 1)" || len(e.Servers) != 2 || len(e.Steps) != 5 {
		t.Fatalf("%+v", e)
	}
	old := pool(t, g.first, "") // opened before, and not rotated yet
	database.Exec(t, old, "INSERT INTO orders_0 (note) VALUES ('old 8')")
	if err := rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1); err == nil || !strings.Contains(err.Error(), "orders_1") {
		t.Errorf("nothing is done yet: %v", err)
	}
	for range 2 {
		if err := e.Apply(t.Context(), g.dbs); err != nil {
			t.Fatal(err)
		}
	}
	if err := rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1); err != nil {
		t.Errorf("all is armed: %v", err)
	}
	pools := []*sql.DB{pool(t, g.first, e.Servers[0].Params), pool(t, g.second, e.Servers[1].Params)}
	for i := range 40 {
		for slot, db := range pools {
			result, err := db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders_%d (note) VALUES ('new %d')", slot, i))
			if err != nil {
				t.Fatal(err)
			}
			id, err := result.LastInsertId()
			if err != nil {
				t.Fatal(err)
			}
			if at, err := e.Next.Target(id); err != nil || at.DB != e.Servers[slot].DB {
				t.Errorf("id %d was made by %s, and the router looks on %v (%v)", id, e.Servers[slot].DB, at, err)
			}
		}
	}
	if err := rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1); err != nil {
		t.Error(err)
	}
	again := g.cfg
	again.Table = e.Next
	again.DBs = sharding.DBs{"one": g.dbs["one"], "two": g.dbs["two"], "three": g.first.Open(t, "three"), "four": g.second.Open(t, "four")}
	again.Add = []sharding.Target{{DB: "three", Table: "orders_2"}, {DB: "four", Table: "orders_3"}}
	more, err := rebalance.PlanExpansion(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if more.Servers[0].Class != (rebalance.Class{Offset: 1, Step: 4}) || more.Servers[1].Class != (rebalance.Class{Offset: 2, Step: 4}) || more.Servers[2].Class != (rebalance.Class{Offset: 3, Step: 4}) {
		t.Errorf("each class is to be split: %+v", more.Servers)
	}
}

// SET GLOBAL does not affect open connections.
func TestAConnectionThatKeepsItsOldStepIsFound(t *testing.T) {
	g := newGrowing(t)
	old := pool(t, g.first, "")
	old.SetMaxOpenConns(1)
	database.Exec(t, old, "INSERT INTO orders_0 (note) VALUES ('before')")
	e, err := rebalance.PlanExpansion(t.Context(), g.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Apply(t.Context(), g.dbs); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		database.Exec(t, old, fmt.Sprintf("INSERT INTO orders_0 (note) VALUES ('late %d')", i))
	}
	err = rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1)
	if !errors.Is(err, sharding.ErrEpochUnarmed) || !strings.Contains(err.Error(), "orders_0: ") {
		t.Errorf("%v", err)
	}
	found, err := rebalance.FindStrays(t.Context(), g.dbs["one"], "orders_0", "id", e.Cut, e.Servers[0].Class)
	if err != nil || found.Count == 0 || found.First <= e.Cut || found.First%2 != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Old connections number odd, so that a generator may take the even ids at once.
func TestOddConnectionsLeaveTheEvenIDsToAGenerator(t *testing.T) {
	g := newGrowing(t)
	odd := rebalance.Class{Offset: 1, Step: 2}
	even := int64(100)
	for i := range 20 {
		database.Exec(t, pool(t, g.first, odd.Parameters()), fmt.Sprintf("INSERT INTO orders_0 (note) VALUES ('counted %d')", i))
		database.Exec(t, g.dbs["one"], fmt.Sprintf("INSERT INTO orders_0 (id, note) VALUES (%d, 'generated %d')", even, i))
		even += 2
	}
	generated, err := rebalance.FindStrays(t.Context(), g.dbs["one"], "orders_0", "id", 9, odd)
	if err != nil || generated.Count != 20 || generated.First != 100 || generated.Last != 138 {
		t.Errorf("%+v, %v", generated, err)
	}
}

func TestAnExpansionThatCannotKeepTheIDsIsRefused(t *testing.T) {
	g := newGrowing(t)
	for what, change := range map[string]func(*rebalance.ExpandConfig){
		"no margin":             func(c *rebalance.ExpandConfig) { c.Margin = 0 },
		"no servers":            func(c *rebalance.ExpandConfig) { c.Add = nil },
		"an unknown database":   func(c *rebalance.ExpandConfig) { c.Add = []sharding.Target{{DB: "nine", Table: "orders_9"}} },
		"a rule without epochs": func(c *rebalance.ExpandConfig) { c.Table.Rule = sharding.OffsetStep(1, 1) },
		"a target that is there": func(c *rebalance.ExpandConfig) {
			c.Add = []sharding.Target{{DB: "one", Table: "orders_0"}}
		},
	} {
		cfg := g.cfg
		change(&cfg)
		if _, err := rebalance.PlanExpansion(t.Context(), cfg); !errors.Is(err, rebalance.ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// expander runs the command line in the directory of its file.
type expander struct {
	program, file string
	env           []string
}

func newExpander(t *testing.T, g growing) expander {
	t.Helper()
	return expander{server.Command(t), filepath.Join(t.TempDir(), "shards.json"), append(os.Environ(), "SHOP_ONE="+g.first.DSN("shop"), "SHOP_TWO="+g.second.DSN("shop"))}
}

// rule writes the file with a rule.
func (e expander) rule(t *testing.T, rule, targets string) {
	t.Helper()
	text := fmt.Sprintf(`{"databases": {"one": {"env": "SHOP_ONE"}, "two": {"env": "SHOP_TWO"}},
		"tables": [{"name": "orders", "key": "id", "rule": %q, "targets": [%s]}]}`, rule, targets)
	if err := os.WriteFile(e.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (e expander) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), e.program, append([]string{"migrate", "expand", "--config", e.file}, args...)...)
	cmd.Env = e.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("expand %v: exit code %d, want %d (%v): %s", args, got, code, err, out)
	}
	return string(out)
}

func TestTheCommandLineExpandsOneMasterToTwo(t *testing.T) {
	g := newGrowing(t)
	e := newExpander(t, g)
	e.rule(t, "epochs(0 = 0)", `"one/orders_0"`)
	grow := []string{"--add", "two/orders_1", "--margin", "20"}
	dry := e.run(t, 0, append(grow, "--dry-run")...)
	for _, part := range []string{"29", "SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 1;", "CREATE TABLE IF NOT EXISTS `orders_1`", "AUTO_INCREMENT = 29;", "auto_increment_increment=2&auto_increment_offset=1", "epochs(0 = 0, 29 = 0 1)"} {
		if !strings.Contains(dry, part) {
			t.Errorf("the plan does not say %q:\n%s", part, dry)
		}
	}
	e.rule(t, "epochs(0 = 0, 29 = 0 1)", `"one/orders_0", "two/orders_1"`)
	e.run(t, 3) // the dry run has made no table on the new server
	e.rule(t, "epochs(0 = 0)", `"one/orders_0"`)
	var plan rebalance.Expansion
	if err := json.Unmarshal([]byte(e.run(t, 0, append(grow, "--json")...)), &plan); err != nil || plan.Cut != 29 {
		t.Errorf("%+v, %v", plan, err)
	}
	e.rule(t, plan.Rule, `"one/orders_0", "two/orders_1"`)
	e.run(t, 0)
	database.Exec(t, g.dbs["one"], "INSERT INTO orders_0 (id, note) VALUES (30, 'of an old connection')")
	if said := e.run(t, 6, "--json"); !strings.Contains(said, `"armed": false`) || !strings.Contains(said, "1 ids from 30 to 30") {
		t.Error(said)
	}
	e.run(t, 2, "--add", "two/orders_1") // without a margin
	e.run(t, 2, append(grow, "--tables", "others")...)
}

// A connection that was opened before the settings were changed has the old step,
// although it has written nothing yet.
func TestOpenConnectionsWithTheOldStepAreFoundOrSaidToBeUnseen(t *testing.T) {
	for name, servers := range map[string]func() (a, b database.Server){
		"MariaDB": func() (a, b database.Server) { return server.RunMariaDB(t), server.RunMariaDB(t) },
		"MySQL": func() (a, b database.Server) {
			return server.RunMySQL(t, "--performance-schema=ON"), server.RunMySQL(t, "--performance-schema=ON")
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := servers()
			g := growingOn(t, first.Open(t, "shop"), second.Open(t, "shop"))
			for _, db := range g.dbs {
				db.SetMaxIdleConns(0) // a check must not find its own
			}
			e, err := rebalance.PlanExpansion(t.Context(), g.cfg)
			if err != nil {
				t.Fatal(err)
			}
			old, err := first.Open(t, "shop").Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Apply(t.Context(), g.dbs); err != nil {
				t.Fatal(err)
			}
			err = rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1)
			unseen, unseenErr := rebalance.UnseenConnections(t.Context(), g.dbs, e.Next)
			if unseenErr != nil {
				t.Fatal(unseenErr)
			}
			if isMariaDB(t, g.dbs["one"]) {
				if err != nil || len(unseen) == 0 || unseen[0].DB != "one" || unseen[0].Count < 1 {
					t.Errorf("%v, %+v", err, unseen)
				}
			} else if !errors.Is(err, rebalance.ErrNotReady) || !strings.Contains(err.Error(), "open connections") || len(unseen) != 0 {
				t.Errorf("%v, %+v", err, unseen)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestOneMasterBecomesTwoUnderTheNameOfItsTable(t *testing.T) {
	g := newGrowing(t)
	database.Exec(t, g.dbs["one"], "RENAME TABLE orders_0 TO orders")
	one := sharding.Target{DB: "one", Table: "orders"}
	alone, err := sharding.MapOf(one)
	if err != nil {
		t.Fatal(err)
	}
	g.cfg.Table.Map, g.cfg.Add = alone, []sharding.Target{{DB: "one", Table: "orders_1"}}
	if _, err := rebalance.PlanExpansion(t.Context(), g.cfg); !errors.Is(err, migrate.ErrConfig) || !strings.Contains(err.Error(), "one/orders has the logical name, and one/orders_1 is in the same database") {
		t.Errorf("beside another table: %v", err)
	}
	g.cfg.Add = []sharding.Target{{DB: "two", Table: "orders"}}
	e, err := rebalance.PlanExpansion(t.Context(), g.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(t.Context(), g.dbs); err != nil {
		t.Fatal(err)
	}
	if err := rebalance.CheckExpansion(t.Context(), g.dbs, e.Next, 1); err != nil {
		t.Error(err)
	}
	router, err := sharding.New(g.dbs, e.Next)
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: g.dbs["one"]})
	defer func() { _ = routed.Close() }()
	for i := range int64(10) {
		database.Exec(t, routed, fmt.Sprintf("INSERT INTO orders (id, note) VALUES (%d, 'new %d')", e.Cut+i, i))
	}
	for db, want := range map[string]int{"one": 7 + 5, "two": 5} {
		var n int
		if err := g.dbs[db].QueryRow("SELECT COUNT(*) FROM orders").Scan(&n); err != nil || n != want {
			t.Errorf("%s has %d rows, want %d, %v", db, n, want, err)
		}
	}
	var note string
	if err := routed.QueryRow("SELECT note FROM orders WHERE id = ?", e.Cut+3).Scan(&note); err != nil || note != "new 3" {
		t.Error(note, err)
	}
}
