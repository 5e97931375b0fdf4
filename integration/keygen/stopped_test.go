// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// trusting is a ledger of a process that believes that its lease goes on.
type trusting struct{ workerid.Ledger }

func (trusting) Renew(_ context.Context, c workerid.Claim, _ workerid.Entry) (int64, error) {
	return c.Layout.Tick(time.Now().Add(c.Term)), nil
}

// issuer is a process whose ids are collected while it runs.
type issuer struct {
	*printer

	ended sync.WaitGroup

	mu     sync.Mutex
	issued []int64 // guarded by mu
	failed error   // set when ended
}

func startIssuer(t *testing.T, driver, dsn string, env ...string) *issuer {
	t.Helper()
	return startIssuerWith(t, append(env, childVar+"="+driver+" "+dsn)...)
}

func startIssuerWith(t *testing.T, env ...string) *issuer {
	t.Helper()
	p, err := startChild(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{printer: p}
	i.ended.Go(func() { i.failed = p.read(i.add) })
	t.Cleanup(func() { i.kill(t) })
	return i
}

func (i *issuer) add(ids []int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.issued = append(i.issued, ids...)
}

// ids returns what it has issued so far.
func (i *issuer) ids() []int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.issued)
}

// last returns the newest one.
func (i *issuer) last() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.issued[len(i.issued)-1]
}

// more waits until it has issued as many more ids.
func (i *issuer) more(t *testing.T, count int) {
	t.Helper()
	count += len(i.ids())
	testwait.Until(t, "a process issues ids", func() bool { return len(i.ids()) >= count })
}

// newest returns the parts of its newest id.
func (i *issuer) newest(t *testing.T) keygen.Parts {
	t.Helper()
	parts, err := fewWorkers().Parse(i.last())
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func (i *issuer) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := i.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (i *issuer) kill(t *testing.T) {
	t.Helper()
	_ = i.cmd.Process.Kill() // fails when it has ended
	if i.ended.Wait(); i.failed != nil {
		t.Error(i.failed)
	}
}

// successor starts processes until one gets a worker id that another one has.
func successor(t *testing.T, worker int64, driver, dsn string, env ...string) *issuer {
	t.Helper()
	for ctx := testwait.Context(t); ctx.Err() == nil; {
		next := startIssuer(t, driver, dsn, env...)
		if next.more(t, 64); next.newest(t).Worker == worker {
			return next
		}
		next.kill(t)
	}
	t.Fatalf("no process got the worker id %d of the one that was stopped", worker)
	return nil
}

// stopWithout stops a process while it has no transaction open on a database, whose locks would
// keep others from its lease until it continues. Of Redis and ZooKeeper it can have none.
func (i *issuer) stopWithout(t *testing.T, locks *sql.DB) {
	t.Helper()
	for ctx := testwait.Context(t); ctx.Err() == nil; i.signal(t, syscall.SIGCONT) {
		i.more(t, 64)
		i.signal(t, syscall.SIGSTOP)
		if locks == nil || changes(ctx, locks) {
			return
		}
	}
	t.Fatal("the process never stopped outside of a transaction")
}

// changes returns whether the rows of leases can be changed, which they cannot while a
// transaction of another process has locked one.
func changes(ctx context.Context, db *sql.DB) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := db.ExecContext(ctx, "UPDATE worker_lease SET holder = holder")
	return err == nil
}

// onChildrensLedgers runs a test on the ledgers that child processes can open. Locks is the
// ledger's database, nil for none, on which statements do not wait for locks for long.
func onChildrensLedgers(t *testing.T, test func(t *testing.T, locks *sql.DB, driver, dsn string)) {
	t.Helper()
	withLocks := func(t *testing.T, driver, dsn string) {
		t.Helper()
		locks, err := sql.Open(driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() })
		test(t, locks, driver, dsn)
	}
	onChildrensDatabases(t, func(t *testing.T, _ *sql.DB, driver, dsn string) { withLocks(t, driver, dsn) })
	t.Run("PostgreSQL", func(t *testing.T) {
		p := server.RunPostgres(t)
		database.Postgres(p).Store(t)
		withLocks(t, "pgx", p.DSN("app"))
	})
	t.Run("Redis", func(t *testing.T) { test(t, nil, redisDriver, redisOfChildren(t).Addr()) })
	t.Run("ZooKeeper", func(t *testing.T) { test(t, nil, zooKeeperDriver, server.RunZooKeeper(t).Addr()) })
}

func redisOfChildren(t *testing.T) *server.Redis {
	t.Helper()
	r := server.RunRedis(t)
	if err := redisLeases(t, r.Open(t)).Create(t.Context(), "children"); err != nil {
		t.Fatal(err)
	}
	return r
}

// A process is stopped at any place, between the look at its lease and the id, say, until another
// process has its worker id. When it continues, it may issue ids of times that only it had.
func TestAProcessThatWasStoppedIssuesNoIDOfItsSuccessor(t *testing.T) {
	onChildrensLedgers(t, func(t *testing.T, locks *sql.DB, driver, dsn string) {
		first := startIssuer(t, driver, dsn)
		first.stopWithout(t, locks)
		second := successor(t, first.newest(t).Worker, driver, dsn)
		taken := second.newest(t).Time
		first.signal(t, syscall.SIGCONT)
		testwait.Until(t, "the first process has a new lease", func() bool { return first.newest(t).Time.After(taken) })
		first.more(t, 2000)
		second.more(t, 2000)
		ids := append(first.ids(), second.ids()...)
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice, of %d", id, len(ids))
		}
	})
}

// The opposite of the test above: the process does not ask whether it still has its lease.
func TestAProcessThatTrustsItsLeaseAfterAStopIssuesIDsOfItsSuccessor(t *testing.T) {
	addr := redisOfChildren(t).Addr()
	first := startIssuer(t, redisDriver, addr, trustVar+"=1")
	first.stopWithout(t, nil)
	second := successor(t, first.newest(t).Worker, redisDriver, addr)
	first.signal(t, syscall.SIGCONT)
	testwait.Until(t, "an id comes twice", func() bool {
		_, twice := keygentest.Duplicate(append(first.ids(), second.ids()...))
		return twice
	})
}
