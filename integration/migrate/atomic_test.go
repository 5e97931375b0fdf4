// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// prepares leaves a prepared transaction, whose client is gone for good, with one change.
func prepares(t *testing.T, db *sql.DB, change string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"XA START 'late'", change, "XA END 'late'", "XA PREPARE 'late'"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
	_ = conn.Close()
}

// restarts kills a server and starts it again.
func restarts(t *testing.T, s database.Server) {
	t.Helper()
	killed := s.(interface {
		Kill()
		Start(ctx context.Context) error
	})
	killed.Kill()
	if err := killed.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A prepared transaction whose client is gone keeps locks of rows, on which a rename waits when it is too late to give up. A
// resolver may end it only much later.
func TestAPreparedTransactionOfAShardKeepsTheRollbackFromHappening(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		prepares(t, s.shards["b"], "UPDATE orders_01 SET note = 'late' WHERE id = 1")
		restarts(t, s.servers[1])
		done, err := j.Rollback(t.Context(), allowedPause)
		for migrate.Transient(err) { // the restart has broken connections of the pool
			done, err = j.Rollback(t.Context(), allowedPause)
		}
		if done.Over > 0 || !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "XA RECOVER") {
			t.Errorf("the rollback beside the prepared transaction: %+v, %v", done, err)
		}
		database.Exec(t, s.shards["a"], "UPDATE orders_00 SET note = 'meanwhile' WHERE id = 4") // which is open
		database.Exec(t, s.shards["b"], "XA COMMIT 'late'")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if n := database.MustNumber(t, s.source, "SELECT COUNT(*) FROM orders WHERE note IN ('late', 'meanwhile')"); n != 2 {
			t.Errorf("%d of 2 changes are on the source", n)
		}
		s.compare(t, "id", "orders", "_sealed")
	})
}

// A program with atomic transactions has a prepared one on some table of the server at most moments.
func (s *migrationShop) prepareForEver(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, db := range []*sql.DB{s.source, s.shards["b"]} {
		database.Exec(t, db, "CREATE TABLE elsewhere (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
		for i := range 3 {
			wg.Go(func() {
				conn, err := db.Conn(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				for n := 0; ctx.Err() == nil; n++ {
					id := fmt.Sprintf("'%d-%d'", i, n)
					for _, text := range []string{"XA START " + id, "INSERT INTO elsewhere VALUES ()", "XA END " + id, "XA PREPARE " + id, "DO SLEEP(0.01)", "XA COMMIT " + id} {
						if _, err := conn.ExecContext(context.Background(), text); err != nil {
							t.Errorf("%s: %v", text, err)
							return
						}
					}
				}
			})
		}
	}
	return func() { cancel(); wg.Wait() }
}

func TestPreparedTransactionsThatEndSoonKeepNoStepFromHappening(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		stop := s.prepareForEver(t)
		defer stop()
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
		}
		s.compare(t, "id", "orders", "_sealed")
	})
}

// CREATE TRIGGER of MariaDB does not wait for a prepared transaction whose client is gone, so that no trigger notes its changes. It is
// committed when the runner looks for such transactions, or has copied the row without the change, or waits for the table.
func TestAPreparedTransactionThatIsOlderThanTheTriggersLosesNoChange(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		var prepared, committed sync.Once
		var isPrepared atomic.Bool
		committing := make(chan error, 1)
		commit := func() {
			committed.Do(func() {
				go func() { _, err := s.source.ExecContext(t.Context(), "XA COMMIT 'late'"); committing <- err }()
			})
		}
		tr := &trouble{speaks: s.speaks}
		tr.off.Store(true)
		tr.before = func(statement string) {
			if strings.HasPrefix(statement, "LOCK TABLES") {
				prepared.Do(func() { prepares(t, s.source, "UPDATE orders SET note = 'late' WHERE id = 1"); isPrepared.Store(true) })
			}
		}
		tr.asks = func(query string) {
			if query == "XA RECOVER" && isPrepared.Load() {
				commit()
			}
		}
		j := s.job(t, "id", func(c *migrate.Config) {
			c.Source = s.trouble(t, tr, 0, "shop")
			c.Copiers = 1
			c.Observe = func(step migrate.Step) {
				if step.Name == migrate.StepStored || step.Name == migrate.StepBlocked {
					commit()
				}
			}
		})
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-committing; err != nil {
			t.Fatal(err)
		}
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders", "")
	})
}

// MySQL's CREATE TRIGGER waits for the table, and the step is that.
func TestARunnerTellsThatItWaitsForAPreparedTransaction(t *testing.T) {
	s := newMigrationShop(t, server.RunMariaDB(t), server.RunMariaDB(t))
	s.fill(t, 100)
	tr := &trouble{speaks: s.speaks}
	tr.off.Store(true)
	var prepared sync.Once
	tr.before = func(statement string) {
		if strings.HasPrefix(statement, "LOCK TABLES") {
			prepared.Do(func() { prepares(t, s.source, "UPDATE orders SET note = 'late' WHERE id = 1") })
		}
	}
	var told []error
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Source = s.trouble(t, tr, 0, "shop")
		c.Observe = func(step migrate.Step) {
			if step.Name != migrate.StepWaiting {
				return
			}
			if told = append(told, step.Err); len(told) == 1 {
				database.Exec(t, s.source, "XA COMMIT 'late'")
			}
		}
	})
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) < 2 || told[len(told)-1] != nil || !strings.Contains(fmt.Sprint(told[0]), "XA RECOVER lists 1 prepared") {
		t.Errorf("the steps that wait are %v", told)
	}
	s.compare(t, "id", "orders", "")
}

// A transaction that a resolver commits during the pause of a switch is among the last changes.
func TestAPreparedTransactionThatIsCommittedDuringASwitchLosesNoChange(t *testing.T) {
	a, b := server.RunMariaDB(t), server.RunMariaDB(t) // of MySQL the switch would wait for the table
	s := newMigrationShop(t, a, b)
	s.fill(t, 100)
	var armed, isPrepared atomic.Bool
	late := func(on *sql.DB, change string) *trouble {
		tr := &trouble{speaks: s.speaks}
		tr.off.Store(true)
		tr.before = func(statement string) {
			if strings.HasPrefix(statement, "LOCK TABLES") && armed.CompareAndSwap(true, false) {
				prepares(t, on, change)
				isPrepared.Store(true)
			}
		}
		tr.asks = func(query string) {
			if query == "XA RECOVER" && isPrepared.CompareAndSwap(true, false) {
				database.Exec(t, on, "XA COMMIT 'late'")
			}
		}
		return tr
	}
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Source = s.trouble(t, late(s.source, "UPDATE orders SET note = 'late' WHERE id = 1"), 0, "shop")
		c.Shards = sharding.DBs{"a": s.shards["a"], "b": s.trouble(t, late(s.shards["b"], "UPDATE orders_01 SET note = 'later' WHERE id = 1"), 1, "shop_b")}
	})
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	if _, err := j.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if n := database.MustNumber(t, s.shards["b"], "SELECT COUNT(*) FROM orders_01 WHERE note = 'late'"); n != 1 {
		t.Errorf("the change is on %d rows of the shard", n)
	}
	armed.Store(true)
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if n := database.MustNumber(t, s.source, "SELECT COUNT(*) FROM orders WHERE note = 'later'"); n != 1 {
		t.Errorf("the change is on %d rows of the source", n)
	}
	if armed.Load() || isPrepared.Load() {
		t.Error("nothing was prepared, or it was not committed")
	}
	s.compare(t, "id", "orders", "_sealed")
}

// A runner reads the names of the tables before it leads, and another one may switch meanwhile.
func TestARunnerThatWaitsForTheLeadDuringASwitchGoesOnWithTheNewNames(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		other := s.job(t, "id")
		switches := []func() error{
			func() error { return other.Run(t.Context()) },
			func() error { _, err := other.Cutover(t.Context(), longPause); return err },
			func() error { _, err := other.Rollback(t.Context(), longPause); return err },
			func() error { _, err := other.Cutover(t.Context(), longPause); return err },
		}
		if err := switches[0](); err != nil {
			t.Fatal(err)
		}
		for _, meanwhile := range switches[1:] {
			var once sync.Once
			waits := func(text string) {
				if strings.Contains(text, "GET_LOCK") || strings.Contains(text, "pg_advisory_lock") {
					once.Do(func() {
						if err := meanwhile(); err != nil {
							t.Error(err)
						}
					})
				}
			}
			tr := &trouble{speaks: s.speaks, before: waits, asks: waits}
			tr.off.Store(true)
			j := s.job(t, "id", func(c *migrate.Config) { c.Source = s.trouble(t, tr, 0, "shop") })
			if err := j.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A runner that is killed during a switch leaves tables that are renamed already, in a job that has not switched yet.
func TestVerifyTakesNoUnfinishedSwitchForATableThatWasAltered(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		var once sync.Once
		j := s.job(t, "id", func(c *migrate.Config) {
			c.Observe = func(step migrate.Step) {
				if step.Name == migrate.StepCompared {
					once.Do(func() { database.Exec(t, s.source, "ALTER TABLE orders RENAME TO orders_old") })
				}
			}
		})
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Verify(t.Context()); !errors.Is(err, migrate.ErrPhase) || errors.Is(err, migrate.ErrChanged) {
			t.Errorf("verify: %v", err)
		}
		database.Exec(t, s.source, "ALTER TABLE orders_old RENAME TO orders")
		if v, err := j.Verify(t.Context()); err != nil || !v.Clean() {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
