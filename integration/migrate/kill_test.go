// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// runnerVar makes a test start a runner instead: it holds the DSNs of the
// source and of the two databases with shards.
const runnerVar = "SHARDID_TEST_RUNNER"

// runForEver migrates there and back, printing each step, until it is killed, or until
// what it did when it was stopped and continued has ended. Behind the data sources there may be the step in which
// it stops itself.
func runForEver(t *testing.T, dsns []string) {
	t.Helper()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	slept := func() bool {
		select {
		case <-continued:
			return true
		default:
			return false
		}
	}
	s := shopAt(t, dsns[:3])
	var once sync.Once
	j := s.job(t, "id", func(c *migrate.Config) {
		c.ChunkRows = 100
		c.Observe = func(step migrate.Step) {
			_, _ = fmt.Fprintln(os.Stdout, "step "+step.Name)
			if len(dsns) > 3 && step.Name == dsns[3] {
				once.Do(stopItself)
			}
		}
	})
	for {
		for _, call := range waysThereAndBack(context.Background(), j) {
			switch err := call(); {
			case slept() && err == nil:
				return
			case slept(), !mayGoOn(err):
				t.Fatal(err)
			}
		}
	}
}

// stopItself stops the process until it is continued.
func stopItself() {
	_, _ = fmt.Fprintln(os.Stdout, stopsItself)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		panic(err)
	}
}

// shopAt is a shop of which a runner knows the data sources alone.
func shopAt(t *testing.T, dsns []string) *migrationShop {
	t.Helper()
	var dbs [3]*sql.DB
	speaks := mysqlShop
	if strings.HasPrefix(dsns[0], "postgres:") {
		speaks = postgresShop
	}
	for i, dsn := range dsns {
		db, err := sql.Open(speaks.driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		dbs[i] = db
	}
	return &migrationShop{speaks: speaks, source: dbs[0], shards: sharding.DBs{"a": dbs[1], "b": dbs[2]}}
}

// thereAndBack migrates and rolls back. The next call of another kind finishes the step of a
// killed runner.
func thereAndBack(ctx context.Context, j *migrate.Job) error {
	for _, call := range waysThereAndBack(ctx, j) {
		if err := call(); !mayGoOn(err) {
			return err
		}
	}
	return nil
}

func waysThereAndBack(ctx context.Context, j *migrate.Job) []func() error {
	return []func() error{
		func() error { return j.Run(ctx) },
		func() error { _, err := j.Cutover(ctx, longPause); return err },
		func() error { _, err := j.Rollback(ctx, longPause); return err },
	}
}

// mayGoOn reports whether the next call may succeed after one that returned err.
func mayGoOn(err error) bool {
	return err == nil || errors.Is(err, migrate.ErrNotReady) || errors.Is(err, migrate.ErrPhase) || errors.Is(err, migrate.ErrLocked)
}

// killRunner starts a runner and kills it at its n-th step, or a little later,
// or at the first step of the given name after the n-th.
func killRunner(t *testing.T, s *migrationShop, n int, at string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), runnerVar+"="+strings.Join([]string{s.servers[0].DSN("shop"), s.servers[0].DSN("shop_a"), s.servers[1].DSN("shop_b")}, " "))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	last := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		step, ok := strings.CutPrefix(lines.Text(), "step ")
		if !ok {
			said = append(said, lines.Text())
			continue
		}
		last = step
		if n--; n <= 0 && (at == "" || at == step) {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the runner ended by itself: %v\n%s", err, strings.Join(said, "\n"))
	}
	return last
}

// oracle writes its own rows, and stores the expected content of each.
type oracle struct {
	shop  *migrationShop
	table migrate.Table
	acked atomic.Int64
}

// An application tries the source and, when its table is gone, the shard. After any
// other error, as a deadlock, it begins again: as long as the source serves, the shard
// may not have the row yet.
func (o *oracle) write(ctx context.Context, id, value int64) bool {
	at, err := o.table.Target(id)
	if err != nil {
		return false
	}
	for ctx.Err() == nil {
		for _, place := range []struct {
			db    *sql.DB
			table string
		}{{o.shop.source, "orders"}, {o.shop.shards[at.DB], at.Table}} {
			result, err := place.db.ExecContext(context.Background(), fmt.Sprintf("UPDATE %s SET total = %d WHERE id = %d", place.table, value, id))
			if err != nil {
				if strings.Contains(err.Error(), fmt.Sprintf(o.shop.speaks.noTable, place.table)) {
					continue
				}
				break
			}
			if n, err := result.RowsAffected(); err != nil || n != 1 {
				// The answer of an earlier attempt was lost: MySQL does not count a row that has the value already.
				var has int
				query := fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE id = %d AND total = %d", place.table, id, value)
				if place.db.QueryRowContext(context.Background(), query).Scan(&has) != nil {
					break
				}
				if has == 0 {
					return false
				}
			}
			o.acked.Add(1)
			return true
		}
	}
	return false
}

func (o *oracle) run(ctx context.Context, t *testing.T, from, to int64) map[int64]int64 {
	last := map[int64]int64{}
	for value := int64(1); ctx.Err() == nil; value++ {
		for id := from; id < to && ctx.Err() == nil; id++ {
			if o.write(ctx, id, value) {
				last[id] = value
				time.Sleep(time.Duration(o.shop.rest.Load()))
			} else if ctx.Err() == nil {
				t.Errorf("row %d is not where the application looks", id)
				return last
			}
		}
	}
	return last
}

// oracleRows are above the ids that the other writers choose from.
const oracleRows = 300_000

// watch has n goroutines write rows of their own until stop is called, which
// returns what the rows must hold.
func (s *migrationShop) watch(t *testing.T, n int) (stop func() map[int64]int64) {
	t.Helper()
	const each = 10
	for i := range n * each {
		database.Exec(t, s.source, fmt.Sprintf("INSERT INTO orders (id, user_id, total) VALUES (%d, 1, 0)", oracleRows+i))
	}
	o := &oracle{shop: s, table: shopOrders(t, "id")}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	parts := make([]map[int64]int64, n)
	var wg sync.WaitGroup
	for i := range n {
		from := int64(oracleRows + i*each)
		wg.Go(func() { parts[i] = o.run(ctx, t, from, from+each) })
	}
	return func() map[int64]int64 {
		cancel()
		wg.Wait()
		all := map[int64]int64{}
		for _, p := range parts {
			maps.Copy(all, p)
		}
		t.Logf("%d writes were acknowledged", o.acked.Load())
		return all
	}
}

// settle rolls the job back to the source and compares all rows.
func (s *migrationShop) settle(t *testing.T, want map[int64]int64) {
	t.Helper()
	j := s.job(t, "id")
	_, err := j.Cutover(t.Context(), longPause)
	if errors.Is(err, migrate.ErrNotReady) { // the runners were killed before they had copied all rows
		if err = j.Run(t.Context()); err == nil {
			_, err = j.Cutover(t.Context(), longPause)
		}
	}
	if err != nil && !errors.Is(err, migrate.ErrPhase) {
		t.Fatal(err)
	}
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one begins when nobody writes any more
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.compareWherever(t, "id", "orders")
	for id, value := range want {
		var is int64
		err := s.source.QueryRowContext(t.Context(), fmt.Sprintf("SELECT CAST(total AS %s) FROM orders WHERE id = %d", s.speaks.integer, id)).Scan(&is)
		if err != nil || is != value {
			t.Errorf("row %d holds %d, and %d was acknowledged (%v)", id, is, value, err)
		}
	}
}

// compareWherever compares with the shards under their current names.
func (s *migrationShop) compareWherever(t *testing.T, key, source string) {
	t.Helper()
	var sealed int
	err := s.shards["a"].QueryRowContext(t.Context(), fmt.Sprintf(s.speaks.there, "orders_00_sealed")).Scan(&sealed)
	if err != nil {
		t.Fatal(err)
	}
	suffix := ""
	if sealed > 0 {
		suffix = "_sealed"
	}
	s.compare(t, key, source, suffix)
}

func runnerKills() int {
	if effort.Soak() {
		return 200
	}
	return 4 // on each kind of server; another test kills a runner at each step
}

func TestMigrationSurvivesKillsOfItsRunner(t *testing.T) {
	if dsns := os.Getenv(runnerVar); dsns != "" {
		runForEver(t, strings.Fields(dsns))
	}
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 3000)
		stopOracle := s.watch(t, 2)
		stop := s.writers(t, 2)
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		met := map[string]int{}
		for range runnerKills() {
			met[killRunner(t, s, 1+random.IntN(120), "")]++
		}
		n := stop()
		t.Logf("seed %d, %d transactions, killed after %v", seed, n, met)
		s.settle(t, stopOracle())
	})
}

func TestMigrationSurvivesAKillAtEachStep(t *testing.T) {
	if dsns := os.Getenv(runnerVar); dsns != "" {
		runForEver(t, strings.Fields(dsns))
	}
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		stopOracle := s.watch(t, 2)
		stop := s.writers(t, 1)
		for _, step := range []string{
			migrate.StepLeading, migrate.StepBound, migrate.StepPruned, migrate.StepSnapshot, migrate.StepStored, migrate.StepApplied, migrate.StepAcked,
			migrate.StepLocked, migrate.StepDrained, migrate.StepRenamed, migrate.StepFlipped, migrate.StepSealing, migrate.StepSealed, migrate.StepReinstated,
		} {
			if got := killRunner(t, s, 1, step); got != step {
				t.Logf("asked for a kill after %s, it came after %s", step, got)
			}
		}
		stop()
		s.settle(t, stopOracle())
	})
}

// PostgreSQL answers IF NOT EXISTS with a unique violation when two sessions create one table.
func TestRunnersThatBeginAtOnceCreateTheTablesOfTheJobOnce(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 10)
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for range 8 {
			j := s.job(t, "id")
			wg.Go(func() {
				<-begin
				if err := j.Run(t.Context()); err != nil && !errors.Is(err, migrate.ErrLocked) {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
	})
}
