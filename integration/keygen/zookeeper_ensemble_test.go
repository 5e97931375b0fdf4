// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// ensemble is three servers of ZooKeeper.
type ensemble []*server.ZooKeeper

// addrs are the addresses as DialZooKeeper takes them.
func (e ensemble) addrs() string {
	var all []string
	for _, z := range e {
		all = append(all, z.Addr())
	}
	return strings.Join(all, ",")
}

// leaderFirst waits until one of the servers leads, and returns it and the others.
func (e ensemble) leaderFirst(t *testing.T) ensemble {
	t.Helper()
	leads := func(z *server.ZooKeeper) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return z.Leads(ctx)
	}
	leader := -1
	testwait.Until(t, "a server leads", func() bool {
		leader = slices.IndexFunc(e, leads)
		return leader >= 0
	})
	return slices.Concat(e[leader:], e[:leader])
}

// start starts killed servers, at once because only a majority answers.
func (e ensemble) start(t *testing.T) {
	t.Helper()
	var starting sync.WaitGroup
	for _, z := range e {
		starting.Go(func() {
			if err := z.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
}

// drawers are generators and processes that draw ids from one ensemble. Those of one name must
// never draw an id twice.
type drawers struct {
	generators []*segment.Generator
	stops      map[string][]func() []int64
	processes  map[string][]*issuer
}

func drawFrom(t *testing.T, e ensemble) drawers {
	t.Helper()
	d := drawers{stops: map[string][]func() []int64{}, processes: map[string][]*issuer{}}
	for range 2 {
		for name, construct := range counting {
			conn, err := server.DialZooKeeper(e.addrs(), 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			counter, err := construct(conn, zookeeper.CounterConfig{Path: "/" + name, Block: 3})
			if err != nil {
				t.Fatal(err)
			}
			g := redisSegments(t, seeded(t, counter, 1), 3)
			d.generators = append(d.generators, g)
			d.stops[name] = append(d.stops[name], drawing(t, g))
		}
		workers, err := json.Marshal(zooChild{Server: e.addrs(), Addr: freeAddr(t)})
		if err != nil {
			t.Fatal(err)
		}
		d.processes["workers"] = append(d.processes["workers"], startIssuerWith(t, zooChildVar+"="+string(workers)))
		d.processes["leases"] = append(d.processes["leases"], startIssuer(t, zooKeeperDriver, e.addrs()))
	}
	return d
}

// goOn waits until every generator has reserved more keys, and every process has issued ids that its
// present lease does not allow yet.
func (d drawers) goOn(t *testing.T) {
	t.Helper()
	layouts := map[string]keygen.Layout{"workers": slow(), "leases": fewWorkers()}
	var later []func() bool
	for _, g := range d.generators {
		before := g.Stats().Reservations
		later = append(later, func() bool { return g.Stats().Reservations > before+3 })
	}
	for name, two := range d.processes {
		for _, p := range two {
			p.more(t, 64)
			tick := func() int64 { return p.last() >> layouts[name].Shift(keygen.Time) }
			before := tick()
			later = append(later, func() bool { return tick() > before+time.Second.Milliseconds() })
		}
	}
	for _, isLater := range later {
		testwait.Until(t, "all draw ids", isLater)
	}
}

// stop returns all ids.
func (d drawers) stop(t *testing.T) map[string][]int64 {
	t.Helper()
	all := map[string][]int64{}
	for name, two := range d.stops {
		for _, stop := range two {
			all[name] = append(all[name], stop()...)
		}
	}
	for name, two := range d.processes {
		for _, p := range two {
			p.kill(t)
			all[name] = append(all[name], p.ids()...)
		}
	}
	return all
}

func TestNoIDComesTwiceWhenAnEnsembleLosesItsLeaderOrItsMajority(t *testing.T) {
	e := ensemble(server.RunZooKeeperEnsemble(t, 3))
	asker, err := zookeeper.NewVersions(e[0].Open(t, steady), zookeeper.CounterConfig{Path: "/asker"})
	if err != nil {
		t.Fatal(err)
	}
	seeded(t, asker, 1)
	d := drawFrom(t, e)
	d.goOn(t)

	e = e.leaderFirst(t)
	e[0].Kill()
	d.goOn(t)
	e[:1].start(t)

	e = e.leaderFirst(t)
	e[1].Signal(t, syscall.SIGSTOP)
	d.goOn(t)
	e[1].Signal(t, syscall.SIGCONT)

	for _, z := range e[:2] {
		z.Kill()
	}
	testwait.Until(t, "no keys without a majority", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		span, err := asker.Reserve(ctx, 1)
		if err == nil {
			return false
		}
		return span == keygen.Span{} && !errors.Is(err, keygen.ErrUnknownTag) && !errors.Is(err, keygen.ErrRegressed)
	})
	e[:2].start(t)
	d.goOn(t)

	for name, ids := range d.stop(t) {
		t.Logf("%s: %d ids", name, len(ids))
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%s: %d came twice", name, id)
		}
	}
}
