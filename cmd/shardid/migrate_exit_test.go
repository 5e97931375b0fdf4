// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/schema/migrate"
)

// A supervisor starts a runner again that ended with 10, and not one that ended with 1.
func TestAServerThatIsAwayEndsMigrateWithTen(t *testing.T) {
	m := newMovable(t, 5)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for dsn, want := range map[string]int{"u:p@tcp(" + l.Addr().String() + ")/shop": command.ExitFailure, "u:p@tcp(" + l.Addr().String() + ")/": command.ExitInput} {
		if o := execute(t, "migrate", "run", "--config", m.file("shards.json"), "--source", dsn); o.code != want || strings.Contains(o.stderr, "u:p") {
			t.Errorf("%s: exit code %d, want %d: %s", dsn, o.code, want, o.stderr)
		}
	}
	layout := strings.Replace(readFile(t, m.file("shards.json")), `{"sqlite": "west.db"}`, `{"env": "WEST_OF_THE_TEST"}`, 1)
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEST_OF_THE_TEST", "u:p@tcp("+l.Addr().String()+")/shop")
	if o := execute(t, m.args("run")...); o.code != command.ExitFailure || !strings.Contains(o.stderr, `database "west"`) {
		t.Errorf("a shard that is away: %d, %s", o.code, o.stderr)
	}
}

func TestMistakesInMigrateEndWithOne(t *testing.T) {
	m := newMovable(t, 5)
	for says, args := range map[string][]string{
		`there is no command "bogus"; give one of abort, cutover, expand, finalize, inspect, install, pause, plan, preview, resume, rollback, run, seed, status, verify, or see shardid migrate --help`: {"migrate", "bogus"},
		"unknown flag: --bogus; see shardid migrate run --help":               {"migrate", "run", "--bogus"},
		`invalid argument "x" for "--copiers" flag`:                           {"migrate", "run", "--copiers", "x"},
		"unknown flag: --copiers; see shardid migrate pause --help":           {"migrate", "pause", "--copiers", "2"},
		"unknown flag: --json; see shardid migrate abort --help":              {"migrate", "abort", "--json"},
		"flag needs an argument: --config; see shardid migrate status --help": {"migrate", "status", "--config"},
		"give --config FILE":                                        {"migrate", "run"},
		"does not exist; name the file":                             {"migrate", "run", "--config", m.file("nowhere.json")},
		"has no table \"goods\"":                                    m.args("run", "--tables", "goods"),
		"is one; name tables with":                                  m.args("run", "orders"),
		`"0" for "--max-pause" flag: it must be between 1ms and 1h`: m.args("cutover", "--max-pause", "0"),
		"give --margin":                                             m.args("seed"),
		"confirm it with --yes":                                     m.args("abort"),
		"make it with shardid":                                      m.args("run", "--plan", m.file("nowhere.json")),
		"there is no file":                                          {"migrate", "status", "--config", m.file("shards.json"), "--source", m.file("no.db")},
		`Name: "not a name"`:                                        m.args("status", "--name", "not a name"),
	} {
		o := execute(t, args...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) || o.stdout != "" {
			t.Errorf("%v: exit code %d, %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
}

func TestASeedBeforeInstallSaysThatInstallIsMissing(t *testing.T) {
	m := newMovable(t, 5)
	if o := m.must(t, command.MigrateNotReady, "seed", "--margin", "1000"); !strings.Contains(o.stderr, "run shardid migrate install first") {
		t.Errorf("%s", o.stderr)
	}
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "1000")
}

func TestABlockingFindingEndsWithTwo(t *testing.T) {
	m := newMovable(t, 5)
	m.exec(t, "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id))")
	if o := m.must(t, command.ExitUnclean, "inspect"); !strings.Contains(o.stdout, "block source/orders: the table items") {
		t.Errorf("%s", o.stdout)
	}
}

func TestARowWithoutAShardingKeyEndsWithTwo(t *testing.T) {
	m := newMovable(t, 5)
	m.exec(t, "ALTER TABLE orders ADD COLUMN owner INTEGER", "UPDATE orders SET owner = 1 WHERE id <> 3")
	layout := strings.Replace(readFile(t, m.file("shards.json")), `"user_id"`, `"owner"`, 1)
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, command.ExitUnclean, "inspect")
	if o := m.must(t, command.ExitUnclean, "run", "--once"); !strings.Contains(o.stderr, "owner is NULL in 1 row, the first of which is row 3") {
		t.Errorf("%s", o.stderr)
	}
}

func TestRowsThatDifferEndWithThree(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	east := openFile(t, m.file("east.db"))
	if _, err := east.ExecContext(t.Context(), "DELETE FROM orders_0 WHERE id = 4"); err != nil {
		t.Fatal(err)
	}
	if o := m.must(t, command.ExitUnclean, "verify"); !strings.Contains(o.stdout, "orders 4: missing on east/orders_0") {
		t.Errorf("%s", o.stdout)
	}
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "verify")
}

func TestOfManyRowsThatDifferSomeAreShown(t *testing.T) {
	m := newMovable(t, 400)
	east := openFile(t, m.file("east.db"))
	verify := func(more ...string) string {
		m.must(t, 0, "run", "--once")
		if _, err := east.ExecContext(t.Context(), "DELETE FROM orders_0"); err != nil {
			t.Fatal(err)
		}
		return m.must(t, command.ExitUnclean, "verify", more...).stdout
	}
	if said := verify(); strings.Count(said, "missing on east/orders_0") != 20 || !strings.Contains(said, "… of 120 rows that differ; --json lists the first 120\n") {
		t.Errorf("%s", said)
	}
	if said := verify("--json"); strings.Count(said, `"kind": "missing"`) != 120 {
		t.Errorf("%s", said)
	}
}

func TestAbortOfAFinalizedJobSaysThatItIsOver(t *testing.T) {
	m := newMovable(t, 20)
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	if o := m.must(t, command.MigrateNotReady, "abort", "--yes"); !strings.Contains(o.stderr, "roll it back first") {
		t.Errorf("%s", o.stderr)
	}
	m.must(t, 0, "finalize", "--yes")
	if o := m.must(t, command.MigrateNotReady, "abort", "--yes"); !strings.Contains(o.stderr, "the job is finalized: its shards serve for good, so there is nothing to abort; drop what it left behind by hand, after its retired tables") {
		t.Errorf("%s", o.stderr)
	}
}

func TestAnotherTableThanWasPlannedEndsWithEight(t *testing.T) {
	m := newMovable(t, 5)
	m.must(t, 0, "plan", "--out", m.file("plan.json"))
	m.exec(t, "ALTER TABLE orders ADD COLUMN extra TEXT")
	m.must(t, command.MigrateChanged, "run", "--plan", m.file("plan.json"))
	if now := m.phase(t); now != migrate.PhaseNone {
		t.Errorf("phase %s", now)
	}
}

func TestAThrottleThatLastsTooLongEndsWithSeven(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, command.MigrateThrottled, "run", "--throttle-file", m.file("shards.json"), "--max-throttle", "1ms")
	m.must(t, 0, "run", "--once", "--throttle-file", m.file("gone"))
}

// background is a run under way.
type background struct {
	stop func()
	done chan outcome
}
