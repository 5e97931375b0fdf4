// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// sleeper is a runner in a process of its own that is stopped and continued by signals.
type sleeper struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// addSleeper creates the user sleeper on both servers.
func (s *migrationShop) addSleeper(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		for _, statement := range s.speaks.sleeper {
			database.Exec(t, s.shards[name], statement)
		}
	}
}

// newSleeper starts a runner whose connections are those of the user sleeper, and waits until it has stopped itself in a step.
func (s *migrationShop) newSleeper(t *testing.T, step string) *sleeper {
	t.Helper()
	dsns := []string{s.servers[0].DSN("shop"), s.servers[0].DSN("shop_a"), s.servers[1].DSN("shop_b"), step}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), runnerVar+"="+strings.NewReplacer("root@", "sleeper@", "postgres@", "sleeper@").Replace(strings.Join(dsns, " ")))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	z := &sleeper{cmd, bufio.NewScanner(out)}
	var said []string
	for z.lines.Scan() && z.lines.Text() != stopsItself {
		said = append(said, z.lines.Text())
	}
	if z.lines.Text() != stopsItself {
		t.Fatalf("the runner ended before %s (%v):\n%s", step, z.lines.Err(), strings.Join(said, "\n"))
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the runner is not stopped: %v, %v", status, err)
	}
	return z
}

// stopsItself is said by a runner before it stops itself.
const stopsItself = "stops itself"

// wakeUp continues the runner and returns its output after it has ended.
func (z *sleeper) wakeUp(t *testing.T) string {
	t.Helper()
	if err := z.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var said []string
	for z.lines.Scan() {
		said = append(said, z.lines.Text())
	}
	if err := z.cmd.Wait(); err == nil {
		t.Error("the runner ended well")
	}
	return strings.Join(said, "\n")
}

// forget has the servers give up the sleeper's connections, as they do when
// nothing was heard of a host for long enough: they have waited for a statement for some time then.
// MariaDB takes triggers from a table whose RENAME is killed.
func (s *migrationShop) forget(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		testwait.Until(t, "the sleeper's statements have ended", func() bool {
			return len(database.Texts(t, s.shards[name], fmt.Sprintf(s.speaks.busy, "sleeper"))) == 0
		})
	}
	s.disconnectSleeper(t)
}

// disconnectSleeper closes the sleeper's connections on all servers.
func (s *migrationShop) disconnectSleeper(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		s.disconnect(t, s.shards[name], "sleeper")
	}
}

// disconnect closes the connections of the user, as a server's timeout does. It returns their
// number.
func (s *migrationShop) disconnect(t *testing.T, db *sql.DB, user string) int {
	t.Helper()
	ids := database.Texts(t, db, fmt.Sprintf(s.speaks.connected, user))
	for _, id := range ids {
		_, _ = db.ExecContext(t.Context(), strings.Replace(s.speaks.kills, "%d", id, 1)) // it may be gone already
	}
	return len(ids)
}

func TestARunnerThatSleptWritesNothing(t *testing.T) {
	if dsns := os.Getenv(runnerVar); dsns != "" {
		runForEver(t, strings.Fields(dsns))
	}
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		s.addSleeper(t)
		stopOracle := s.watch(t, 1)
		stop := s.writers(t, 1)
		for _, step := range []string{migrate.StepSnapshot, migrate.StepApplied, migrate.StepDrained, migrate.StepRenamed} {
			z := s.newSleeper(t, step)
			s.forget(t)
			next := s.job(t, "id")
			for errors.Is(next.Run(t.Context()), migrate.ErrLocked) { // until the server has noticed
				continue
			}
			err := thereAndBack(t.Context(), next)
			for migrate.Transient(err) { // the server of a busy machine has not ended the sleeper's transaction yet
				err = thereAndBack(t.Context(), next)
			}
			if err != nil {
				t.Fatal(err)
			}
			said := z.wakeUp(t)
			if fenced := strings.Contains(said, migrate.ErrFenced.Error()); !fenced && step != migrate.StepDrained && step != migrate.StepRenamed {
				t.Errorf("asleep after %s: %s", step, said)
			}
		}
		stop()
		s.settle(t, stopOracle())
	})
}

// troubled opens connections of a database on which statements fail now and
// then, in ways that servers and networks have.
type troubled struct {
	of      driver.Driver
	dsn     string
	trouble *trouble
}

// trouble chooses the statements that fail.
type trouble struct {
	mu      sync.Mutex
	random  *rand.Rand
	speaks  *shopSpeech
	off     atomic.Bool
	stirred atomic.Int64
	before  func(statement string) // is called before each statement without rows; nil for nobody
	asks    func(query string)     // is called before each statement with rows; nil for nobody
}

type failure int

const (
	none failure = iota
	deadlock
	lockTimeout
	lostBefore
	lostAfter
)

func (t *trouble) next() failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Each failure makes the next one rarer: a transaction of many statements comes through at last.
	if t.off.Load() || t.random.IntN(60+10*int(t.stirred.Load())) != 0 {
		return none
	}
	t.stirred.Add(1)
	return failure(1 + t.random.IntN(int(lostAfter)))
}

func (c troubled) Driver() driver.Driver { return c.of }

func (c troubled) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.of.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return troubledConn{conn, c.trouble}, nil
}

type troubledConn struct {
	driver.Conn

	trouble *trouble
}

func (c troubledConn) ResetSession(ctx context.Context) error {
	return c.Conn.(driver.SessionResetter).ResetSession(ctx)
}

func (c troubledConn) IsValid() bool {
	validator, may := c.Conn.(driver.Validator)
	return !may || validator.IsValid()
}

func (c troubledConn) CheckNamedValue(v *driver.NamedValue) error {
	return c.Conn.(driver.NamedValueChecker).CheckNamedValue(v)
}

func (c troubledConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.trouble.asks != nil {
		c.trouble.asks(query)
	}
	if c.trouble.next() == lostBefore {
		_ = c.Close()
		return nil, c.trouble.speaks.lost
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c troubledConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	inner := c.Conn.(driver.ExecerContext)
	if c.trouble.before != nil {
		c.trouble.before(query)
	}
	switch c.trouble.next() {
	case deadlock: // the server undoes the transaction
		return nil, c.trouble.speaks.deadlock.happen(ctx, inner)
	case lockTimeout: // MySQL undoes the statement alone
		return nil, c.trouble.speaks.lockTimeout.happen(ctx, inner)
	case lostBefore:
		_ = c.Close()
		return nil, c.trouble.speaks.lost
	case lostAfter: // nobody is told whether it worked
		_, err := inner.ExecContext(ctx, query, args)
		_ = c.Close()
		return nil, errors.Join(c.trouble.speaks.lost, io.ErrUnexpectedEOF, ignoreSkip(err))
	}
	return inner.ExecContext(ctx, query, args)
}

// fault is what a server does to a transaction by itself: a statement that does it, and the
// error where the statement has none.
type fault struct {
	does string
	err  error
}

func (f fault) happen(ctx context.Context, conn driver.ExecerContext) error {
	if f.does != "" {
		if _, err := conn.ExecContext(ctx, f.does, nil); err != nil {
			return err
		}
	}
	return f.err
}

// ignoreSkip ignores the error of a statement with arguments that was not sent.
func ignoreSkip(err error) error {
	if errors.Is(err, driver.ErrSkip) {
		return nil
	}
	return err
}

func (s *migrationShop) trouble(t *testing.T, tr *trouble, server int, database string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(troubled{s.source.Driver(), s.servers[server].DSN(database), tr})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestDeadlocksTimeoutsAndLostConnectionsLoseNothing(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 2000)
		tr := &trouble{random: rand.New(rand.NewPCG(1, 4)), speaks: s.speaks}
		j := s.job(t, "user_id", func(c *migrate.Config) {
			c.ChunkRows = 100
			c.Source = s.trouble(t, tr, 0, "shop")
			c.Shards = sharding.DBs{"a": s.trouble(t, tr, 0, "shop_a"), "b": s.trouble(t, tr, 1, "shop_b")}
		})
		stop := s.writers(t, 1)
		again := func(what string, f func() error) {
			for ctx, attempt := testwait.Context(t), 1; ; attempt++ {
				err := f()
				if err == nil {
					return
				}
				if ctx.Err() != nil || errors.Is(err, migrate.ErrChanged) || errors.Is(err, migrate.ErrUnclear) {
					stop()
					t.Fatalf("%s, attempt %d: %v", what, attempt, err)
				}
			}
		}
		again("run", func() error { return j.Run(t.Context()) })
		again("cutover", func() error { _, err := j.Cutover(t.Context(), longPause); return err })
		stop()
		s.compare(t, "user_id", "orders_old", "")
		again("rollback", func() error { _, err := j.Rollback(t.Context(), longPause); return err })
		t.Logf("%d statements failed", tr.stirred.Load())
		if tr.stirred.Load() == 0 {
			t.Error("nothing failed")
		}
		s.compareWherever(t, "user_id", "orders")
	})
}

func TestIDsAtTheEndsOfTheirRangeAreMoved(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		database.Exec(t, s.source, "CREATE TABLE ends (id BIGINT PRIMARY KEY, v INT NOT NULL)")
		database.Exec(t, s.source, "INSERT INTO ends VALUES (-9223372036854775808, 1), (-9223372036854775807, 2), (-1, 3), (0, 4), (1, 5), (9223372036854775806, 6), (9223372036854775807, 7)")
		m, err := sharding.Spread([]string{"a", "b"}, 4, "ends_%d")
		if err != nil {
			t.Fatal(err)
		}
		table := migrate.Table{Table: sharding.Table{Name: "ends", Key: "v", Rule: sharding.Low(2), Map: m}}
		j := s.job(t, "id", func(c *migrate.Config) { c.Name, c.Tables, c.ChunkRows = "", []migrate.Table{table}, 2 })
		steps := []func() error{
			func() error { return j.Run(t.Context()) },
			func() error {
				_, err := s.source.ExecContext(t.Context(), "UPDATE ends SET v = v + 1")
				return errors.Join(err, j.Run(t.Context()))
			},
			func() error {
				_, err := s.source.ExecContext(t.Context(), "DELETE FROM ends WHERE v IN (2, 8)") // the first and the last
				return errors.Join(err, j.Run(t.Context()))
			},
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if v, err := j.Verify(t.Context()); err != nil || !v.Clean() || v.Rows == 0 {
				t.Errorf("step %d: %+v, %v", i, v, err)
			}
			s.compareTable(t, table, "CONCAT(id, '=', v)", "ends")
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, s.shards["a"], "INSERT INTO ends_0 VALUES (9223372036854775807, 4), (-9223372036854775808, 8)")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(database.Texts(t, s.source, "SELECT id FROM ends WHERE v IN (4, 8) ORDER BY id"), " "); got != "-9223372036854775808 -1 9223372036854775807" {
			t.Errorf("got %s", got)
		}
	})
}

// changeOnShards makes one random change where the application writes after the
// switch.
func (s *migrationShop) changeOnShards(random *rand.Rand, table migrate.Table) error {
	id, other := int64(random.IntN(3000)+1), random.IntN(3000)+1
	at, err := table.Target(id)
	if err != nil {
		return err
	}
	texts := append(s.speaks.onShards[:],
		"DELETE FROM %[1]s WHERE id = %[2]d AND %[3]d %% 2 = 0",
		"UPDATE %[1]s SET note = 'on a shard', total = %[3]d WHERE id = %[2]d")
	_, err = s.shards[at.DB].ExecContext(context.Background(), fmt.Sprintf(texts[random.IntN(len(texts))], at.Table, id, other))
	return err
}

func TestWhatIsWrittenToTheShardsComesBack(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 2000)
		table := shopOrders(t, "id")
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		done, err := j.Cutover(t.Context(), longPause)
		if err != nil || done.Pause <= 0 || done.Pause > longPause {
			t.Fatalf("%+v, %v", done, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		written := 0
		wg.Go(func() {
			random := rand.New(rand.NewPCG(2, 2))
			for ctx.Err() == nil {
				if s.changeOnShards(random, table) == nil {
					written++
				}
				time.Sleep(writersRest())
			}
		})
		following := make(chan error, 1)
		followCtx, stopFollowing := context.WithCancel(t.Context())
		go func() { following <- j.Follow(followCtx) }()
		for range 2 {
			if v, err := j.Verify(t.Context()); err != nil || v.Requeued > 0 {
				t.Errorf("%+v, %v", v, err)
			}
		}
		stopFollowing()
		if err := <-following; err != nil {
			t.Error(err)
		}
		done, err = j.Rollback(t.Context(), longPause) // the writers go on until it shuts them out
		cancel()
		wg.Wait()
		if err != nil || done.Pause <= 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		t.Logf("%d changes, pause %s, %d drained", written, done.Pause, done.Drained)
		s.compare(t, "id", "orders", "_sealed")
		if v, err := j.Verify(t.Context()); err != nil || !v.Clean() {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
