// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
)

// The server forgets a runner that stands still at a step of a switch. Another one takes over and
// switches, or goes back. What the first does when it goes on must not touch the triggers and tables
// of the second: neither by a connection that it has still, nor by a new one.
func TestARunnerThatSleptInASwitchChangesNothing(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		s.addSleeper(t)
		stopOracle := s.watch(t, 1)
		stop := s.writers(t, 1)
		next := s.job(t, "id")
		there := func(ctx context.Context) error {
			_, err := next.Cutover(ctx, longPause)
			return err
		}
		_, isMySQL := s.servers[0].(*server.MySQL)
		// Of each pair of a step and a side that serves when the runner continues, those in which it could do harm.
		for n, at := range []struct {
			step        string
			shardsServe bool
		}{
			{migrate.StepLocked, true},
			{migrate.StepDrained, true},
			{migrate.StepRenamed, true},
			{migrate.StepFlipped, false},
			{migrate.StepSealing, false},
			{migrate.StepSealed, true},
			{migrate.StepReinstated, true},
		} {
			if !effort.Soak() && isMySQL && n%2 == 0 {
				continue // MariaDB and PostgreSQL have these steps
			}
			z := s.pauseAt(t, at.step)
			s.disconnectSleeper(t)
			s.untilNotTransient(t, func(ctx context.Context) error { return thereAndBack(ctx, next) })
			if at.shardsServe {
				s.untilNotTransient(t, there)
			}
			if err := z.goOn(); err == nil {
				t.Errorf("asleep after %s: it ended well", at.step)
			}
			s.untilNotTransient(t, func(ctx context.Context) error { return thereAndBack(ctx, next) })
		}
		stop()
		s.settle(t, stopOracle())
	})
}

// A connection may be lost alone: by a proxy, or because somebody has killed it. If it is the lock's,
// another runner leads at once, and the first has all its other connections.
func TestARunnerThatHasLostItsLockChangesNoTrigger(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		s.addSleeper(t)
		next := s.job(t, "id")
		for _, step := range []string{migrate.StepSealed, migrate.StepReinstated} {
			z := s.pauseAt(t, step)
			for _, id := range database.Texts(t, s.source, s.speaks.leads) {
				database.Exec(t, s.source, strings.Replace(s.speaks.kills, "%d", id, 1))
			}
			s.untilNotTransient(t, func(ctx context.Context) error { return thereAndBack(ctx, next) })
			s.untilNotTransient(t, func(ctx context.Context) error {
				_, err := next.Cutover(ctx, longPause)
				return err
			})
			want := s.triggers(t)
			if err := z.goOn(); !errors.Is(err, migrate.ErrFenced) {
				t.Errorf("asleep after %s: %v", step, err)
			}
			if got := s.triggers(t); !slices.Equal(got, want) {
				t.Errorf("asleep after %s: it left the triggers %v of %v", step, got, want)
			}
			s.untilNotTransient(t, func(ctx context.Context) error { return thereAndBack(ctx, next) })
		}
	})
}

// triggers are the names of all triggers, by database.
func (s *migrationShop) triggers(t *testing.T) (all []string) {
	t.Helper()
	for _, db := range []*sql.DB{s.source, s.shards["a"], s.shards["b"]} {
		all = append(all, strings.Join(database.Texts(t, db, s.speaks.triggers+" ORDER BY name"), " "))
	}
	return all
}

// When a runner dies, the server goes on with its last statement, which may wait for a lock. Here it is one
// that drops a trigger, at the end of a rollback; the next runner switches again meanwhile.
func TestATriggerThatADeadRunnerStillDropsIsMadeAgain(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 200)
		s.addSleeper(t)
		z := s.pauseAt(t, migrate.StepReinstated)
		s.disconnectSleeper(t)
		j, want := s.job(t, "id"), s.triggers(t)[1:]
		reader, err := s.shards["a"].BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reader.Rollback() }()
		if _, err := reader.ExecContext(t.Context(), "SELECT COUNT(*) FROM orders_00_sealed"); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		var dropped, switched error
		both.Go(func() { _, dropped = s.shards["a"].ExecContext(t.Context(), s.speaks.dropBack) })
		waiting := func(n int) func() bool {
			return func() bool { return len(database.Texts(t, s.shards["a"], s.speaks.waiting)) >= n }
		}
		testwait.Until(t, "the statement of the dead runner waits", waiting(1))
		both.Go(func() {
			for switched = migrate.ErrLocked; errors.Is(switched, migrate.ErrLocked); {
				_, switched = j.Cutover(t.Context(), longPause)
			}
		})
		testwait.Until(t, "the next runner waits behind it", waiting(2))
		if err := reader.Rollback(); err != nil {
			t.Fatal(err)
		}
		both.Wait()
		if err := errors.Join(dropped, switched); err != nil {
			t.Error(err)
		}
		if got := s.triggers(t)[1:]; !slices.Equal(got, want) {
			t.Errorf("the triggers of the shards are %v, not %v", got, want)
		}
		if err := z.goOn(); !errors.Is(err, migrate.ErrFenced) {
			t.Error(err)
		}
	})
}

// untilNotTransient repeats a call that the connections of a forgotten runner hold up.
func (s *migrationShop) untilNotTransient(t *testing.T, call func(context.Context) error) {
	t.Helper()
	err := call(t.Context())
	for migrate.Transient(err) || mayGoOn(err) && err != nil {
		err = call(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// paused is a runner in this process, whose goroutine stands still at a step.
type paused struct {
	wake  func()
	ended chan error
}

// pauseAt starts a runner with the connections of the user sleeper, and returns when it stands still.
func (s *migrationShop) pauseAt(t *testing.T, step string) *paused {
	t.Helper()
	of := s.ofSleeper(t)
	there, wake := make(chan struct{}), make(chan struct{})
	var once sync.Once
	j := of.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(is migrate.Step) {
			if is.Name == step {
				once.Do(func() {
					close(there)
					<-wake
				})
			}
		}
	})
	z := &paused{sync.OnceFunc(func() { close(wake) }), make(chan error, 1)}
	t.Cleanup(z.wake)
	go func() { z.ended <- thereAndBack(t.Context(), j) }()
	select {
	case <-there:
	case err := <-z.ended:
		t.Fatalf("the runner ended before %s: %v", step, err)
	}
	return z
}

// ofSleeper is the shop with the connections of the user sleeper.
func (s *migrationShop) ofSleeper(t *testing.T) *migrationShop {
	t.Helper()
	dsns := []string{s.servers[0].DSN("shop"), s.servers[0].DSN("shop_a"), s.servers[1].DSN("shop_b")}
	of := shopAt(t, strings.Fields(strings.NewReplacer("root@", "sleeper@", "postgres@", "sleeper@").Replace(strings.Join(dsns, " "))))
	t.Cleanup(func() {
		_ = of.source.Close()
		for _, db := range of.shards {
			_ = db.Close()
		}
	})
	return of
}

// goOn wakes the runner and returns its error.
func (z *paused) goOn() error {
	z.wake()
	return <-z.ended
}

// When the server gives the lock on the job to another runner, the first must have no connection left
// on which it could go on.
func TestTheServersCloseAStoppedRunnersConnectionsBeforeItsLock(t *testing.T) {
	if dsns := os.Getenv(runnerVar); dsns != "" {
		runForEver(t, strings.Fields(dsns))
	}
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		s.addSleeper(t)
		// No goroutine is opening a connection in this step. The server keeps one that it has accepted and
		// of which the runner has not limited the silence; a runner that goes on asks on it whether it leads.
		s.newSleeper(t, migrate.StepBegun)
		connected := func(shard string) []string {
			return database.Texts(t, s.shards[shard], fmt.Sprintf(s.speaks.connected, "sleeper"))
		}
		if n := len(connected("a")); n < 2 {
			t.Fatalf("%d connections at the stop", n)
		}
		testwait.Until(t, "only the lock's connection is left", func() bool {
			return len(connected("a")) <= 1 && len(connected("b")) == 0
		})
		leads := database.Texts(t, s.source, s.speaks.leads) // asked first, because its connection is closed next
		if left := connected("a"); slices.ContainsFunc(left, func(id string) bool { return !slices.Contains(leads, id) }) {
			t.Errorf("connections %v are left, and %v leads", left, leads)
		}
	})
}

// The servers close connections of a runner that was not stopped, too, when it had nothing to send.
func TestTheErrorOfASilentConnectionIsTransient(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		for _, text := range []string{"SELECT 1", "BEGIN"} {
			conn, err := s.source.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{s.speaks.silent, text} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			var self string
			if err := conn.QueryRowContext(t.Context(), s.speaks.self).Scan(&self); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the server closes the connection", func() bool {
				return !slices.Contains(database.Texts(t, s.source, fmt.Sprintf(s.speaks.connected, s.speaks.user)), self)
			})
			if _, err := conn.ExecContext(t.Context(), "SELECT 1"); !migrate.Transient(err) {
				t.Errorf("after %s: %v", text, err)
			}
			_ = conn.Close()
		}
	})
}

// A shard that is open while the source serves would accept the writes of an instance of the application that
// was idle since the shards served, and they would be lost.
func TestASwitchWhoseEndIsLostLeavesNoShardOpenBesideTheSource(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		s.addSleeper(t)
		next := s.job(t, "id")
		s.untilNotTransient(t, func(ctx context.Context) error { return thereAndBack(ctx, next) })
		z := s.pauseAt(t, migrate.StepFlipped)
		s.disconnectSleeper(t)
		err := z.goOn()
		source := database.Texts(t, s.source, fmt.Sprintf(s.speaks.there, "orders"))
		open := database.Texts(t, s.shards["b"], fmt.Sprintf(s.speaks.there, "orders_01"))
		if source[0] == "1" && open[0] != "0" {
			t.Errorf("the source serves after %v, and the shard is open", err)
		}
		s.untilNotTransient(t, func(ctx context.Context) error {
			_, err := next.Cutover(ctx, longPause)
			return err
		})
		if open = database.Texts(t, s.shards["b"], fmt.Sprintf(s.speaks.there, "orders_01")); open[0] != "1" {
			t.Error("the shard is closed after the switch")
		}
	})
}
