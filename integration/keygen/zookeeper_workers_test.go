// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
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

func openWorkers(t *testing.T, c *zk.Conn, cfg zookeeper.WorkersConfig) *zookeeper.Workers {
	t.Helper()
	w, err := zookeeper.NewWorkers(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// snowflakes is a generator that is closed, without a look at the error, when the
// test ends, if not before.
func snowflakes(t *testing.T, w keygen.Assigner) *snowflake.Generator {
	t.Helper()
	ctx := testwait.Context(t)
	for {
		g, err := snowflake.New(ctx, snowflake.Config{Layout: fewWorkers(), Worker: w})
		switch {
		case err == nil:
			t.Cleanup(func() { _ = g.Close() })
			return g
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil: // else the machine is busy
			t.Fatal(err)
		}
	}
}

// anywhere is a process at an address of its own.
func anywhere() zookeeper.WorkersConfig { return zooChild{Addr: "127.0.0.1:0"}.config() }

func tickOf(t *testing.T, id int64) int64 {
	t.Helper()
	return id >> fewWorkers().Shift(keygen.Time)
}

// workerRecord is what ZooKeeper has of a worker id.
type workerRecord struct {
	Owner          string
	Ceiling, Until int64
	Generation     int64
}

// firstRecord is that of worker id 0.
func firstRecord(t *testing.T, c *zk.Conn) (r workerRecord) {
	t.Helper()
	data, _, err := c.Get("/snowflake/shop/workers/0000000000")
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func running(t *testing.T, c *zk.Conn) []string {
	t.Helper()
	names, _, err := c.Children("/snowflake/shop/temporary")
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

func TestSnowflakesWithWorkerIDsOfZooKeeperKeepTheContract(t *testing.T) {
	z := server.RunZooKeeper(t)
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		w := openWorkers(t, z.Open(t, steady), anywhere())
		g, err := snowflake.New(t.Context(), snowflake.Config{Worker: w})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		return g
	})
}

func TestWorkerIDsOfEndedProcessesAreUsedAgain(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	var ids []int64
	for range 20 { // of a layout with eight worker ids
		g := snowflakes(t, openWorkers(t, c, anywhere()))
		ids = append(ids, someIDs(t, g, 100)...)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if names := running(t, c); len(names) != 0 {
		t.Errorf("%v are registered", names)
	}
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
	if r := firstRecord(t, c); r.Generation < 2 {
		t.Errorf("%+v was not used again", r)
	}
}

func TestWhenAllWorkerIDsAreHeldTheErrorSaysByWhom(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	for range 8 {
		cfg := anywhere()
		cfg.Report = time.Minute // a busy machine must not end it
		snowflakes(t, openWorkers(t, c, cfg))
	}
	lease, err := openWorkers(t, c, anywhere()).Acquire(t.Context(), fewWorkers())
	if !errors.Is(err, keygen.ErrNoWorker) || !strings.Contains(err.Error(), "all 8") || !strings.Contains(err.Error(), "127.0.0.1:") {
		t.Errorf("%v, %v", lease, err)
	}
	t.Log(err)
	if names := running(t, c); len(names) != 8 {
		t.Errorf("%v are registered", names)
	}
}

func TestAnAddressGoesOnWithItsWorkerID(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	cfg := anywhere()
	cfg.Addr = freeAddr(t)
	snowflakes(t, openWorkers(t, c, anywhere())) // has worker id 0
	w := openWorkers(t, c, cfg)
	g := snowflakes(t, w)
	worker := g.Stats().Worker
	if worker == 0 {
		t.Error("two processes have worker id 0")
	}
	if _, err := w.Acquire(t.Context(), fewWorkers()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("a second worker id for one address: %v", err)
	}
	if err := errors.Join(g.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if again := snowflakes(t, openWorkers(t, c, cfg)).Stats().Worker; again != worker {
		t.Errorf("worker id %d, then %d", worker, again)
	}
}

func TestTheForeverNodeKeepsTheTime(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	w := openWorkers(t, c, anywhere())
	g := snowflakes(t, w)
	read := func() (node struct {
		Worker int64
		Time   time.Time
	}) {
		data, stat, err := c.Get("/snowflake/shop/forever/" + w.Addr())
		if err == nil {
			err = json.Unmarshal(data, &node)
		}
		if err != nil || stat.EphemeralOwner != 0 {
			t.Fatalf("%+v, %v", stat, err)
		}
		return node
	}
	first := read()
	if age := time.Since(first.Time); age < 0 || age > testwait.Limit || first.Worker != g.Stats().Worker {
		t.Errorf("%+v", first)
	}
	testwait.Until(t, "another report", func() bool { return read().Time.After(first.Time) })
}

func TestAClockThatIsBehindTheForeverNodesTimeStartsNothing(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	var clock keygentest.WallClock
	cfg := anywhere()
	cfg.Addr, cfg.Now = freeAddr(t), clock.Now
	w := openWorkers(t, c, cfg)
	g := snowflakes(t, w)
	if err := errors.Join(g.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	before := firstRecord(t, c)
	clock.Set(-time.Hour)
	lease, err := openWorkers(t, c, cfg).Acquire(t.Context(), fewWorkers())
	if !errors.Is(err, keygen.ErrClockRollback) || lease != nil {
		t.Errorf("%v, %v", lease, err)
	}
	t.Log(err)
	if after := firstRecord(t, c); after != before || len(running(t, c)) != 0 {
		t.Errorf("the worker id was %+v and is %+v; %v are registered", before, after, running(t, c))
	}
}

func TestAClockFarFromZooKeepersStartsNothing(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		lease, err := openWorkers(t, c, zooChild{Addr: "127.0.0.1:0", Skew: skew}.config()).Acquire(t.Context(), fewWorkers())
		if !errors.Is(err, zookeeper.ErrClocksDiffer) || lease != nil || !strings.Contains(err.Error(), "ZooKeeper") {
			t.Errorf("%v ahead: %v, %v", skew, lease, err)
		}
	}
	if names := running(t, c); len(names) != 0 {
		t.Errorf("%v are registered", names)
	}
}

func TestAProcessWaitsWhileNoneOfTheOthersTellsItsTime(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	snowflakes(t, openWorkers(t, c, anywhere())) // makes the znodes
	silent := relayTo(t, "")                     // accepts, and says nothing
	silent.hold()
	if _, err := c.Create("/snowflake/shop/temporary/"+silent.listener.Addr().String(), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	w := openWorkers(t, c, anywhere()) // one of two answers: that is enough
	if _, err := w.Acquire(t.Context(), fewWorkers()); err != nil {
		t.Error(err)
	}

	lonely := anywhere()
	lonely.Path = "/snowflake/other"
	other := openWorkers(t, c, lonely)
	lease, err := other.Acquire(t.Context(), fewWorkers())
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.(keygen.Window).Release(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	node := "/snowflake/other/temporary/" + silent.listener.Addr().String()
	if _, err := c.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if lease, err := other.Acquire(ctx, fewWorkers()); err == nil {
		t.Errorf("%v without a clock to compare with", lease)
	}
	if err := c.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), fewWorkers()); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsRegisteredIsWaitedFor(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	w := openWorkers(t, c, anywhere())
	snowflakes(t, openWorkers(t, c, anywhere()))
	twin := z.Open(t, steady)
	node := "/snowflake/shop/temporary/" + w.Addr()
	if _, err := twin.Create(node, []byte("another"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if lease, err := w.Acquire(ctx, fewWorkers()); err == nil {
		t.Errorf("%v beside another process", lease)
	}
	if err := twin.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Acquire(t.Context(), fewWorkers()); err != nil {
		t.Error(err)
	}
}

func TestAClockSetBackTakesTheProcessOutOfServiceUntilItIsRight(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	var clock keygentest.WallClock
	alarms := make(chan error, 10)
	cfg := anywhere()
	cfg.Now = clock.Now
	cfg.Observer.Alarm = func(err error) { alarms <- err }
	g := snowflakes(t, openWorkers(t, c, cfg))
	ids := someIDs(t, g, 100)
	clock.Set(-time.Hour)
	alarm := await(t, alarms)
	if !errors.Is(alarm, keygen.ErrClockRollback) {
		t.Errorf("the alarm is %v", alarm)
	}
	t.Log(alarm)
	testwait.Until(t, "no more ids, because of the clock", func() bool { // the alarm comes a moment before the end
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		id, err := g.Next(ctx)
		if err == nil {
			ids = append(ids, id)
		} else if !errors.Is(err, keygen.ErrStarved) {
			t.Fatalf("got %v", err)
		}
		return errors.Is(err, keygen.ErrClockRollback)
	})
	testwait.Until(t, "it is not registered any more", func() bool { return len(running(t, c)) == 0 })
	clock.Set(0)
	ids = append(ids, someIDs(t, g, 100)...)
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
	if names := running(t, c); len(names) != 1 || len(alarms) != 0 {
		t.Errorf("%v are registered, %d more alarms", names, len(alarms))
	}
}

func TestWithoutZooKeeperNoIDIsBeyondWhatItGranted(t *testing.T) {
	z := server.RunZooKeeper(t)
	through := relayTo(t, z.Addr())
	cfg := anywhere()
	outages, recoveries := make(chan error, 1000), make(chan time.Duration, 1000)
	cfg.Observer = zookeeper.Observer{
		Outage:   func(err error) { outages <- err },
		Recovery: func(lasted time.Duration) { recoveries <- lasted },
	}
	g := snowflakes(t, openWorkers(t, through.open(t, session), cfg))
	ids := someIDs(t, g, 100)
	z.Kill()
	ids = append(ids, untilStarved(t, g)...)
	if why := await(t, outages); why == nil {
		t.Error("the outage has no cause")
	}
	through.hold()
	if err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	granted := firstRecord(t, z.Open(t, steady))
	last := tickOf(t, slices.Max(ids))
	if last >= granted.Ceiling {
		t.Errorf("an id of tick %d; ZooKeeper granted those below %d", last, granted.Ceiling)
	}
	through.release()
	after := someIDs(t, patient{g}, 100)
	await(t, recoveries)
	t.Logf("%d ids, the last %d ticks below the ceiling, and the next one %d ticks later", len(ids), granted.Ceiling-last, tickOf(t, after[0])-last)
	if id, twice := keygentest.Duplicate(append(ids, after...)); twice {
		t.Errorf("%d came twice", id)
	}
}

// untilStarved draws ids until one does not come in time.
func untilStarved(t *testing.T, g keygen.Generator[int64]) (ids []int64) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*report)
		id, err := g.Next(ctx)
		cancel()
		if errors.Is(err, keygen.ErrStarved) {
			return ids
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
}

// A hung ZooKeeper answers nothing, not even that it is down. Meanwhile the
// session ends, and the worker id is another's.
func TestASessionThatExpiresIsAFence(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	through := relayTo(t, z.Addr())
	w := openWorkers(t, through.open(t, session), anywhere())
	g := snowflakes(t, w)
	stop := drawing(t, patient{g})
	testwait.Until(t, "reports", func() bool { return g.Stats().Reservations > 2 })
	through.hold()
	testwait.Until(t, "the session expires", func() bool { return len(running(t, c)) == 0 })
	granted := firstRecord(t, c)
	testwait.Until(t, "what was granted is over", func() bool { return fewWorkers().Tick(time.Now()) > granted.Until })

	var thieves []*snowflake.Generator // among them one that gets the worker id
	for range 8 {
		cfg := anywhere()
		thieves = append(thieves, snowflakes(t, openWorkers(t, c, cfg)))
	}
	var theirs []int64
	for _, thief := range thieves {
		theirs = append(theirs, someIDs(t, thief, 1000)...)
		_ = thief.Close()
	}
	through.release()
	testwait.Until(t, "it is registered again", func() bool { return len(running(t, c)) == 1 })
	before := g.Stats().Issued
	testwait.Until(t, "ids", func() bool { return g.Stats().Issued > before })
	ours := stop()
	if id, twice := keygentest.Duplicate(append(ours, theirs...)); twice {
		t.Errorf("%d came twice", id)
	}
	if r := firstRecord(t, c); r.Generation < 2 {
		t.Errorf("%+v: nobody else had the worker id", r)
	}
}

// patient tries again when a call has waited as long as it may.
type patient struct{ keygen.Generator[int64] }

func (p patient) Next(ctx context.Context) (int64, error) {
	for {
		id, err := p.Generator.Next(ctx)
		if !errors.Is(err, keygen.ErrStarved) || ctx.Err() != nil {
			return id, err
		}
	}
}

func TestASessionThatExpiredIsRegisteredAgain(t *testing.T) {
	c := server.RunZooKeeper(t).Open(t, steady)
	w := openWorkers(t, c, anywhere())
	g := snowflakes(t, w)
	if err := c.Delete("/snowflake/shop/temporary/"+w.Addr(), -1); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it is registered again", func() bool { return len(running(t, c)) == 1 })
	someIDs(t, g, 10)
}
