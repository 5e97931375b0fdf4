// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// zooChildVar makes this test binary print ids until it is killed, with a worker
// id of ZooKeeper. It holds a zooChild.
const zooChildVar = "SHARDID_TEST_ZOOKEEPER_CHILD"

// zooChild is what a child process is told.
type zooChild struct {
	Server, Addr, File string
	Skew               time.Duration // of its clock
	Report, Borrow     time.Duration
}

// slow is a layout of few worker ids and of 8 ids in a millisecond, so that a
// child is soon as far ahead of the clock as it may.
func slow() keygen.Layout {
	l := keygen.Twitter()
	l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 3}}
	return l
}

// report is how often tests report.
const report = 200 * time.Millisecond

func (c zooChild) config() zookeeper.WorkersConfig {
	return zookeeper.WorkersConfig{
		Path: "/snowflake/shop", Addr: c.Addr, File: c.File, Report: cmp.Or(c.Report, report),
		Now: func() time.Time { return time.Now().Add(c.Skew) },
	}
}

func printZooKeepersIDs(text string) error {
	var c zooChild
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	conn, err := server.DialZooKeeper(c.Server, session)
	if err != nil {
		return err
	}
	workers, err := zookeeper.NewWorkers(conn, c.config())
	if err != nil {
		return err
	}
	ctx := context.Background()
	for {
		g, err := snowflake.New(ctx, snowflake.Config{Layout: slow(), Worker: workers, Borrow: c.Borrow})
		switch {
		case err == nil:
			return printAll(ctx, g)
		case !errors.Is(err, context.DeadlineExceeded) && !isOutage(err): // else the machine is busy
			return err
		}
	}
}

// isOutage tells whether a call failed as its connection or its session ended.
func isOutage(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionExpired)
}

// run starts a child, reads what it prints, reporting how many ids, and kills it
// once stop is closed.
func (c zooChild) run(ctx context.Context, progress func(n int), stop <-chan struct{}) ([]int64, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return runChild(ctx, []string{zooChildVar + "=" + string(text)}, progress, stop)
}

func TestProcessesThatStartAtOnceHaveWorkerIDsOfTheirOwn(t *testing.T) {
	z := server.RunZooKeeper(t)
	const children = 6
	results := make([][]int64, children)
	stop := make(chan struct{})
	var running atomic.Int64
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			var once sync.Once
			ids, err := zooChild{Server: z.Addr(), Addr: "127.0.0.1:0", Report: time.Minute}.run(t.Context(), func(int) {
				once.Do(func() { running.Add(1) })
			}, stop)
			if err != nil {
				t.Error(err)
			}
			results[i] = ids
		})
	}
	testwait.Until(t, "all processes issue ids", func() bool { return running.Load() == children || t.Failed() })
	close(stop)
	wg.Wait()
	owners := map[int64]int{}
	var all []int64
	for i, ids := range results {
		for _, id := range ids {
			parts, err := slow().Parse(id)
			if err != nil {
				t.Fatal(err)
			}
			if owner, known := owners[parts.Worker]; known && owner != i {
				t.Fatalf("the processes %d and %d both have worker id %d", owner, i, parts.Worker)
			}
			owners[parts.Worker] = i
		}
		all = append(all, ids...)
	}
	t.Logf("%d ids; who has which worker id: %v", len(all), owners)
	if id, twice := keygentest.Duplicate(all); twice || len(owners) != children {
		t.Errorf("%d came twice; worker ids %v", id, owners)
	}
}

// killZooChildren kills four children at a time, each at an address of its own
// and once it has printed so many ids. It returns all of them.
func killZooChildren(t *testing.T, like zooChild, rounds, count int, files bool, afterwards func(addr string) error) []int64 {
	t.Helper()
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for i := range 4 {
		c := like
		c.Addr = freeAddr(t)
		if files {
			c.File = fmt.Sprintf("%s/worker-%d", t.TempDir(), i)
		}
		wg.Go(func() {
			for range rounds {
				progress, stop := enough(count)
				ids, err := c.run(t.Context(), progress, stop)
				if err = errors.Join(err, afterwards(c.Addr)); err != nil || len(ids) == 0 {
					t.Errorf("%d ids, %v", len(ids), err)
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

// freeAddr is an address that nobody listens at.
func freeAddr(t *testing.T) string {
	t.Helper()
	r := relayTo(t, "")
	_ = r.listener.Close()
	return r.listener.Addr().String()
}

func TestNoIDComesTwiceWhenProcessesAreKilledAndStartedAtTheSameAddress(t *testing.T) {
	for name, files := range map[string]bool{"without files": false, "with files": true} {
		t.Run(name, func(t *testing.T) {
			z := server.RunZooKeeper(t)
			c := zooChild{Server: z.Addr(), Borrow: borrow}
			ids := killZooChildren(t, c, 4, 5000, files, func(string) error { return nil })
			names, _, err := z.Open(t, steady).Children("/snowflake/shop/workers")
			t.Logf("%d ids over 16 kills, worker ids %v", len(ids), names)
			if id, twice := keygentest.Duplicate(ids); twice || err != nil || len(names) > 8 {
				t.Errorf("%d came twice, of %d; worker ids %v, %v", id, len(ids), names, err)
			}
		})
	}
}

// The opposite of the test above: after each kill the ceilings are wiped out, and
// what else would make the next process wait.
func TestWithoutTheCeilingInZooKeeperAKilledProcesssIDsComeAgain(t *testing.T) {
	z := server.RunZooKeeper(t)
	conn := z.Open(t, steady)
	wipe := func(addr string) error {
		err := conn.Delete("/snowflake/shop/temporary/"+addr, -1)
		if errors.Is(err, zk.ErrNoNode) { // the session has ended already
			err = nil
		}
		return errors.Join(wipeCeilings(conn), err)
	}
	c := zooChild{Server: z.Addr(), Report: 12 * time.Second, Borrow: 20 * time.Second}
	for ctx := testwait.Context(t); ctx.Err() == nil; {
		if _, twice := keygentest.Duplicate(killZooChildren(t, c, 2, 100_000, false, wipe)); twice {
			return
		}
	}
	t.Error("no duplicate: kills do not show what they should")
}

func wipeCeilings(c *zk.Conn) error {
	names, _, err := c.Children("/snowflake/shop/workers")
	for _, name := range names {
		path := "/snowflake/shop/workers/" + name
		data, _, getErr := c.Get(path)
		var record map[string]any
		err = errors.Join(err, getErr, json.Unmarshal(data, &record))
		record["owner"], record["ceiling"], record["until"] = "", 0, 0
		text, marshalErr := json.Marshal(record)
		_, setErr := c.Set(path, text, -1)
		err = errors.Join(err, marshalErr, setErr)
	}
	return err
}

// Both clocks are within the threshold of ZooKeeper's, but not of each other's.
func TestAProcessWhoseClockIsFarFromTheOthersDoesNotStart(t *testing.T) {
	z := server.RunZooKeeper(t)
	const report = 10 * time.Second // beside which it does not matter how long a question takes
	stop := make(chan struct{})
	started := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := (zooChild{Server: z.Addr(), Addr: "127.0.0.1:0", Report: report, Skew: report * 8 / 10}).run(t.Context(), func(int) {
			once.Do(func() { close(started) })
		}, stop); err != nil {
			t.Error(err)
		}
	})
	await(t, started)
	for _, test := range []struct {
		skew time.Duration
		want error
	}{{-report * 8 / 10, zookeeper.ErrClocksDiffer}, {report / 2, nil}, {-report * 8 / 10, zookeeper.ErrClocksDiffer}} {
		w := openWorkers(t, z.Open(t, steady), zooChild{Addr: "127.0.0.1:0", Report: report, Skew: test.skew}.config())
		lease, err := w.Acquire(t.Context(), slow())
		if !errors.Is(err, test.want) || (lease == nil) != (err != nil) {
			t.Errorf("with a clock that is %v ahead: %v, %v; want %v", test.skew, lease, err, test.want)
		}
		if err != nil && !strings.Contains(err.Error(), "average") {
			t.Errorf("got %v", err)
		}
		if lease != nil {
			if err := lease.(keygen.Window).Release(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	wg.Wait()
}
