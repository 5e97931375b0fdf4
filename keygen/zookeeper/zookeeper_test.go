// SPDX-License-Identifier: Apache-2.0

package zookeeper_test

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

func TestCountersKeepTheContract(t *testing.T) {
	for name, construct := range map[string]func(*standIn, zookeeper.CounterConfig) (*zookeeper.Counter, error){
		"versions": func(s *standIn, c zookeeper.CounterConfig) (*zookeeper.Counter, error) {
			return zookeeper.NewVersions(s, c)
		},
		"zxids": func(s *standIn, c zookeeper.CounterConfig) (*zookeeper.Counter, error) {
			return zookeeper.NewZxids(s, c)
		},
		"sequence": func(s *standIn, c zookeeper.CounterConfig) (*zookeeper.Counter, error) {
			return zookeeper.NewSequence(s, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn()
			open := func(t *testing.T) *zookeeper.Counter {
				t.Helper()
				c, err := construct(s, zookeeper.CounterConfig{Path: "/ids/order", Block: 100})
				if err == nil {
					err = c.Seed(t.Context(), 1)
				}
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			keygentest.Source(t, func(t *testing.T) keygen.Source { return open(t) })
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
				g, err := segment.New(t.Context(), segment.Config{Source: open(t)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = g.Close() })
				return g
			})
		})
	}
}

func TestLeasesKeepTheContract(t *testing.T) {
	s := newStandIn()
	keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
		l, err := zookeeper.NewLeases(s, "/worker")
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}

func TestAVersionThatWrapsRoundIsRefusedForGood(t *testing.T) {
	s := newStandIn()
	open := func() *zookeeper.Counter {
		c, err := zookeeper.NewVersions(s, zookeeper.CounterConfig{Path: "/ids"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open()
	if err := c.Seed(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.ageTo("/ids", math.MaxInt32-1)
	if span, err := c.Reserve(t.Context(), 1); err != nil || span.First != math.MaxInt32 {
		t.Errorf("%+v, %v", span, err)
	}
	for range 3 {
		if span, err := c.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("%+v, %v after the last version", span, err)
		}
		if span, err := open().Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("%+v, %v in another process", span, err)
		}
	}
	if s.zxid != 5 { // three for the seed, two versions, and the one that wrapped
		t.Errorf("%d writes: refused attempts went on counting", s.zxid)
	}
}

func TestKeysThatWouldLeave63BitsAreRefused(t *testing.T) {
	s := newStandIn()
	c, err := zookeeper.NewVersions(s, zookeeper.CounterConfig{Path: "/ids", Block: math.MaxInt64 / 2})
	if err == nil {
		err = c.Seed(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if span, err := c.Reserve(t.Context(), 1); err != nil {
			t.Errorf("%+v, %v", span, err)
		}
	}
	if span, err := c.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("%+v, %v", span, err)
	}
}

func TestSettingsAreCheckedAndTheErrorNamesTheField(t *testing.T) {
	for want, cfg := range map[string]zookeeper.CounterConfig{
		"CounterConfig.Path":  {Path: "ids"},
		`"/ids/"`:             {Path: "/ids/"},
		"CounterConfig.Block": {Path: "/ids", Block: -1},
		"CounterConfig.Floor": {Path: "/ids", Floor: -1},
	} {
		if _, err := zookeeper.NewVersions(newStandIn(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
	const path, addr = "/snowflake", "127.0.0.1:0"
	for want, cfg := range map[string]zookeeper.WorkersConfig{
		"WorkersConfig.Path":          {Addr: addr},
		"WorkersConfig.Addr":          {Path: path},
		"must have an IP address":     {Path: path, Addr: ":8080"},
		`"0.0.0.0:1"`:                 {Path: path, Addr: "0.0.0.0:1"},
		"WorkersConfig.Report":        {Path: path, Addr: addr, Report: time.Millisecond},
		"WorkersConfig.Threshold":     {Path: path, Addr: addr, Threshold: 7 * time.Second},
		"WorkersConfig.Hold needs":    {Path: path, Addr: addr, Hold: time.Hour},
		"WorkersConfig.Hold is 9s":    {Path: path, Addr: addr, Hold: 9 * time.Second, File: "x"},
		"WorkersConfig.File":          {Path: path, Addr: addr, File: "/nowhere/at/all"},
		"serve the time at WorkersCo": {Path: path, Addr: "192.0.2.1:1"}, // of no machine
	} {
		if w, err := zookeeper.NewWorkers(newStandIn(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want one about %s", w, err, want)
		}
	}
	if _, err := zookeeper.NewLeases(newStandIn(), "worker"); err == nil {
		t.Error("a path without a slash was accepted")
	}
	if _, err := zookeeper.NewZxids[zookeeper.Stat, zookeeper.ACL](nil, zookeeper.CounterConfig{Path: "/ids"}); err == nil {
		t.Error("no connection is no error")
	}
	missing := (*standIn)(nil)
	_, versions := zookeeper.NewVersions(missing, zookeeper.CounterConfig{Path: "/ids"})
	_, leases := zookeeper.NewLeases(missing, "/worker")
	_, workers := zookeeper.NewWorkers(missing, zookeeper.WorkersConfig{Path: "/worker", Addr: "127.0.0.1:0"})
	for name, err := range map[string]error{"NewVersions": versions, "NewLeases": leases, "NewWorkers": workers} {
		if err == nil || !strings.Contains(err.Error(), "connection is nil") {
			t.Errorf("%s of a connection that is a nil pointer: %v", name, err)
		}
	}
}

func TestWhatNoConstructorHasMadeRefuses(t *testing.T) {
	var (
		counter zookeeper.Counter
		leases  zookeeper.Leases
		workers zookeeper.Workers
	)
	_, reserved := counter.Reserve(t.Context(), 1)
	claim := workerid.Claim{Namespace: "a", Owner: "o", Layout: keygen.Twitter(), Term: time.Minute}
	_, taken := leases.Take(t.Context(), claim)
	_, renewed := leases.Renew(t.Context(), claim, workerid.Entry{})
	_, acquired := workers.Acquire(t.Context(), keygen.Twitter())
	for name, err := range map[string]error{
		"Reserve": reserved, "Seed": counter.Seed(t.Context(), 1), "Take": taken, "Renew": renewed,
		"Return": leases.Return(t.Context(), claim, workerid.Entry{}, 1), "Acquire": acquired,
	} {
		if err == nil {
			t.Errorf("%s went through", name)
		}
	}
	if err := workers.Close(); err != nil {
		t.Error(err)
	}
}

// lagging is a server of an ensemble that answers reads without the newest writes until it is told to
// catch up.
type lagging struct {
	*standIn

	caughtUp bool
}

func (l *lagging) Get(name string) ([]byte, *zookeeper.Stat, error) {
	if !l.caughtUp {
		return nil, nil, errNode
	}
	return l.standIn.Get(name)
}

func (l *lagging) Exists(name string) (bool, *zookeeper.Stat, error) {
	if !l.caughtUp {
		return false, &zookeeper.Stat{}, nil
	}
	return l.standIn.Exists(name)
}

func (l *lagging) Sync(name string) (string, error) {
	l.caughtUp = true
	return l.standIn.Sync(name)
}

func TestACounterThatAServerDoesNotKnowYetIsNotMissing(t *testing.T) {
	z := newStandIn()
	cfg := zookeeper.CounterConfig{Path: "/ids/order"}
	seeder, err := zookeeper.NewVersions(z, cfg)
	if err == nil {
		err = seeder.Seed(t.Context(), 100)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := zookeeper.NewVersions(&lagging{standIn: z}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if span, err := c.Reserve(t.Context(), 1); err != nil || span.First != 100 {
		t.Errorf("%+v, %v", span, err)
	}
}

// fleeting is a ZooKeeper in which the session of the process that was registered
// before ends between the two looks at its registration.
type fleeting struct {
	*standIn

	met atomic.Bool
}

func (f *fleeting) Create(name string, data []byte, flags int32, acl []zookeeper.ACL) (string, error) {
	if strings.Contains(name, "/temporary/") && !f.met.Swap(true) {
		return "", errNode // it exists, and Exists says a moment later that it does not
	}
	return f.standIn.Create(name, data, flags, acl)
}

func TestARegistrationThatEndsWhileItIsLookedAtIsNoObstacle(t *testing.T) {
	z := &fleeting{standIn: newStandIn()}
	w, err := zookeeper.NewWorkers(z, zookeeper.WorkersConfig{Path: "/snowflake/orders", Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	lease, err := w.Acquire(t.Context(), keygen.Twitter())
	if err != nil || !z.met.Load() {
		t.Fatalf("%v; met %v", err, z.met.Load())
	}
	if err := lease.(keygen.Returnable).Release(t.Context(), lease.NotBefore()); err != nil {
		t.Error(err)
	}
}
