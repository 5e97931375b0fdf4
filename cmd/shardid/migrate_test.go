// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/migration"
	"github.com/shardid/shardid/schema/migrate"
)

// movable is a shop whose orders are to go to four shards in two files.
type movable struct {
	dir    string
	source *sql.DB
}

func newMovable(t *testing.T, rows int) *movable {
	t.Helper()
	m := &movable{dir: t.TempDir()}
	m.source = openFile(t, filepath.Join(m.dir, "shop.db"))
	m.exec(t, "PRAGMA journal_mode=WAL",
		"CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, note TEXT)",
		fmt.Sprintf("INSERT INTO orders (user_id, note) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i %% 10, 'note ' || i FROM n", rows))
	layout := `{"databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}},
		"tables": [{"name": "orders", "key": "user_id", "rule": "low(2)", "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%d"}}]}`
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *movable) file(name string) string { return filepath.Join(m.dir, name) }

func (m *movable) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := m.source.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func (m *movable) args(verb string, more ...string) []string {
	return append([]string{"migrate", verb, "--config", m.file("shards.json"), "--source", m.file("shop.db")}, more...)
}

// must executes a verb that has to end with the code.
func (m *movable) must(t *testing.T, code int, verb string, more ...string) outcome {
	t.Helper()
	o := execute(t, m.args(verb, more...)...)
	if o.code != code {
		t.Fatalf("%s %v: exit code %d, want %d: %s%s", verb, more, o.code, code, o.stdout, o.stderr)
	}
	return o
}

func (m *movable) progress(t *testing.T) (p migrate.Progress) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.must(t, 0, "status", "--json").stdout), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (m *movable) phase(t *testing.T) migrate.Phase {
	t.Helper()
	return m.progress(t).Phase
}

func TestMigrateGoesThroughTheRunbook(t *testing.T) {
	m := newMovable(t, 500)
	m.must(t, 0, "inspect")
	m.must(t, 0, "plan", "--out", m.file("plan.json"))
	m.must(t, 0, "install")
	if o := m.must(t, 0, "seed", "--margin", "10000"); !strings.Contains(o.stdout, "begin at 10,501") {
		t.Errorf("seed: %s", o.stdout)
	}
	m.must(t, command.MigrateNotReady, "cutover")
	m.must(t, 0, "run", "--once", "--plan", m.file("plan.json"))
	m.must(t, 0, "verify")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	if now := m.phase(t); now != migrate.PhaseSwitched {
		t.Errorf("after the cutover: %s", now)
	}
	east := openFile(t, m.file("east.db"))
	if _, err := east.ExecContext(t.Context(), "INSERT INTO orders_0 VALUES (10600, 4, 'on a shard')"); err != nil {
		t.Fatal(err)
	}
	m.must(t, 0, "rollback", "--max-pause", "10m")
	var note string
	if err := m.source.QueryRowContext(t.Context(), "SELECT note FROM orders WHERE id = 10600").Scan(&note); err != nil || note != "on a shard" {
		t.Errorf("the rollback brought %q (%v)", note, err)
	}
	m.must(t, 0, "cutover", "--max-pause", "10m") // generators went on making the ids
	m.must(t, command.ExitInput, "finalize")
	m.must(t, 0, "finalize", "--yes")
	if o := m.must(t, 0, "run"); !strings.Contains(o.stderr, "nothing left to do") {
		t.Errorf("run after the end: %s", o.stderr)
	}
	if o := m.must(t, command.MigrateNotReady, "rollback"); !strings.HasPrefix(o.stderr, "shardid: migrate: job orders: wrong phase: ") {
		t.Errorf("rollback after the end: %s", o.stderr)
	}
	if o := m.must(t, 0, "pause"); !strings.Contains(o.stderr, "job orders is finalized: there is nothing to pause") {
		t.Errorf("pause after the end: %s", o.stderr)
	}
}

func TestVerbsThatOnlyReadCreateNoFiles(t *testing.T) {
	m := newMovable(t, 50)
	for verb, code := range map[string]int{
		"inspect": 0, "plan": 0, "status": 0, "install": 0, "pause": 0, "resume": 0,
		"verify": command.MigrateNotReady, "cutover": command.MigrateNotReady, "rollback": command.MigrateNotReady,
	} {
		if o := m.must(t, code, verb); strings.Contains(o.stdout+o.stderr, `the job is ""`) || strings.Contains(o.stdout, "memory") {
			t.Errorf("%s: %s%s", verb, o.stdout, o.stderr)
		}
		for _, name := range []string{"east.db", "west.db"} {
			if _, err := os.Stat(m.file(name)); err == nil {
				t.Errorf("%s made %s", verb, name)
			}
		}
	}
}

func TestATableThatTheSourceDoesNotHaveIsAMistakeInTheName(t *testing.T) {
	m := newMovable(t, 5)
	m.exec(t, "ALTER TABLE orders RENAME TO order_s")
	for _, args := range [][]string{{"inspect"}, {"plan"}, {"seed", "--margin", "10"}, {"run", "--once"}, {"status"}, {"verify"}} {
		if o := m.must(t, command.ExitInput, args[0], args[1:]...); !strings.Contains(o.stderr, "no table orders") {
			t.Errorf("%v: %s", args, o.stderr)
		}
	}
}

func TestAMarginBeyondTheLargestIDIsRefused(t *testing.T) {
	m := newMovable(t, 5)
	m.must(t, 0, "install")
	for _, more := range [][]string{{}, {"--dry-run"}} {
		o := m.must(t, command.ExitInput, "seed", append([]string{"--margin", "9223372036854775807"}, more...)...)
		if !strings.Contains(o.stderr, "give a smaller margin") {
			t.Errorf("%s", o.stderr)
		}
	}
}

func TestTheLastLineOfARunSaysWhereTheJobStands(t *testing.T) {
	m := newMovable(t, 50)
	o := m.must(t, 0, "run", "--once")
	lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
	if last := lines[max(len(lines)-2, 0)]; !strings.HasPrefix(last, "following  0 changes wait") || strings.Contains(o.stderr, "none") {
		t.Errorf("%s", o.stderr)
	}
}

func TestARunThatEndsByItselfBringsChangesOfTheShardsBack(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	east := openFile(t, m.file("east.db"))
	if _, err := east.ExecContext(t.Context(), "UPDATE orders_0 SET note = 'changed'"); err != nil {
		t.Fatal(err)
	}
	if o := m.must(t, 0, "run", "--once"); !strings.Contains(o.stderr, "switched  0 changes wait\nall changes that were noted on the shards are copied back") {
		t.Errorf("%s", o.stderr)
	}
	var n int
	if err := m.source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders_old WHERE note = 'changed'").Scan(&n); err != nil || n == 0 {
		t.Errorf("%d rows were brought back (%v)", n, err)
	}
}

func TestARunThatEndsByItselfSaysWhatWaits(t *testing.T) {
	m := newMovable(t, 5)
	m.exec(t, "CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id))", "INSERT INTO items VALUES (1, 99)")
	layout := readFile(t, m.file("shards.json"))
	_, orders, _ := strings.Cut(layout, `"tables": [`)
	items := strings.NewReplacer(`"name": "orders"`, `"name": "items", "via": "order_id"`, "orders_%d", "items_%d").Replace(orders)
	layout = strings.TrimSuffix(layout, "]}") + ", " + items
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := m.must(t, 0, "run", "--once"); !strings.Contains(o.stderr, "but 1 change waits: made since, or of a row that has to wait for another one, as a child does whose parent is missing") {
		t.Errorf("%s", o.stderr)
	}
}

func TestACutoverWithAnotherRuleThanWasCopiedByEndsWithEight(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	layout := readFile(t, m.file("shards.json"))
	if err := os.WriteFile(m.file("shards.json"), []byte(strings.Replace(layout, "low(2)", "hash(8)", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"cutover", "run", "verify", "rollback"} {
		if o := m.must(t, command.MigrateChanged, verb); !strings.Contains(o.stderr, "the job was begun with another configuration: table orders: rule; use that configuration") {
			t.Errorf("%s: %s", verb, o.stderr)
		}
	}
	if now := m.phase(t); now != migrate.PhaseFollowing {
		t.Errorf("phase %s", now)
	}
}

func TestARollbackOfAJobThatWasNotSwitchedIsRefused(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	o := m.must(t, command.MigrateNotReady, "rollback")
	if !strings.Contains(o.stderr, "the job is following, and was not switched: there is nothing to roll back") || strings.Contains(o.stderr, "seed") {
		t.Errorf("%s", o.stderr)
	}
	m.must(t, 0, "cutover", "--max-pause", "10m")
	for range 2 { // the second one may follow a first one whose answer was lost
		m.must(t, 0, "rollback", "--max-pause", "10m")
	}
}

func TestVerbsOnAJobThatWasNotBegunDoNotSayThatTheyDidSomething(t *testing.T) {
	m := newMovable(t, 50)
	if o := m.must(t, 0, "pause"); !strings.Contains(o.stderr, "job orders has not begun; when it does") {
		t.Errorf("%s", o.stderr)
	}
	if o := m.must(t, 0, "abort", "--yes"); !strings.Contains(o.stderr, "there is no job orders") {
		t.Errorf("%s", o.stderr)
	}
}

// Until another host has made the triggers there is nothing to be seen of the job.
func TestARunnerThatStandsByForAJobThatIsBeingBegunWaits(t *testing.T) {
	m := newMovable(t, 50)
	watch := func(_ context.Context, o *migration.Operation) error {
		r := &migration.Runner{Operation: o}
		for range 2 {
			if done, err := r.Over(t.Context()); done || err != nil {
				t.Errorf("over: %t (%v)", done, err)
			}
		}
		m.must(t, 0, "run", "--once")
		if done, err := r.Over(t.Context()); done || err != nil {
			t.Errorf("of a job under way: %t (%v)", done, err)
		}
		m.must(t, 0, "abort", "--yes")
		done, err := r.Over(t.Context())
		if !done {
			t.Error("a job that was aborted is not over")
		}
		return err
	}
	o := &migration.Migration{Config: m.file("shards.json"), Source: m.file("shop.db"), Cmd: migration.New()}
	if err := o.With(t.Context(), watch); err != nil {
		t.Fatal(err)
	}
}

func TestARunnerSaysOnceThatATransactionIsInItsWay(t *testing.T) {
	var stderr bytes.Buffer
	m := &migration.Migration{Cmd: migration.New()}
	m.Cmd.SetErr(&stderr)
	r := &migration.Runner{Operation: &migration.Operation{Migration: m}}
	for range 2 {
		r.Observe(migrate.Step{Name: migrate.StepBlocked, Table: "orders"})
	}
	if said := stderr.String(); strings.Count(said, "waiting for transactions on table orders") != 1 {
		t.Errorf("%s", said)
	}
}

func TestARunnerSaysOnceWhatItWaitsForAndThatItGoesOn(t *testing.T) {
	var stderr bytes.Buffer
	m := &migration.Migration{Cmd: migration.New()}
	m.Cmd.SetErr(&stderr)
	r := &migration.Runner{Operation: &migration.Operation{Migration: m}}
	for range 2 {
		r.Observe(migrate.Step{Name: migrate.StepWaiting})
		r.Observe(migrate.Step{Name: migrate.StepWaiting, Err: errors.New("connection refused")})
		r.Observe(migrate.Step{Name: migrate.StepWaiting, Err: errors.New("invalid connection")})
		r.Observe(migrate.Step{Name: migrate.StepLeading})
	}
	if said, want := stderr.String(), strings.Repeat("waiting, and trying again: connection refused\ngoing on\n", 2); said != want {
		t.Errorf("%s", said)
	}
}

func TestAClosedShardThatDoesNotFitIsNamedAsItIsCalled(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	m.must(t, 0, "rollback", "--max-pause", "10m")
	m.must(t, 0, "abort", "--yes")
	m.exec(t, "ALTER TABLE orders ADD COLUMN extra TEXT")
	if o := m.must(t, command.ExitUnclean, "run", "--once"); !strings.Contains(o.stderr, "east/orders_0_sealed: it has no column extra (drop this table, so that the job creates it, or add the column)") {
		t.Errorf("%s", o.stderr)
	}
	for i, name := range []string{"east.db", "west.db", "east.db", "west.db"} {
		if _, err := openFile(t, m.file(name)).ExecContext(t.Context(), fmt.Sprintf("DROP TABLE orders_%d_sealed", i)); err != nil {
			t.Fatal(err)
		}
	}
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "verify")
}

func TestASwitchCountsChangesInGoodEnglish(t *testing.T) {
	for n, want := range map[int64]string{0: "0 changes were", 1: "1 change was", 2: "2 changes were"} {
		if got := migration.Applied(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestACutoverWaitsUntilGeneratorsBeginAboveEveryID(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			m := newMovable(t, 50)
			m.exec(t, "PRAGMA journal_mode="+mode)
			m.must(t, 0, "install")
			m.must(t, 0, "seed", "--margin", "10", "--step", "10") // the first generated id is 61
			m.exec(t, "INSERT INTO orders (id, user_id) VALUES (61, 1)",
				"UPDATE leaf_alloc SET max_id = max_id + 10") // by a process that holds 61 to 70 from then on
			m.must(t, 0, "run", "--once")
			o := m.must(t, command.MigrateNotReady, "cutover", "--max-pause", "10m")
			if !strings.Contains(o.stderr, "orders has ids up to 61, and its generator begins at 61; run shardid migrate seed with a larger margin") {
				t.Errorf("%s", o.stderr)
			}
			if now := m.phase(t); now != migrate.PhaseFollowing {
				t.Errorf("phase %s", now)
			}
			m.must(t, 0, "seed", "--margin", "10")
			m.must(t, 0, "cutover", "--max-pause", "10m")
		})
	}
}

// A counter that was raised by other means than seed is held against the ids.
func TestACutoverLooksAtACounterThatSeedDidNotRaise(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.exec(t, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 50, 10)")
	m.must(t, 0, "run", "--once")
	m.must(t, command.MigrateNotReady, "cutover", "--max-pause", "10m")
	m.exec(t, "UPDATE leaf_alloc SET max_id = 51")
	m.must(t, 0, "cutover", "--max-pause", "10m")
}

func TestMigrateAbortLeavesTheSourceAsItWas(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "abort", "--yes")
	var triggers int
	if err := m.source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger'").Scan(&triggers); err != nil || triggers != 0 {
		t.Errorf("%d triggers (%v)", triggers, err)
	}
	if now := m.phase(t); now != migrate.PhaseNone {
		t.Errorf("phase %s", now)
	}
}

func TestDryRunsPrintSQLAndWriteNothing(t *testing.T) {
	m := newMovable(t, 5)
	for _, verb := range []string{"install", "run"} {
		if o := m.must(t, 0, verb, "--dry-run"); !strings.Contains(o.stdout, "CREATE TABLE") {
			t.Errorf("%s: %s", verb, o.stdout)
		}
	}
	traces := func(query string) {
		t.Helper()
		var n int
		if err := m.source.QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d traces (%v)", n, err)
		}
	}
	traces("SELECT COUNT(*) FROM sqlite_schema WHERE name NOT IN ('orders', 'sqlite_sequence')")
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--dry-run", "--margin", "5")
	traces("SELECT (SELECT COUNT(*) FROM leaf_alloc) + (SELECT COUNT(*) FROM sqlite_schema WHERE name = 'shardid_seed')")
}

func (m *movable) background(t *testing.T, more ...string) *background {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &background{stop, make(chan outcome, 1)}
	go func() {
		var stdout, stderr bytes.Buffer
		code := (&program{}).run(ctx, m.args("run", more...), &stdout, &stderr)
		b.done <- outcome{code, stdout.String(), stderr.String()}
	}()
	t.Cleanup(stop)
	return b
}

// until waits for a phase.
func (m *movable) until(t *testing.T, phase migrate.Phase) {
	t.Helper()
	for m.phase(t) != phase {
		pauseOrFail(t)
	}
}

func pauseOrFail(t *testing.T) {
	t.Helper()
	if err := migration.PauseFor(t.Context(), 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

func TestARunnerStopsForASwitchAndContinues(t *testing.T) {
	m := newMovable(t, 500)
	runner := m.background(t)
	m.until(t, migrate.PhaseFollowing)
	m.must(t, 0, "cutover", "--max-pause", "10m")
	m.must(t, 0, "rollback", "--max-pause", "10m")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	m.must(t, 0, "finalize", "--yes")
	if o := <-runner.done; o.code != 0 || !strings.Contains(o.stderr, "nothing left to do") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
}

func TestAPausedJobCopiesNothingUntilItIsResumed(t *testing.T) {
	m := newMovable(t, 500)
	m.must(t, 0, "pause")
	runner := m.background(t, "--once", "--max-throttle", "1ms")
	m.until(t, migrate.PhaseCopying)
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "paused") || !strings.Contains(o.stdout, " 0.0 %") {
		t.Errorf("%s", o.stdout)
	}
	m.must(t, 0, "resume")
	if o := <-runner.done; o.code != 0 {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
}

func TestAnInterruptedRunCanGoOn(t *testing.T) {
	m := newMovable(t, 500)
	runner := m.background(t, "--json")
	m.until(t, migrate.PhaseFollowing)
	runner.stop()
	o := <-runner.done
	if o.code != command.ExitInterrupted || !strings.Contains(o.stderr, "resumes the work") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	first, _, _ := strings.Cut(o.stdout, "\n")
	var line struct{ Job, Phase string }
	if err := json.Unmarshal([]byte(first), &line); err != nil || line.Job != "orders" {
		t.Errorf("%q (%v)", first, err)
	}
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "verify")
}

// On SQLite, where no lock ends with its process, the runner that was started
// last leads.
func TestARunnerWhoseJobWasTakenOverEndsWithFive(t *testing.T) {
	m := newMovable(t, 500)
	first := m.background(t, "--json")
	for m.progress(t).Epoch != 2 { // it leads once to copy and once to follow
		pauseOrFail(t)
	}
	m.must(t, 0, "run", "--once")
	if o := <-first.done; o.code != command.MigrateFenced || !strings.Contains(o.stderr, "a newer runner leads this job") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	m.must(t, 0, "verify")
}

func TestTablesUnderBothNamesEndWithNine(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "run", "--once")
	m.exec(t, "CREATE TABLE orders_old AS SELECT * FROM orders")
	for _, args := range [][]string{{"cutover"}, {"run", "--once"}} {
		if o := m.must(t, command.MigrateUnclear, args[0], args[1:]...); !strings.Contains(o.stderr, "both orders and orders_old exist") {
			t.Errorf("%v: %s", args, o.stderr)
		}
	}
	m.exec(t, "DROP TABLE orders_old")
	m.must(t, 0, "cutover", "--max-pause", "10m")
}

func TestTheRunbookNamesCommandsThatExist(t *testing.T) {
	seen := 0
	for line := range strings.Lines(readFile(t, "../../docs/runbook.md")) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "migrate" {
			continue
		}
		seen++
		if o := execute(t, append(words, "--help")...); o.code != 0 || !strings.Contains(o.stdout, "shardid migrate "+words[1]) {
			t.Errorf("%s: exit code %d, %s", line, o.code, o.stderr)
		}
	}
	if seen < 10 {
		t.Errorf("%d commands", seen)
	}
}

func TestAJobThatLeavesOutATableOfAGroupIsWarnedAbout(t *testing.T) {
	m := newMovable(t, 10)
	m.exec(t, "CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, order_id INTEGER)")
	layout := `{"databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}}, "tables": [
		{"name": "orders", "key": "user_id", "rule": "low(2)", "group": "shop", "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%d"}},
		{"name": "items", "key": "user_id", "rule": "low(2)", "group": "Shop", "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "items_%d"}}]}`
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	const says = "its group shop also has items, which the job leaves out"
	for _, verb := range []string{"inspect", "plan"} {
		if o := m.must(t, 0, verb, "--tables", "orders"); !strings.Contains(o.stdout+o.stderr, says) {
			t.Errorf("%s: %s%s", verb, o.stdout, o.stderr)
		}
		if o := m.must(t, 0, verb, "--tables", "orders,ITEMS"); strings.Contains(o.stdout+o.stderr, "leaves out") {
			t.Errorf("%s of all tables: %s%s", verb, o.stdout, o.stderr)
		}
	}
	var found []migrate.Finding
	if err := json.Unmarshal([]byte(m.must(t, 0, "inspect", "--tables", "orders", "--json").stdout), &found); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.OutsideJob && f.Severity == migrate.Warn }) {
		t.Errorf("inspect --json: %+v", found)
	}
}

func TestACutoverAcceptsIDsThatGeneratorsHaveMadeBeforeTheJob(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.exec(t, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 200, 100)", // a process holds 101 to 200
		"INSERT INTO orders (id, user_id) VALUES (101, 1)")
	m.must(t, 0, "seed", "--margin", "10", "--step", "10") // is not necessary
	m.exec(t, "UPDATE leaf_alloc SET max_id = max_id + 100", "INSERT INTO orders (id, user_id) VALUES (201, 1)")
	m.must(t, 0, "run", "--once")
	o := m.must(t, command.MigrateNotReady, "cutover", "--max-pause", "10m")
	const forget = "DELETE FROM shardid_seed WHERE name = 'orders'"
	if !strings.Contains(o.stderr, "or, if generators make the ids of all programs already: "+forget) {
		t.Errorf("%s", o.stderr)
	}
	m.exec(t, forget)
	m.must(t, 0, "cutover", "--max-pause", "10m")
}

func TestMissingCopiesOfABroadcastTableAreWarnedAboutBeforeTheSwitch(t *testing.T) {
	m := newMovable(t, 10)
	layout := `{"databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}}, "broadcast": ["products"],
		"tables": [{"name": "orders", "key": "user_id", "rule": "low(2)", "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%d"}}]}`
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	east := openFile(t, m.file("east.db"))
	if _, err := east.ExecContext(t.Context(), "CREATE TABLE products (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	const says = "the file lists it as broadcast, and there is no such table"
	if o := m.must(t, 0, "inspect"); !strings.Contains(o.stdout, "warn west/products: "+says) || strings.Contains(o.stdout, "east/products") {
		t.Errorf("inspect: %s%s", o.stdout, o.stderr)
	}
	if o := m.must(t, 0, "plan"); !strings.Contains(o.stderr, "warning: west: products: "+says) {
		t.Errorf("plan: %s", o.stderr)
	}
	m.must(t, 0, "run", "--once")
	if o := m.must(t, 0, "cutover", "--max-pause", "10m"); !strings.Contains(o.stderr, "warning: west: products: "+says) {
		t.Errorf("cutover: %s", o.stderr)
	}
}
