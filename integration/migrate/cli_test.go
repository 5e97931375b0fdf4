// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
)

const moverPassword = "s3cret-of:the@mover"

// operator runs the built program as a DBA would, with the runbook's user.
type operator struct {
	*migrationShop

	dir, program string
	env          []string

	mu   sync.Mutex
	said bytes.Buffer // by all commands, on both streams
}

func newOperator(t *testing.T, s *migrationShop) *operator {
	t.Helper()
	o := &operator{migrationShop: s, dir: t.TempDir(), program: server.Command(t)}
	o.grant(t)
	o.configure(t)
	return o
}

// grant makes the user mover with the rights that the runbook gives.
func (o *operator) grant(t *testing.T) {
	t.Helper()
	for _, db := range []*sql.DB{o.source, o.shards["b"]} {
		own := mysqlGrants
		switch {
		case o.speaks == postgresShop:
			database.Exec(t, db, "CREATE USER mover PASSWORD '"+moverPassword+"'")
			continue
		case isMariaDB(t, db):
			own = mariadbGrants
		}
		database.Exec(t, db, "CREATE USER mover IDENTIFIED BY '"+moverPassword+"'")
		for _, grant := range slices.Concat(sourceGrants, shardGrants, own) {
			database.Exec(t, db, grant)
		}
	}
	if o.speaks != postgresShop {
		return
	}
	for _, statement := range []string{"CREATE ROLE shop_owner", "ALTER TABLE orders OWNER TO shop_owner", ownerGrant} {
		database.Exec(t, o.source, statement)
	}
	for _, db := range o.databases() {
		for _, grant := range postgresGrants {
			database.Exec(t, db, grant)
		}
	}
}

func (o *operator) databases() []*sql.DB { return []*sql.DB{o.source, o.shards["a"], o.shards["b"]} }

func isMariaDB(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(version, "MariaDB")
}

// configure has one database in the environment and one in a file.
func (o *operator) configure(t *testing.T) {
	t.Helper()
	layout := `{"databases": {"a": {"env": "SHOP_A"}, "b": {"file": "shop-b.dsn"}},
		"tables": [{"name": "orders", "key": "user_id", "rule": "low(2)", "spread": {"databases": ["a", "b"], "tables": 4, "pattern": "orders_%02d"}}]}`
	for name, text := range map[string]string{"shards.json": layout, "shop-b.dsn": asMover(o.servers[1].DSN("shop_b")) + "\n"} {
		if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.env = append(os.Environ(), "SHARDID_SOURCE="+asMover(o.servers[0].DSN("shop")), "SHOP_A="+asMover(o.servers[0].DSN("shop_a")))
}

func asMover(dsn string) string {
	return strings.NewReplacer("root@", "mover:"+moverPassword+"@", "postgres@", url.UserPassword("mover", moverPassword).String()+"@").Replace(dsn)
}

// command is a running verb.
type command struct {
	*exec.Cmd

	operator       *operator
	stdout, stderr shownText
	ended          chan struct{}
}

// shownText is the output of a command, which may be read at any time.
type shownText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shownText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shownText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (o *operator) start(t *testing.T, verb string, args ...string) *command {
	t.Helper()
	args = append([]string{"migrate", verb, "--config", "shards.json"}, args...)
	c := &command{Cmd: exec.CommandContext(t.Context(), o.program, args...), operator: o, ended: make(chan struct{})}
	c.Dir, c.Env, c.Cmd.Stdout, c.Cmd.Stderr = o.dir, o.env, &c.stdout, &c.stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // ProcessState tells
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGCONT) // one that is stopped does not end
		_ = c.Process.Kill()                  // it may have ended
		<-c.ended
	})
	return c
}

// goesOn fails if the command has ended.
func (c *command) goesOn(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
		t.Fatalf("%v has ended: %s", c.Args, c.stderr.String())
	default:
	}
}

// code waits for the end.
func (c *command) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.ended:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	c.operator.mu.Lock()
	defer c.operator.mu.Unlock()
	c.operator.said.WriteString(c.stdout.String() + c.stderr.String())
	return c.ProcessState.ExitCode()
}

// must runs a verb that must exit with the code, and returns its stdout.
func (o *operator) must(t *testing.T, code int, verb string, args ...string) string {
	t.Helper()
	c := o.start(t, verb, args...)
	if got := c.code(t); got != code {
		t.Fatalf("%s %v: exit code %d, want %d: %s%s", verb, args, got, code, c.stdout.String(), c.stderr.String())
	}
	return c.stdout.String()
}

// jobStatus is what status prints for programs.
type jobStatus struct {
	Phase  string
	Epoch  int64
	Paused bool
	Tables []struct{ Copied float64 }
}

func (o *operator) status(t *testing.T) (s jobStatus) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.must(t, 0, "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// wait reads the job's status until it is as wanted, while runners must keep running.
func (o *operator) wait(t *testing.T, wanted func(jobStatus) bool, runners ...*command) jobStatus {
	t.Helper()
	for {
		for _, r := range runners {
			r.goesOn(t)
		}
		if s := o.status(t); wanted(s) {
			return s
		}
		pauseOrFail(t)
	}
}

func pauseOrFail(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(50 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// waitFor waits until a command has written a text.
func (c *command) waitFor(t *testing.T, text string) {
	t.Helper()
	waitForOneOf(t, text, c)
}

// waitForOneOf waits until one of the commands has written a text, while all must keep running.
func waitForOneOf(t *testing.T, text string, commands ...*command) {
	t.Helper()
	for {
		for _, c := range commands {
			if strings.Contains(c.stderr.String(), text) {
				return
			}
			c.goesOn(t)
		}
		pauseOrFail(t)
	}
}

// verify goes on until all rows could be compared, which they are while runners go on: writers are at work.
func (o *operator) verify(t *testing.T, runners ...*command) {
	t.Helper()
	for {
		for _, r := range runners {
			r.goesOn(t)
		}
		c := o.start(t, "verify", "--json")
		switch code := c.code(t); code {
		case 0:
			return
		case 6: // changes are on their way
		default:
			t.Fatalf("verify: exit code %d: %s%s", code, c.stdout.String(), c.stderr.String())
		}
	}
}

// tables counts the tables of all databases whose names match.
func (o *operator) tables(t *testing.T, like string) (n int64) {
	t.Helper()
	for _, db := range o.databases() {
		n += database.MustNumber(t, db, fmt.Sprintf(o.speaks.like, like))
	}
	return n
}

func TestTheRunbookOnServers(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 3000)
		o := newOperator(t, s)
		s.rest.Store(int64(20 * time.Millisecond)) // beside writers at full speed some rows of a verify do not settle, for minutes
		stop := s.writers(t, 2)
		defer stop()
		o.prepare(t)
		leader, next := o.copyWithTwoRunners(t)
		o.verify(t, leader)
		o.takeOver(t, leader, next)
		o.verify(t, next)
		o.thereAndBack(t, next, stop)
		if strings.Contains(o.said.String(), "s3cret") {
			t.Error("a command has shown the password")
		}
	})
}

// prepare runs the steps from inspect to seed.
func (o *operator) prepare(t *testing.T) {
	t.Helper()
	var found []struct{ Code, Severity, Fix string }
	if err := json.Unmarshal([]byte(o.must(t, 0, "inspect", "--json")), &found); err != nil {
		t.Error(err)
	}
	if plan := o.must(t, 0, "plan", "--out", "plan.json"); !strings.Contains(plan, "CREATE TRIGGER") || !strings.Contains(plan, "a/orders_00 b/orders_01") {
		t.Errorf("plan: %s", plan)
	}
	for _, verb := range []string{"install", "run"} {
		if text := o.must(t, 0, verb, "--dry-run"); !strings.Contains(text, "CREATE TABLE") {
			t.Errorf("%s --dry-run: %s", verb, text)
		}
	}
	o.must(t, 0, "seed", "--margin", "100", "--dry-run", "--json")
	if c := o.start(t, "seed", "--margin", "3000000000", "--dry-run"); c.code(t) != 0 || !strings.Contains(c.stderr.String(), "warning: id of orders holds ids up to 2,147,483,647") {
		t.Errorf("ids that the source cannot hold: %s", c.stderr.String())
	}
	if n := o.tables(t, "shardid%") + o.tables(t, "leaf_alloc") + o.tables(t, "orders\\___"); n != 0 {
		t.Errorf("%d tables were made by dry runs", n)
	}
	o.must(t, 0, "install")
	var seeds []struct {
		Tag  string
		Next int64
	}
	if err := json.Unmarshal([]byte(o.must(t, 0, "seed", "--margin", "1000000", "--json")), &seeds); err != nil || seeds[0].Tag != "orders" || seeds[0].Next < 1_003_000 {
		t.Errorf("%+v (%v)", seeds, err)
	}
	o.must(t, 6, "cutover")
	o.must(t, 2, "finalize")
}

// copyWithTwoRunners starts them while the job is paused, and returns the one
// that leads and the one that waits. Each line of progress takes connections to all databases.
func (o *operator) copyWithTwoRunners(t *testing.T) (leader, next *command) {
	t.Helper()
	o.must(t, 0, "pause")
	leader = o.start(t, "run", "--plan", "plan.json", "--interval", "1s", "--json", "--chunk-rows", "500", "--max-threads", "1000")
	o.wait(t, func(s jobStatus) bool { return s.Phase == "copying" && s.Paused && s.Tables[0].Copied == 0 }, leader)
	next = o.start(t, "run", "--plan", "plan.json", "--interval", "1s")
	next.waitFor(t, "another runner leads the job; waiting to take over")
	o.must(t, 4, "run", "--no-wait")
	o.must(t, 0, "resume")
	o.wait(t, func(s jobStatus) bool { return s.Phase == "following" && !s.Paused && s.Tables[0].Copied == 1 }, leader, next)
	line, _, _ := strings.Cut(leader.stdout.String(), "\n")
	var p jobStatus
	if err := json.Unmarshal([]byte(line), &p); err != nil {
		t.Errorf("the leader's first line is %q (%v)", line, err)
	}
	return leader, next
}

// takeOver kills the leader; the other one goes on. When the leader had copied all
// rows and began to follow their changes, the other one may have come before it
// already: then nothing changes, and so it is asked whether somebody leads.
func (o *operator) takeOver(t *testing.T, leader, next *command) {
	t.Helper()
	if err := leader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-leader.ended
	for o.start(t, "run", "--no-wait", "--once").code(t) != 4 {
		next.goesOn(t)
		pauseOrFail(t)
	}
}

// thereAndBack switches, goes back with what was written to the shards, switches
// again and ends the job, while a runner is at work.
func (o *operator) thereAndBack(t *testing.T, next *command, stop func() int) {
	t.Helper()
	var done struct {
		PauseMS float64 `json:"pause_ms"`
		Epoch   int64
	}
	text := o.must(t, 0, "cutover", "--max-pause", longPause.String(), "--json")
	if err := json.Unmarshal([]byte(text), &done); err != nil || done.PauseMS <= 0 || done.Epoch == 0 {
		t.Errorf("%s (%v)", text, err)
	}
	stop()
	o.compare(t, "user_id", "orders_old", "")
	if text := o.must(t, 0, "cutover"); !strings.Contains(text, "nothing left to switch") {
		t.Errorf("a second cutover: %s", text)
	}
	database.Exec(t, o.shards["b"], "INSERT INTO orders_01 (id, user_id, code) VALUES (1000000, 5, 'on a shard')")
	o.must(t, 0, "rollback", "--max-pause", longPause.String())
	o.compare(t, "user_id", "orders", "_sealed")
	o.verify(t, next)
	o.must(t, 0, "cutover", "--max-pause", longPause.String())
	runner := o.start(t, "run")
	o.must(t, 0, "finalize", "--yes")
	if code := runner.code(t); code != 0 || !strings.Contains(runner.stderr.String(), "nothing left to do") {
		t.Errorf("a runner ended with %d: %s", code, runner.stderr.String())
	}
	if s := o.status(t); s.Phase != "finalized" {
		t.Errorf("%+v", s)
	}
	o.compare(t, "user_id", "orders_old", "")
	o.tidy(t)
}

// tidy removes what a finalized job leaves, as the runbook says.
func (o *operator) tidy(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), ". Finalize\n")
	var drops []string
	for line := range strings.Lines(last) {
		if strings.HasPrefix(line, "DROP TABLE ") {
			drops = append(drops, line)
		}
	}
	if len(drops) != 3 {
		t.Fatalf("%q", drops)
	}
	for _, statement := range drops[:2] {
		database.Exec(t, o.source, statement)
	}
	for _, db := range o.shards {
		database.Exec(t, db, drops[2])
	}
	for _, like := range []string{"shardid%", "orders_old"} {
		if n := o.tables(t, like); n != 0 {
			t.Errorf("%d tables %s are left", n, like)
		}
	}
}

// A runner whose machine slept has lost its lock, and another runner has led meanwhile.
func TestARunnerThatSleptStandsByAndLeadsAgain(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		o := newOperator(t, s)
		slept := o.start(t, "run", "--interval", "100ms", "--json")
		// It leads once to copy and once to follow.
		before := o.wait(t, func(s jobStatus) bool { return s.Phase == "following" && s.Epoch == 2 }, slept)
		if err := slept.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if s.disconnect(t, s.source, "mover") == 0 {
			t.Fatal("the runner has no connection")
		}
		o.must(t, 0, "run", "--once")
		if now := o.status(t); now.Epoch <= before.Epoch {
			t.Errorf("the second runner leads with epoch %d", now.Epoch)
		}
		if err := slept.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		slept.waitFor(t, "another runner leads the job; waiting to take over")
		o.wait(t, func(s jobStatus) bool { return s.Epoch > before.Epoch+2 }, slept) // run --once has led once
		o.verify(t, slept)
	})
}

// A runner with --no-wait ends.
func TestARunnerThatSleptEndsWithFiveIfItIsToldNotToWait(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		o := newOperator(t, s)
		slept := o.start(t, "run", "--no-wait", "--interval", "100ms", "--json")
		o.wait(t, func(s jobStatus) bool { return s.Phase == "following" && s.Epoch == 2 }, slept)
		if err := slept.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if s.disconnect(t, s.source, "mover") == 0 {
			t.Fatal("the runner has no connection")
		}
		o.must(t, 0, "run", "--once")
		if err := slept.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if code := slept.code(t); code != 5 || !strings.Contains(slept.stderr.String(), "a newer runner leads this job") {
			t.Errorf("exit code %d: %s", code, slept.stderr.String())
		}
	})
}

// Two runners, one of which leads: neither ends while its servers are away, and one of
// them leads when they are back. The one that stands by notices at once.
func TestRunnersSurviveTheirServers(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 2000)
		o := newOperator(t, s)
		run := []string{"--interval", "100ms", "--json", "--chunk-rows", "100"}
		runners := []*command{o.start(t, "run", run...), o.start(t, "run", run...)}
		waitForOneOf(t, "another runner leads the job; waiting to take over", runners...)
		for _, server := range s.servers {
			server.Kill()
		}
		waitForOneOf(t, "waiting, and trying again: ", runners...)
		for _, server := range s.servers {
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		o.wait(t, func(s jobStatus) bool { return s.Phase == "following" }, runners...)
		database.Exec(t, s.source, "UPDATE orders SET note = 'after the outage' WHERE id % 7 = 0")
		o.verify(t, runners...)
		for _, runner := range runners {
			select {
			case <-runner.ended:
				t.Errorf("a runner has ended: %s", runner.stderr.String())
			default:
			}
		}
		s.compare(t, "user_id", "orders", "")
	})
}
