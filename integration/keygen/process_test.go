// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

const (
	// childVar makes this test binary print ids until it is killed: it holds a
	// driver's name and a DSN.
	childVar = "SHARDID_TEST_CHILD"
	// fileVar is the file of the child's lease, when it has one.
	fileVar = "SHARDID_TEST_LEASE"
	// farVar makes the child go far ahead of the clock.
	farVar = "SHARDID_TEST_FAR"
	// trustVar makes the child trust that its lease goes on, without asking the ledger.
	trustVar = "SHARDID_TEST_TRUST"
)

func TestMain(m *testing.M) {
	if driver, dsn, found := strings.Cut(os.Getenv(childVar), " "); found {
		_, _ = fmt.Fprintln(os.Stderr, printIDs(driver, dsn))
		os.Exit(1)
	}
	if text := os.Getenv(zooChildVar); text != "" {
		_, _ = fmt.Fprintln(os.Stderr, printZooKeepersIDs(text))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// borrow lets the child run ahead of the clock, so that its successor repeats
// its ids unless it knows how far it went.
const borrow = 500 * time.Millisecond

// farAhead is how far a child may go that is to be caught repeating: a busy machine
// takes seconds to start the next one.
const farAhead = 10 * time.Second

// fewWorkers is a layout with so few worker ids that they are soon used again.
func fewWorkers() keygen.Layout {
	l := keygen.Twitter()
	l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 7}}
	return l
}

// These stand for leases in Redis or ZooKeeper, whose address is the DSN.
const (
	redisDriver     = "redis"
	zooKeeperDriver = "zookeeper"
)

// childsLedger is the ledger of a child.
func childsLedger(ctx context.Context, driver, dsn string) (workerid.Ledger, error) {
	switch driver {
	case redisDriver:
		return redisgen.NewLeases(redis.NewClient(&redis.Options{Addr: dsn}), "shop:worker")
	case zooKeeperDriver:
		conn, err := server.DialZooKeeper(dsn, session)
		if err != nil {
			return nil, err
		}
		return zookeeper.NewLeases(conn, "/shop/worker")
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.New(ctx, db)
	if err != nil {
		return nil, err
	}
	return store.Leases(), nil
}

func printIDs(driver, dsn string) error {
	ctx := context.Background()
	ledger, err := childsLedger(ctx, driver, dsn)
	if err != nil {
		return err
	}
	if os.Getenv(trustVar) != "" {
		ledger = trusting{ledger}
	}
	lease := workerid.LeasedConfig{Ledger: ledger, Namespace: "children", Term: time.Second}
	if lease.File = os.Getenv(fileVar); lease.File != "" {
		lease.Term = 10 * time.Minute
	}
	assigner, err := workerid.NewLeased(lease)
	if err != nil {
		return err
	}
	cfg := snowflake.Config{Layout: fewWorkers(), Worker: assigner, Borrow: borrow}
	if os.Getenv(farVar) != "" {
		cfg.Layout, cfg.Borrow = slow(), farAhead
	}
	g, err := start(ctx, cfg)
	if err != nil {
		return err
	}
	return printAll(ctx, g)
}

// printAll prints ids until the process is killed.
func printAll(ctx context.Context, g *snowflake.Generator) error {
	ids := make([]int64, 64)
	for {
		err := g.Fill(ctx, ids)
		if errors.Is(err, keygen.ErrStarved) { // the machine is busy
			continue
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(os.Stdout, strings.Trim(fmt.Sprint(ids), "[]")); err != nil {
			return err
		}
	}
}

// start waits while the killed ones still hold all worker ids.
func start(ctx context.Context, cfg snowflake.Config) (*snowflake.Generator, error) {
	for {
		g, err := snowflake.New(ctx, cfg)
		if !errors.Is(err, keygen.ErrNoWorker) {
			return g, err
		}
	}
}

// child starts a process that prints ids, reads as many and kills it. It returns
// all that was printed.
func child(ctx context.Context, driver, dsn string, count int, env ...string) ([]int64, error) {
	progress, stop := enough(count)
	return runChild(ctx, append(env, childVar+"="+driver+" "+dsn), progress, stop)
}

// enough closes stop when progress has come to so many ids.
func enough(count int) (progress func(n int), stop chan struct{}) {
	stop = make(chan struct{})
	var once sync.Once
	return func(n int) {
		if n >= count {
			once.Do(func() { close(stop) })
		}
	}, stop
}

// runChild starts a process of this binary, reads what it prints, reporting how
// many ids, and kills it once stop is closed.
func runChild(ctx context.Context, env []string, progress func(n int), stop <-chan struct{}) (ids []int64, err error) {
	p, err := startChild(ctx, env)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		select {
		case <-stop:
			_ = p.cmd.Process.Kill() // fails when it has ended
		case <-ended:
		}
	})
	err = p.read(func(more []int64) {
		ids = append(ids, more...)
		progress(len(ids))
	})
	close(ended)
	killer.Wait()
	return ids, err
}

// printer is a process of this binary that prints ids until it is killed.
type printer struct {
	cmd        *exec.Cmd
	out        *bufio.Reader
	complaints strings.Builder
}

func startChild(ctx context.Context, env []string) (*printer, error) {
	p := &printer{cmd: exec.CommandContext(ctx, os.Args[0])}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.complaints
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// read passes on the ids of each line, until the process has ended.
func (p *printer) read(progress func(ids []int64)) error {
	err := read(p.out, progress)
	_ = p.cmd.Wait() // says "signal: killed"
	if said := p.complaints.String(); said != "" {
		err = errors.Join(err, errors.New("the child said: "+said))
	}
	return err
}

// read passes on the ids of each line up to the end. The last one may have been cut off.
func read(from *bufio.Reader, progress func(ids []int64)) error {
	for {
		line, err := from.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var ids []int64
		for text := range strings.FieldsSeq(line) {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		progress(ids)
	}
}

// killChildren runs four children at a time, each killed in the middle, and
// returns all ids. After each kill, afterwards is called.
func killChildren(t *testing.T, driver, dsn string, n, count int, afterwards func() error, env ...string) []int64 {
	t.Helper()
	turns := make(chan struct{}, n)
	for range n {
		turns <- struct{}{}
	}
	close(turns)
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range turns {
				ids, err := child(t.Context(), driver, dsn, count, env...)
				if err = errors.Join(err, afterwards()); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, ids...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}

// onChildrensDatabases runs a test on databases that child processes can open.
func onChildrensDatabases(t *testing.T, test func(t *testing.T, db *sql.DB, driver, dsn string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		dsn := "file:" + t.TempDir() + "/app.db"
		db, err := sql.Open("sqlite", dsn+"?_pragma=busy_timeout(3600000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		database.Prepare(t, db)
		test(t, db, "sqlite", dsn)
	})
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		db, _ := database.MariaDB(m).Store(t)
		test(t, db, "mysql", m.DSN("app"))
	})
}

func TestNoIDComesTwiceWhenGeneratorsAreKilledBetweenReserveAndUse(t *testing.T) {
	onChildrensDatabases(t, func(t *testing.T, db *sql.DB, driver, dsn string) {
		ids := killChildren(t, driver, dsn, kills(), 2000, func() error { return nil })
		workers := database.MustNumber(t, db, "SELECT COUNT(*) FROM worker_lease WHERE generation > 1")
		t.Logf("%d ids over %d kills, %d worker ids were used again", len(ids), kills(), workers)
		if id, twice := keygentest.Duplicate(ids); twice || workers == 0 {
			t.Errorf("%d came twice, of %d ids; %d worker ids were used again", id, len(ids), workers)
		}
	})
}

// The opposite of the test above: what the killed one wrote down is wiped out,
// after it went ahead of the clock as far as it may.
func TestWithoutTheWrittenCeilingAKilledGeneratorsIDsComeAgain(t *testing.T) {
	onChildrensDatabases(t, func(t *testing.T, db *sql.DB, driver, dsn string) {
		const wipe = "UPDATE worker_lease SET owner = NULL, ceiling = 0"
		for ctx := testwait.Context(t); ctx.Err() == nil; {
			ids := killChildren(t, driver, dsn, 8, 60_000, func() error {
				_, err := db.ExecContext(t.Context(), wipe)
				return err
			}, farVar+"=1")
			if _, twice := keygentest.Duplicate(ids); twice {
				return
			}
		}
		t.Error("no duplicate: kills do not show what they should")
	})
}

func TestAKilledGeneratorStartsAgainWithoutTheDatabaseFromTheFileOfItsLease(t *testing.T) {
	m := server.RunMariaDB(t)
	db, _ := database.MariaDB(m).Store(t)
	file := fileVar + "=" + t.TempDir() + "/lease"
	var all []int64
	run := func() {
		ids, err := child(t.Context(), "mysql", m.DSN("app"), 2000, file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ids...)
	}
	run()
	m.Kill()
	run()
	run()
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	run()
	m.Signal(t, syscall.SIGSTOP) // it accepts connections and does not answer
	run()
	m.Signal(t, syscall.SIGCONT)
	leases := database.MustNumber(t, db, "SELECT COUNT(*) FROM worker_lease WHERE generation > 0")
	if id, twice := keygentest.Duplicate(all); twice || leases != 2 {
		t.Errorf("%d came twice, of %d ids; %d worker ids were leased", id, len(all), leases)
	}
}
