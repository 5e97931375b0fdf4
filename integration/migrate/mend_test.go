// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// switchUntil migrates there and back, and stays at a step until it is killed.
func switchUntil(t *testing.T, dsns []string, step string) {
	t.Helper()
	s := shopAt(t, dsns)
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == step {
				_, _ = fmt.Fprintln(os.Stdout, "step "+step)
				select {}
			}
		}
	})
	for { // the job may stand after the step
		if err := thereAndBack(context.Background(), j); err != nil {
			t.Fatal(err)
		}
	}
}

// killSwitch kills a runner during a switch.
func killSwitch(t *testing.T, s *migrationShop, step string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), runnerVar+"="+strings.Join([]string{s.servers[0].DSN("shop"), s.servers[0].DSN("shop_a"), s.servers[1].DSN("shop_b"), step}, " "))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "step "+step {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the runner ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
}

// standBy looks after a job as the command run does while another one leads, until stop
// is called, which returns how many switches it has ended.
func standBy(t *testing.T, j *migrate.Job) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	ended := 0
	wg.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			mended, err := j.Mend(t.Context()) // one that it has begun it ends
			if err != nil {
				t.Error(err)
			}
			if mended {
				ended++
			}
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return ended
	}
}

// writeByRoute writes a row to the serving side, as an application does.
func (s *migrationShop) writeByRoute(t *testing.T, id, value int64) {
	t.Helper()
	table := shopOrders(t, "id")
	at, err := table.Target(id)
	if err != nil {
		t.Fatal(err)
	}
	for t.Context().Err() == nil {
		row, err := sharding.ReadRoute(t.Context(), s.source, "orders")
		if err != nil {
			continue
		}
		db, name := s.source, "orders"
		if row.Route == sharding.OnShards {
			db, name = s.shards[at.DB], at.Table
		}
		result, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET total = %d WHERE id = %d", name, value, id))
		if err != nil {
			continue
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			t.Fatalf("row %d is not where the route leads to: %d, %v", id, n, err)
		}
		return
	}
}

// No command follows the kill: a waiting runner finishes or undoes the switch.
func TestASwitchWhoseRunnerWasKilledIsEndedByAnotherRunner(t *testing.T) {
	if args := strings.Fields(os.Getenv(runnerVar)); len(args) == 4 {
		switchUntil(t, args[:3], args[3])
	}
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		database.Exec(t, s.source, fmt.Sprintf("INSERT INTO orders (id, user_id, total) VALUES (%d, 1, 0)", oracleRows))
		steps := []string{migrate.StepDrained, migrate.StepRenamed, migrate.StepFlipped, migrate.StepSealing, migrate.StepSealed}
		for i, step := range steps {
			stop := standBy(t, s.job(t, "id"))
			killSwitch(t, s, step)
			began := time.Now()
			s.writeByRoute(t, oracleRows, int64(i+1))
			waited := time.Since(began)
			ended := stop()
			t.Logf("killed after %s: a writer waited %s, %d switches were ended", step, waited.Round(time.Millisecond), ended)
			if waited > 5*time.Second {
				t.Errorf("killed after %s: a writer waited %s", step, waited)
			}
		}
		s.settle(t, map[int64]int64{oracleRows: int64(len(steps))})
	})
}

// The statement by which the killed runner closes a shard is executed when the next one has
// seen that shard open.
func TestAShardThatAKilledRunnerClosesLateServesAgain(t *testing.T) {
	if args := strings.Fields(os.Getenv(runnerVar)); len(args) == 4 {
		switchUntil(t, args[:3], args[3])
	}
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		killSwitch(t, s, migrate.StepSealing)
		var closed []string
		table := shopOrders(t, "id")
		late := &trouble{before: func(statement string) {
			if !strings.HasPrefix(statement, "LOCK TABLES") || len(closed) > 0 {
				return
			}
			for _, at := range table.Map.Targets() {
				if strings.Contains(statement, "`"+at.Table+"`") && len(closed) == 0 {
					closed = append(closed, at.Table)
					database.Exec(t, s.shards[at.DB], fmt.Sprintf("ALTER TABLE %s RENAME TO %[1]s_sealed", at.Table))
				}
			}
		}}
		late.off.Store(true)
		j := s.job(t, "id", func(c *migrate.Config) {
			c.Shards = sharding.DBs{"a": s.trouble(t, late, 0, "shop_a"), "b": s.trouble(t, late, 1, "shop_b")}
		})
		testwait.Until(t, "the switch is ended", func() bool {
			mended, err := j.Mend(t.Context())
			return err == nil && mended
		})
		row, err := sharding.ReadRoute(t.Context(), s.source, "orders")
		if err != nil || row.Route != sharding.OnShards || len(closed) != 1 {
			t.Errorf("the route is %v, %v; %v were closed late", row, err, closed)
		}
		s.compare(t, "id", "orders_old", "")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Error(err)
		}
		s.compareWherever(t, "id", "orders")
	})
}
