// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// mutant is a runner that obeys all rules but one. The test breaks the rule in the
// databases that the rule reads and writes. The schedule makes the rule matter: with the
// rule, nothing is lost.
type mutant struct {
	breaks   []string // what is done to the source before Run, to break the rule
	schedule func(t *testing.T, s *shop, broken bool)
}

var mutants = map[string]mutant{
	"changes are not captured": {
		[]string{"CREATE TRIGGER nothing_noted BEFORE INSERT ON shardid_log_orders BEGIN SELECT RAISE(IGNORE); END"}, deleteInFlight,
	},
	"a chunk's bound is not written down": {
		[]string{"CREATE TRIGGER no_bound AFTER UPDATE OF hig ON shardid_span WHEN NEW.hig IS NOT NEW.low BEGIN UPDATE shardid_span SET hig = low; END"}, deleteInFlight,
	},
	"rows under way count as copied": {
		[]string{"CREATE TRIGGER early AFTER UPDATE OF hig ON shardid_span BEGIN UPDATE shardid_span SET low = hig; END"}, deleteInFlight,
	},
	"entries of rows under way are dropped": {
		[]string{"CREATE TRIGGER dropped AFTER INSERT ON shardid_log_orders WHEN NEW.id <= (SELECT hig FROM shardid_span) BEGIN DELETE FROM shardid_log_orders WHERE seq = NEW.seq; END"}, deleteInFlight,
	},
	"more entries are deleted than were applied": {
		[]string{"CREATE TRIGGER ack_all AFTER DELETE ON shardid_log_orders BEGIN DELETE FROM shardid_log_orders; END"}, deleteInFlight,
	},
	"the bound is raised after the rows were read": {nil, boundAfterSnapshot},
	"a resumed run does not prune":                 {nil, resume},
	"the fence does not hold":                      {nil, wakeZombie},
	"another row is replaced":                      {nil, meetNewerRow},
	"the route is flipped before the rename":       {nil, flipFirst},
}

func TestWithoutAnyOneOfItsRulesARunnerLosesRows(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		for _, broken := range []bool{false, true} {
			s := newShop(t, 120) // chunks of 50
			if broken && m.breaks != nil {
				mustBegin(t, s)
				for _, text := range m.breaks {
					exec(t, s.source, text)
				}
			}
			m.schedule(t, s, broken)
			if differs := !slices.Equal(sorted(list(t, s.source, "orders")), shardRows(t, s)); differs != broken {
				t.Errorf("%s: %t, and the shards differ from the source: %t", name, broken, differs)
			}
		}
	}
}

// mustBegin makes the tables and triggers of the job, and copies nothing.
func mustBegin(t *testing.T, s *shop) {
	t.Helper()
	if err := mutantJob(t, s, func(c *migrate.Config) { c.Throttle = func(context.Context) error { return errEnough } }).Run(t.Context()); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
}

var errEnough = errors.New("enough")

// mutantJob has all rows on one shard, so that they can be in each other's way.
func mutantJob(t *testing.T, s *shop, change func(*migrate.Config)) *migrate.Job {
	t.Helper()
	return s.job(t, "id", func(c *migrate.Config) { c.Tables[0].Rule = oneSlot{} }, change)
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func shardRows(t *testing.T, s *shop) []string {
	t.Helper()
	return sorted(list(t, s.shards["a"], "orders_00"))
}

// once calls f at the first step of this name.
func once(step string, f func()) func(migrate.Step) {
	var first sync.Once
	return func(at migrate.Step) {
		if at.Name == step {
			first.Do(f)
		}
	}
}

func both(a, b func(migrate.Step)) func(migrate.Step) {
	return func(at migrate.Step) { a(at); b(at) }
}

// deleteInFlight deletes a row that a copier has read and not written, and lets
// the copier go on when the applier has seen the entry.
func deleteInFlight(t *testing.T, s *shop, broken bool) {
	t.Helper()
	inFlight(t, s, func() {}, func() {}, !broken)
}

// boundAfterSnapshot hides the bound until the rows were read and the applier has read its
// log.
func boundAfterSnapshot(t *testing.T, s *shop, broken bool) {
	t.Helper()
	hide, show := func() {}, func() {}
	if broken {
		hide = func() { quietly(s, "UPDATE shardid_span SET hig = low") }
		show = func() { quietly(s, "UPDATE shardid_span SET hig = 50") }
	}
	inFlight(t, s, hide, show, !broken)
}

func inFlight(t *testing.T, s *shop, atBound, afterLook func(), mustAck bool) {
	t.Helper()
	looked, taken := make(chan struct{}), make(chan struct{})
	acked := once(migrate.StepAcked, func() { close(looked) })
	bounds := 0
	bound := func(at migrate.Step) {
		if at.Name == migrate.StepBound {
			atBound()
			if bounds++; bounds == 2 { // no other chunk is taken before the first one is done
				close(taken)
			}
		}
	}
	at := both(bound, once(migrate.StepSnapshot, func() {
		<-taken
		// The second row is beyond every bound: its entry goes at once.
		quietly(s, "DELETE FROM orders WHERE id IN (10, 110)")
		if mustAck || count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders") > 0 {
			<-looked
		}
		afterLook()
	}))
	mustRun(t, mutantJob(t, s, func(c *migrate.Config) { c.Observe = both(acked, at) }))
}

// resume cuts a run off when a chunk is on the shards and nobody knows, and
// deletes the chunk's rows.
func resume(t *testing.T, s *shop, broken bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := mutantJob(t, s, func(c *migrate.Config) { c.Observe = once(migrate.StepStored, cancel) }).Run(ctx); err == nil {
		t.Fatal("the run was not cut off")
	}
	exec(t, s.source, "DELETE FROM orders WHERE id <= 50")
	if broken {
		exec(t, s.source, "UPDATE shardid_span SET hig = low")
	}
	looked := make(chan struct{})
	mustRun(t, mutantJob(t, s, func(c *migrate.Config) {
		c.Observe = once(migrate.StepAcked, func() { close(looked) })
		c.Throttle = func(context.Context) error { <-looked; return nil }
	}))
}

// wakeZombie stops a runner that has read a chunk while another one finishes the job; then
// the chunk's rows are deleted, and the first runner continues.
func wakeZombie(t *testing.T, s *shop, broken bool) {
	t.Helper()
	observe, asleep, wake := asleepAtSnapshot(s)
	zombie := mutantJob(t, s, func(c *migrate.Config) { c.Observe = observe })
	ended := make(chan error, 1)
	go func() { ended <- zombie.Run(t.Context()) }()
	<-asleep
	mustRun(t, mutantJob(t, s, func(*migrate.Config) {}))
	exec(t, s.source, "DELETE FROM orders WHERE id <= 50")
	mustRun(t, mutantJob(t, s, func(*migrate.Config) {}))
	if broken {
		exec(t, s.source, "UPDATE shardid_fence SET epoch = 1")
		for _, db := range s.shards {
			exec(t, db, "UPDATE shardid_shard_fence SET epoch = 1")
		}
	}
	close(wake)
	if err := <-ended; errors.Is(err, migrate.ErrFenced) == broken {
		t.Errorf("the zombie ended with %v", err)
	}
}

// asleepAtSnapshot stops all goroutines of a runner: the copier that has read rows, the
// applier, and the one that hands out chunks.
func asleepAtSnapshot(s *shop) (observe func(migrate.Step), asleep <-chan struct{}, wake chan struct{}) {
	taken, applier, copier := make(chan struct{}), make(chan struct{}), make(chan struct{})
	wake = make(chan struct{})
	bounds := 0
	atBound := func(at migrate.Step) {
		if at.Name == migrate.StepBound {
			if bounds++; bounds == 2 {
				close(taken)
			}
		}
	}
	return both(atBound, both(
		once(migrate.StepAcked, func() { close(applier); <-wake }),
		once(migrate.StepSnapshot, func() {
			<-taken
			quietly(s, "UPDATE orders SET note = 'for the applier' WHERE id = 110")
			<-applier
			close(copier)
			<-wake
		}),
	)), copier, wake
}

// meetNewerRow: a chunk was read when row 60 had a value that row 1 has by the
// time the chunk is written.
func meetNewerRow(t *testing.T, s *shop, broken bool) {
	t.Helper()
	applied, snapshots := make(chan struct{}), 0
	mustBegin(t, s)
	if broken {
		exec(t, s.shards["a"], "CREATE TRIGGER replaced BEFORE INSERT ON orders_00 BEGIN DELETE FROM orders_00 WHERE code = NEW.code; END")
	}
	mustRun(t, mutantJob(t, s, func(c *migrate.Config) {
		c.Observe = both(once(migrate.StepApplied, func() { close(applied) }), func(at migrate.Step) {
			if at.Name != migrate.StepSnapshot {
				return
			}
			if snapshots++; snapshots == 2 {
				quietly(s, "UPDATE orders SET code = 'moved on' WHERE id = 60")
				quietly(s, "UPDATE orders SET code = 'c60' WHERE id = 1")
				<-applied
			}
		})
	}))
}

// flipFirst: one instance of the application reads the route, another one had
// read it earlier. The order of their writes must hold.
func flipFirst(t *testing.T, s *shop, broken bool) {
	t.Helper()
	job := mutantJob(t, s, func(*migrate.Config) {})
	mustRun(t, job)
	if broken {
		exec(t, s.source, "UPDATE shardid_route SET route = 'shards'")
	}
	exec(t, s.source, "UPDATE orders SET note = 'first' WHERE id = 7")
	route, err := sharding.ReadRoute(t.Context(), s.source, "orders")
	if err != nil {
		t.Fatal(err)
	}
	db, table := s.source, "orders"
	if route.Route == sharding.OnShards {
		db, table = s.shards["a"], "orders_00"
	}
	exec(t, db, "UPDATE "+table+" SET note = 'second' WHERE id = 7")
	mustCutover(t, job)
	exec(t, s.source, "ALTER TABLE orders_old RENAME TO orders") // where the comparison looks
	exec(t, s.source, "UPDATE shardid_fence SET pass = 1")
	exec(t, s.source, "UPDATE orders SET note = 'second' WHERE id = 7") // what was acknowledged
}
