// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/migration"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
)

func TestAStatusSaysWhoLedLastAndWhatToGiveNext(t *testing.T) {
	m := newMovable(t, 50)
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "has not begun") || !strings.Contains(o.stdout, "next: shardid migrate inspect --config "+m.file("shards.json")+"\n") {
		t.Errorf("before the job: %s", o.stdout)
	}
	m.must(t, 0, "status", "--check")
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	m.exec(t, "INSERT INTO orders (user_id) VALUES (7)")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// The runner has ended a minute ago.
	m.exec(t, "UPDATE shardid_runner SET heard = heard - 60, began = began - 60, caught = heard - 65")
	o := m.must(t, command.MigrateNotReady, "status", "--check")
	next := "shardid migrate run --config " + m.file("shards.json")
	for _, want := range []string{
		"is following", "1 change waits, the oldest for at most ",
		fmt.Sprintf("no runner: last heard from %s pid %d, 6", host, os.Getpid()), "s ago; start: " + next + "\n", "next: " + next + "\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	m.exec(t, "DROP TABLE shardid_runner") // as a runner of an older version leaves it
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "no runner: none has written yet") {
		t.Errorf("without a heartbeat: %s", o.stdout)
	}
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	m.must(t, 0, "finalize", "--yes")
	if o := m.must(t, 0, "status", "--check"); strings.Contains(o.stdout, "runner:") || strings.Contains(o.stdout, "no runner") || strings.Contains(o.stdout, "next:") {
		t.Errorf("of a job that is over: %s", o.stdout)
	}
}

func TestAStatusOfAJobThatHasNotBegunNamesTheStepAfterWhatIsThere(t *testing.T) {
	m := newMovable(t, 50)
	flags := " --config " + m.file("shards.json")
	says := func(after, want string) {
		t.Helper()
		if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "job orders has not begun") || !strings.Contains(o.stdout, "\nnext: "+want) {
			t.Errorf("after %s:\n%s\nwant next: %s", after, o.stdout, want)
		}
	}
	says("nothing", "shardid migrate inspect"+flags+"\nthen: plan and install, ")
	m.must(t, 0, "install")
	says("install", "choose MARGIN, three times as many ids as the tables get until the cutover (runbook, step 3), then shardid migrate seed"+flags+" --margin MARGIN\n")
	m.must(t, 0, "seed", "--margin", "100")
	const deploy = "deploy the application with the router (runbook, step 4)"
	says("seed", deploy+", then shardid migrate run"+flags+"\n")
	var s migration.StatusShown
	if o := m.must(t, 0, "status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil || s.First != deploy || s.Next != "shardid migrate run"+flags {
		t.Errorf("as JSON: %s", o.stdout)
	}
	m.exec(t, "DELETE FROM shardid_seed WHERE name = 'orders'", "DELETE FROM leaf_alloc WHERE biz_tag = 'orders'")
	m.exec(t, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1000)")
	says("install, for a table whose ids a generator makes already", deploy)
}

func TestAStatusOfAFinalizedJobSaysWhatMayBeDropped(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	if o := m.must(t, 0, "status"); strings.Contains(o.stdout, "left on") {
		t.Errorf("before the end: %s", o.stdout)
	}
	m.must(t, 0, "finalize", "--yes")
	var s migration.StatusShown
	if o := m.must(t, 0, "status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil || len(s.Remains) != 4 {
		t.Fatalf("as JSON: %s", o.stdout)
	}
	var jobs int
	if err := m.source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'shardid%'").Scan(&jobs); err != nil || jobs != len(s.Remains[1].Tables) {
		t.Errorf("the source has %d tables of jobs (%v), and status names %v", jobs, err, s.Remains[1].Tables)
	}
	said := m.must(t, 0, "status").stdout
	for _, want := range []string{
		"\nleft on source: orders_old; drop when you need the space: they are an archive\n",
		"\nleft on source: shardid_job, shardid_span, ", "; drop when no program has sharding.Migration any more, and no other job of the source is under way\n",
		"\nleft on east: shardid_shard_fence, shardid_owner; drop after those of the source\nleft on west: ", "\ndrop them by hand, as step 10 of the runbook says\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	m.exec(t, "DROP TABLE shardid_preview")
	if o := m.must(t, 0, "status"); strings.Contains(o.stdout, "shardid_preview,") {
		t.Errorf("without the table: %s", o.stdout)
	}
	page := readFile(t, "../../docs/runbook.md")
	for _, tables := range [][]string{migration.JobTables, migration.ShardTables} {
		if drop := "DROP TABLE IF EXISTS " + strings.Join(tables, ", ") + ";"; !strings.Contains(page, drop) {
			t.Errorf("the runbook does not say %s", drop)
		}
	}
}

// Whoever pastes what is printed as next neither switches nor ends the possibility of a rollback.
func TestAStatusNamesOneCommandThatDecidesNothing(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&program{}).run(ctx, m.args("run"), io.Discard, io.Discard)
	}()
	defer func() { stop(); <-ended }()
	says := func(phase, then string) {
		t.Helper()
		want := "next: shardid migrate verify --config " + m.file("shards.json") + "\nthen: " + then + "\n"
		var said string
		testwait.Until(t, "a runner is at work on a job that is "+phase, func() bool {
			said = m.must(t, 0, "status").stdout
			return strings.Contains(said, "is "+phase) && strings.Contains(said, "\nrunner: ")
		})
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	says("following", "preview --check, and cutover when both have exited with 0")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	says("switched", "finalize, which ends the possibility of a rollback, when you are certain")
}

func TestAStatusKnowsAtOnceThatARunnerHasEnded(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	next := "next: shardid migrate run --config " + m.file("shards.json") + "\n"
	m.must(t, 0, "run", "--once")
	o := m.must(t, command.MigrateNotReady, "status", "--check")
	if !strings.Contains(o.stdout, fmt.Sprintf("pid %d, ", os.Getpid())) || !strings.Contains(o.stdout, "no runner: last heard from ") || !strings.Contains(o.stdout, next) {
		t.Errorf("after a run:\n%s", o.stdout)
	}
}

func TestAStatusRightAfterASwitchSaysThatARunnerTakesOver(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	flags := " --config " + m.file("shards.json")
	says := func(wants ...string) {
		t.Helper()
		said := m.must(t, 0, "status").stdout
		for _, want := range wants {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
	}
	for _, way := range []string{"cutover", "rollback"} {
		m.must(t, 0, way, "--max-pause", "10m")
		of := fmt.Sprintf("the %s of %s pid %d, which ended ", way, host, os.Getpid())
		says("\nbetween runners: the last to lead was "+of, " s ago; a runner that waits takes over within 5 s\n", "\nnext: wait for 5 s, then shardid migrate status"+flags+"\n")
		m.exec(t, "UPDATE shardid_steer SET wanted_until = wanted_until - 5", "UPDATE shardid_runner SET heard = heard - 5, began = began - 5")
		says("\nno runner: none has led since "+of, " s ago; start: shardid migrate run"+flags+"\n", "\nnext: shardid migrate run"+flags+"\n")
	}
	m.exec(t, "UPDATE shardid_steer SET wanted_until = wanted_until + 60")
	says("\nbetween runners: a command has asked to lead the job; a runner that waits leads again when it has ended, or in 5", " s if it was killed\n")
}

func TestAStatusThatChecksWaitsForTheRunnerThatTakesOver(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	if o := m.must(t, command.MigrateNotReady, "status", "--check"); !strings.Contains(o.stdout, "\nno runner: none has led since the cutover of ") {
		t.Errorf("%s", o.stdout)
	}
}

func TestARunSaysForWhatItMakesRoomAndThatItGoesOn(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	ctx, stop := context.WithCancel(t.Context())
	var out strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&program{}).run(ctx, m.args("run"), io.Discard, &out)
	}()
	leads := func(phase migrate.Phase) {
		t.Helper()
		testwait.Until(t, "a runner leads", func() bool {
			var s migration.StatusShown
			o := m.must(t, 0, "status", "--json")
			return json.Unmarshal([]byte(o.stdout), &s) == nil && s.Phase == phase && s.Runner != nil && s.Runner.Leads
		})
	}
	leads(migrate.PhaseFollowing)
	m.must(t, 0, "cutover", "--max-pause", "10m")
	leads(migrate.PhaseSwitched)
	stop()
	<-ended
	said := out.String()
	_, after, found := strings.Cut(said, "making room: another command is to lead the job for a moment\n")
	if !found || !strings.Contains(after, "going on: job orders is switched\n") {
		t.Errorf("%s", said)
	}
}

func TestARunSaysWhatTheCommandDoesThatLeadsInItsPlace(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "pause") // makes the table of requests
	ctx, stop := context.WithCancel(t.Context())
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&program{}).run(ctx, m.args("run"), io.Discard, to)
		_ = to.Close() // a pipe has no errors
	}()
	defer func() { stop(); <-ended }()
	lines := make(chan string, 100)
	go func() {
		for of := bufio.NewScanner(from); of.Scan(); {
			select {
			case lines <- of.Text():
			default: // nobody waits for so many
			}
		}
	}()
	says := func(want string) {
		t.Helper()
		for line := ""; line != want; {
			line = testwait.For(t, lines, want)
		}
	}
	testwait.Until(t, "the runner follows", func() bool { return strings.Contains(m.must(t, 0, "status").stdout, "\nrunner: ") })
	m.exec(t, "UPDATE shardid_steer SET asked = asked + 1, wanted_until = unixepoch() + 600")
	says("making room: another command is to lead the job for a moment")
	testwait.Until(t, "it has stopped", func() bool { return strings.Contains(m.must(t, 0, "status").stdout, "\nbetween runners: ") })
	m.exec(t, "UPDATE shardid_runner SET doing = 'switches to the shards', heard = unixepoch() + 600")
	says("paused: the command that leads the job switches to the shards")
	m.exec(t, "UPDATE shardid_steer SET wanted_until = 0")
	says("going on: job orders is following")
}

func TestAStatusSaysByWhatTheCopyIsHeldBack(t *testing.T) {
	m := newMovable(t, 50)
	if err := os.WriteFile(m.file("stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	ended := make(chan outcome)
	go func() { ended <- execute(t, m.args("run", "--once", "--throttle-file", m.file("stop"))...) }()
	testwait.Until(t, "the runner says why it waits", func() bool {
		var s migration.StatusShown
		if err := json.Unmarshal([]byte(m.must(t, 0, "status", "--json", "--check").stdout), &s); err != nil {
			t.Fatal(err)
		}
		return s.Runner != nil && s.Runner.Leads && strings.Contains(s.Runner.Cause, "stop exists") && strings.HasPrefix(s.Runner.Does, "copies orders")
	})
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "throttled: the file "+m.file("stop")+" exists") {
		t.Errorf("%s", o.stdout)
	}
	if err := os.Remove(m.file("stop")); err != nil {
		t.Fatal(err)
	}
	if o := <-ended; o.code != 0 {
		t.Errorf("run: %d %s", o.code, o.stderr)
	}
}

func TestAStatusSaysWhyNoRunnerCanGoOn(t *testing.T) {
	m := newMovable(t, 50)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100")
	m.must(t, 0, "run", "--once")
	if o := m.must(t, 0, "status"); strings.Contains(o.stdout, "can go on") {
		t.Errorf("before a table was changed: %s", o.stdout)
	}
	m.exec(t, "ALTER TABLE orders ADD COLUMN remark TEXT")
	const why = "table orders was altered; abort the job and begin again"
	if o := m.must(t, command.MigrateChanged, "run", "--once"); !strings.Contains(o.stderr, why) {
		t.Errorf("a run: %s", o.stderr)
	}
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "no runner can go on: "+why+"\n") || strings.Contains(o.stdout, "migrate run") {
		t.Errorf("a status: %s", o.stdout)
	}
	var s migration.StatusShown
	if o := m.must(t, 0, "status", "--json"); json.Unmarshal([]byte(o.stdout), &s) != nil || s.Changed != why || s.Next != "" {
		t.Errorf("as JSON: %s", o.stdout)
	}
	m.must(t, command.MigrateNotReady, "status", "--check")
	layout := readFile(t, m.file("shards.json"))
	if err := os.WriteFile(m.file("shards.json"), []byte(strings.Replace(layout, "low(2)", "mod(4)", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := m.must(t, 0, "status"); !strings.Contains(o.stdout, "no runner can go on: the job was begun with another configuration: table orders: rule") {
		t.Errorf("with another configuration: %s", o.stdout)
	}
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, 0, "abort", "--yes")
	if o := m.must(t, 0, "status"); strings.Contains(o.stdout, "can go on") {
		t.Errorf("of an aborted job: %s", o.stdout)
	}
}
