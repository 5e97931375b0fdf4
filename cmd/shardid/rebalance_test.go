// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// followed is the Go code of docs/rebalance.md.
func followed(ctx context.Context, east *sql.DB, router *sharding.Router, term time.Duration, do func()) {
	store, err := slotstore.New(ctx, slotstore.Config{Name: "shop", Term: term, DB: east, Router: router, Shards: map[string][]sharding.Target{
		"orders": {{DB: "east", Table: "orders_0"}, {DB: "west", Table: "orders_1"}, {DB: "north", Table: "orders_2"}},
	}})
	check(err)
	follower, err := store.Follow(ctx)
	check(err)
	defer func() { check(follower.Close(ctx)) }()
	do()
}

// newSlots makes the files of the page's configuration, with 800 orders.
func newSlots(t *testing.T) (config string, dbs sharding.DBs) {
	t.Helper()
	config = newConfig(t, strings.Replace(blockOf(t, rebalancePage(t), "json"), `"term": "10s"`, `"term": "200ms"`, 1))
	dbs = sharding.DBs{}
	for shard, name := range []string{"east", "west", "north"} {
		dbs[name] = openFile(t, filepath.Join(filepath.Dir(config), name+".db"))
		text := fmt.Sprintf("CREATE TABLE orders_%d (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL);"+
			"WITH RECURSIVE n (i) AS (SELECT %[1]d UNION ALL SELECT i + 2 FROM n WHERE i + 2 < 800) INSERT INTO orders_%[1]d SELECT i, i FROM n", shard)
		if name == "north" {
			text = "CREATE TABLE other (id INTEGER)"
		}
		if _, err := dbs[name].ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return config, dbs
}

func TestADatabaseWithoutABroadcastTableIsWarnedAboutBeforeSlotsMoveThere(t *testing.T) {
	config, dbs := newSlots(t)
	layout := strings.Replace(readFile(t, config), `"home": "east",`, `"home": "east", "broadcast": ["regions"],`, 1)
	if err := os.WriteFile(config, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"east", "west"} {
		if _, err := dbs[name].ExecContext(t.Context(), "CREATE TABLE regions (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "rebalance", "create", "--config", config)
	for _, verb := range []string{"plan", "run"} {
		if o := succeed(t, "rebalance", verb, "--config", config); !strings.Contains(o.stderr, "warning: north: regions: the file lists it as broadcast, and there is no such table") {
			t.Errorf("%s: %s", verb, o.stderr)
		}
	}
}

// Without the map of slots in its file, doctor does not know where rows have moved: it finds them misplaced, or not at all.
func TestDoctorWarnsOfAFileThatDoesNotNameTheStoredMap(t *testing.T) {
	config, _ := newSlots(t)
	succeed(t, "rebalance", "create", "--config", config)
	succeed(t, "rebalance", "run", "--config", config)
	const says = "the database stores the map of slots shop, which the file does not name"
	if o := succeed(t, "doctor", "--config", config); strings.Contains(o.stdout, says) {
		t.Error(o.stdout)
	}
	without, _, _ := strings.Cut(readFile(t, config), `"slots":`)
	other := newConfig(t, strings.TrimRight(without, ", \n")+"}")
	for _, name := range []string{"east.db", "west.db", "north.db"} {
		check(os.Rename(filepath.Join(filepath.Dir(config), name), filepath.Join(filepath.Dir(other), name)))
	}
	if o := succeed(t, "doctor", "--config", other); !strings.Contains(o.stdout, "\nwarning east: "+says) || strings.Contains(o.stdout, "Every row is in the shard of its key") {
		t.Error(o.stdout)
	}
}

func TestAPlanWarnsOfATableThatRunWouldRefuse(t *testing.T) {
	config, dbs := newSlots(t)
	succeed(t, "rebalance", "create", "--config", config)
	if o := succeed(t, "rebalance", "plan", "--config", config); o.stderr != "" {
		t.Error(o.stderr)
	}
	if _, err := dbs["west"].ExecContext(t.Context(), "CREATE TRIGGER noted AFTER INSERT ON orders_1 BEGIN SELECT 1; END"); err != nil {
		t.Fatal(err)
	}
	if o := succeed(t, "rebalance", "plan", "--config", config); !strings.Contains(o.stderr, "warning: run would end with: ") || !strings.Contains(o.stderr, "has the trigger noted") {
		t.Error(o.stderr)
	}
	if o := execute(t, "rebalance", "run", "--config", config); o.code == command.ExitOK || !strings.Contains(o.stderr, "has the trigger noted") {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
}

func TestAPlanAndAStatusNameTheTablesThatMoveTogether(t *testing.T) {
	config, dbs := newSlots(t)
	layout := strings.Replace(readFile(t, config), `"key": "user_id"`, `"group": "shop", "key": "user_id"`, 1)
	for _, change := range [][2]string{
		{`"shards": {`, `"shards": {"items": ["east/items_0", "west/items_1", "north/items_2"], `},
		{"  ],\n  \"slots\"", strings.ReplaceAll(strings.ReplaceAll(`, {"name": "items", "group": "shop", "key": "user_id", "rule": "low(3)", "targets": ["EI", "WI", "EI", "WI", "EI", "WI", "EI", "WI"]}`, "EI", "east/items_0"), "WI", "west/items_1") + "],\n  \"slots\""},
	} {
		layout = strings.Replace(layout, change[0], change[1], 1)
	}
	if err := os.WriteFile(config, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	for shard, name := range []string{"east", "west"} {
		if _, err := dbs[name].ExecContext(t.Context(), fmt.Sprintf("CREATE TABLE items_%d (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)", shard)); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "rebalance", "create", "--config", config)
	for verb, want := range map[string]string{"plan": "2 slots, about 200 rows of items, orders, ", "status": "map shop of items, orders, version "} {
		if o := succeed(t, "rebalance", verb, "--config", config); !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
}

func rebalancePage(t *testing.T) string {
	t.Helper()
	return readFile(t, "../../docs/rebalance.md")
}

func blockOf(t *testing.T, page, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n```"+language+"\n")
	block, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("there is no block of %s", language)
	}
	return block
}

func TestTheCommandsOfTheRebalancePageAreCarriedOut(t *testing.T) {
	page := rebalancePage(t)
	if code := strings.ReplaceAll(blockOf(t, page, "go"), "\n", "\n\t"); !strings.Contains(readFile(t, "rebalance_test.go"), "\t"+strings.TrimSuffix(code, "\t")) {
		t.Errorf("this does not run:\n%s", code)
	}
	config, dbs := newSlots(t)
	t.Chdir(filepath.Dir(config))
	run := func() {
		for _, part := range strings.Split(blockOf(t, page, "console"), "$ shardid ")[1:] {
			line, want, _ := strings.Cut(part, "\n")
			o := succeed(t, strings.Fields(line)...)
			pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", `[^\n;]+`)
			if !regexp.MustCompile("^" + pattern + "$").MatchString(o.stdout) {
				t.Errorf("%s says:\n%s", line, o.stdout)
			}
		}
	}
	layout, err := layoutfile.Read(config)
	if err != nil {
		t.Fatal(err)
	}
	router, err := layout.Router(dbs)
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "rebalance", "create", "--config", config) // which may be repeated
	followed(t.Context(), dbs["east"], router, 200*time.Millisecond, run)
	var here, left int
	for _, table := range []string{"east orders_0", "west orders_1", "north orders_2"} {
		name, physical, _ := strings.Cut(table, " ")
		if err := dbs[name].QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+physical).Scan(&here); err != nil {
			t.Fatal(err)
		}
		left += here
		if name == "west" && here != 0 {
			t.Errorf("%d rows on the drained server", here)
		}
	}
	if left != 800 {
		t.Errorf("%d rows", left)
	}
}

func TestSlotsThatHaveNotSwitchedAreTakenBack(t *testing.T) {
	config, dbs := newSlots(t)
	succeed(t, "rebalance", "create", "--config", config)
	layout, err := layoutfile.Read(config)
	if err != nil {
		t.Fatal(err)
	}
	router, err := layout.Router(dbs)
	if err != nil {
		t.Fatal(err)
	}
	c, err := layout.SlotStore(dbs["east"], router)
	if err != nil {
		t.Fatal(err)
	}
	store, err := slotstore.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dbs["north"].ExecContext(t.Context(), "CREATE TABLE orders_2 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if err := store.Copy(t.Context(), 2, 3); err != nil { // a run that was killed
		t.Fatal(err)
	}
	if o := execute(t, "rebalance", "status", "--config", config); o.code != command.ExitUnclean || !strings.Contains(o.stdout, "slot 3 is copying: west/orders_1 → north/orders_2") {
		t.Errorf("exit code %d: %s%s", o.code, o.stdout, o.stderr)
	}
	if o := succeed(t, "rebalance", "abort", "--config", config); o.stdout != "1 slot taken back\n" {
		t.Error(o.stdout)
	}
	if o := succeed(t, "rebalance", "status", "--config", config, "--json"); !strings.Contains(o.stdout, `"due": 2`) || !strings.Contains(o.stdout, `"moving": []`) {
		t.Error(o.stdout)
	}
}

func TestARunOfMovesSaysWhatItWaitsFor(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	r := &bringing{balance: &balance{rebalancing: &rebalancing{cmd: cmd}}}
	blocked := rebalance.Step{Name: rebalance.StepBlocked, Table: "orders"}
	away := rebalance.Step{Name: rebalance.StepWaiting, Err: errors.New("west does not answer")}
	for _, s := range []rebalance.Step{blocked, blocked, away, away, {Name: rebalance.StepWaiting}, {Name: rebalance.StepAnnounced}, blocked} {
		r.observe(s)
	}
	const onOrders = "waiting for transactions on table orders to end, before triggers can be created on it; end long transactions\n"
	if want := onOrders + "waiting, and trying again: west does not answer\ngoing on\n" + onOrders; out.String() != want {
		t.Errorf("got %s\nwant %s", out.String(), want)
	}
}

func TestWhatCannotBeRebalancedIsSaid(t *testing.T) {
	config, _ := newSlots(t)
	other := filepath.Join(t.TempDir(), "moves.json")
	if err := os.WriteFile(other, []byte(`{"map": "other", "moves": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, "rebalance", "create", "--config", config)
	for says, args := range map[string][]string{
		`the configuration has no database "south"`: {"plan", "--drain", "south"},
		"no shard is left":                          {"plan", "--drain", "east,west,north"},
		`is of the map "other", and not of "shop"`:  {"run", "--plan", other},
		"cannot be read":                            {"undo", "--plan", other + "x"},
		"exists, and undo may need the plan in it":  {"plan", "--out", other},
		`there is no "slots"`:                       {"status", "--config", newConfig(t, strings.Replace(blockOf(t, lookupsPage(t), "json"), `"building": true`, `"building": false`, 1))},
		"--slots":                                   {"run", "--slots", "0"},
		"give the moves to undo with --plan":        {"undo"},
		"--plan has the moves already":              {"run", "--plan", other, "--drain", "west"},
	} {
		o := execute(t, append([]string{"rebalance", args[0], "--config", config}, args[1:]...)...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%v: exit code %d: %s", args, o.code, o.stderr)
		}
	}
}

func TestATableThatCannotTakeTheRowsEndsARebalanceAsItEndsAMigration(t *testing.T) {
	config, dbs := newSlots(t)
	succeed(t, "rebalance", "create", "--config", config)
	if _, err := dbs["north"].ExecContext(t.Context(), "CREATE TABLE orders_2 (id INTEGER PRIMARY KEY, buyer INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	if o := execute(t, "rebalance", "run", "--config", config); o.code != command.MigrateNotReady || !strings.Contains(o.stderr, "it has no column user_id") {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
}

func TestTheExitCodeOfARebalanceSaysWhetherToCorrectTheInputOrToDoTheStepBefore(t *testing.T) {
	config, _ := newSlots(t)
	for _, verb := range []string{"plan", "run", "status", "abort"} {
		if o := execute(t, "rebalance", verb, "--config", config); o.code != command.MigrateNotReady || !strings.Contains(o.stderr, "run shardid rebalance create") {
			t.Errorf("%s without a map: exit code %d: %s", verb, o.code, o.stderr)
		}
	}
	succeed(t, "rebalance", "create", "--config", config)
	for says, c := range map[string]struct {
		move string
		code int
	}{
		"the map has no such targets": {`{"slot": 0, "from": "east/orders_0", "to": "west/orders_0"}`, command.ExitInput},
		"no slot for the key":         {`{"slot": 8, "from": "east/orders_0", "to": "north/orders_2"}`, command.ExitInput},
		"the slot is on shard 0":      {`{"slot": 0, "from": "west/orders_1", "to": "north/orders_2"}`, command.MigrateChanged},
	} {
		plan := filepath.Join(t.TempDir(), "moves.json")
		if err := os.WriteFile(plan, []byte(`{"map": "shop", "moves": [`+c.move+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := execute(t, "rebalance", "run", "--config", config, "--plan", plan); o.code != c.code || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit code %d: %s", c.move, o.code, o.stderr)
		}
	}
}

func TestSlotsOfAConfigurationThatCannotWorkAreAMistakeOfTheUser(t *testing.T) {
	config, _ := newSlots(t)
	text := readFile(t, config)
	for says, change := range map[string][2]string{
		"it must be at least 100ms":          {`"term": "200ms"`, `"term": "1ms"`},
		`table "order": not a sharded table`: {`"shards": {"orders"`, `"shards": {"order"`},
		`the router has no database "south"`: {`"north/orders_2"]}`, `"south/orders_2"]}`},
		"is not among the table's targets":   {`"shards": {"orders": ["east/orders_0", `, `"shards": {"orders": [`},
	} {
		if err := os.WriteFile(config, []byte(strings.Replace(text, change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := execute(t, "rebalance", "create", "--config", config); o.code != command.ExitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit code %d: %s", change[1], o.code, o.stderr)
		}
	}
}

// A supervisor starts the command again, as it does with migrate.
func TestAServerThatIsDownWhenARebalanceStartsIsNoWrongInput(t *testing.T) {
	text := strings.Replace(blockOf(t, rebalancePage(t), "json"), `{"sqlite": "east.db"}`, `{"env": "REBALANCE_EAST"}`, 1)
	t.Setenv("REBALANCE_EAST", "mover:s3cret@tcp(127.0.0.1:1)/shop")
	o := execute(t, "rebalance", "run", "--config", newConfig(t, text))
	if o.code != command.ExitFailure || !strings.Contains(o.stderr, "cannot connect to mover:***@tcp(127.0.0.1:1)/shop") {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
}

// An abort beside a run takes the run's slots back at any step. The same command again would move them against the other operator's will.
func TestARunWhoseSlotsWereTakenBackEndsAsOneWhosePlanHasChanged(t *testing.T) {
	for _, cause := range []error{slotstore.ErrState, sharding.ErrStaleMap} {
		if code, _ := command.CodeOf(balanceCode(fmt.Errorf("rebalance: move slots: %w", cause))); code != command.MigrateChanged {
			t.Errorf("%v: exit code %d", cause, code)
		}
	}
}
