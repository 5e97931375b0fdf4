// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"math/rand/v2"
	"path"
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
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// ofZooKeeper are the ways to get worker ids from ZooKeeper: the znode of the registry, and how to
// open an assigner whose worker ids are blocked for term.
var ofZooKeeper = map[string]struct {
	dir  string
	open func(t *testing.T, c *zk.Conn, term time.Duration) keygen.Assigner
}{
	"workers": {"/snowflake/shop", func(t *testing.T, c *zk.Conn, term time.Duration) keygen.Assigner {
		t.Helper()
		cfg := anywhere()
		cfg.Report = term / 3
		return openWorkers(t, c, cfg)
	}},
	"leases": {"/shop/worker/of-shop", func(t *testing.T, c *zk.Conn, term time.Duration) keygen.Assigner {
		t.Helper()
		l, err := zookeeper.NewLeases(c, "/shop/worker")
		if err != nil {
			t.Fatal(err)
		}
		a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "shop", Term: term})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}},
}

func TestAWorkerIDWhoseZnodeSomebodyDeletedIsNotGivenToAnotherProcess(t *testing.T) {
	z := server.RunZooKeeper(t)
	for name, way := range ofZooKeeper {
		t.Run(name, func(t *testing.T) {
			c := z.Open(t, steady)
			g := snowflakes(t, way.open(t, c, time.Minute)) // it has no report before the test ends
			stop := drawing(t, patient{g})
			if err := c.Delete(way.dir+"/workers/0000000000", -1); err != nil {
				t.Fatal(err)
			}
			other := snowflakes(t, way.open(t, c, time.Minute))
			theirs := someIDs(t, other, 1000)
			ours := stop()
			if id, twice := keygentest.Duplicate(append(ours, theirs...)); twice || other.Stats().Worker == 0 {
				t.Errorf("worker id %d; %d came twice", other.Stats().Worker, id)
			}
		})
	}
}

func TestTheLastWorkerIDWhoseZnodeSomebodyDeletedBeginsAboveItsFormerIDs(t *testing.T) {
	z := server.RunZooKeeper(t)
	const term = 3 * time.Second
	for name, way := range ofZooKeeper {
		t.Run(name, func(t *testing.T) {
			c := z.Open(t, steady)
			var all []*snowflake.Generator
			for range 8 { // all that the layout has
				all = append(all, snowflakes(t, way.open(t, c, term)))
			}
			if err := c.Delete(way.dir+"/workers/0000000005", -1); err != nil {
				t.Fatal(err)
			}
			lease, err := way.open(t, c, term).Acquire(t.Context(), fewWorkers())
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for _, g := range all {
				if g.Stats().Worker == 5 {
					ids = append(ids, someIDs(t, g, 1000)...)
				}
			}
			begin := lease.(keygen.Window).NotBefore()
			if last := tickOf(t, slices.Max(ids)); lease.ID() != 5 || begin <= last {
				t.Errorf("worker id %d begins at tick %d, its former holder has issued ids up to %d", lease.ID(), begin, last)
			}
		})
	}
}

func TestTheZnodeOfZooKeepersClockIsCreatedAgain(t *testing.T) {
	z := server.RunZooKeeper(t)
	for name, way := range ofZooKeeper {
		t.Run(name, func(t *testing.T) {
			c := z.Open(t, steady)
			g := snowflakes(t, way.open(t, c, time.Second))
			if err := c.Delete(way.dir+"/clock", -1); err != nil {
				t.Fatal(err)
			}
			before := g.Stats().Reservations
			testwait.Until(t, "two renewals", func() bool { return g.Stats().Reservations > before+1 })
		})
	}
}

func TestAZooKeeperThatLostAllWorkerIDsIsSaidWithWhatToDo(t *testing.T) {
	z := server.RunZooKeeper(t)
	for name, way := range ofZooKeeper {
		t.Run(name, func(t *testing.T) {
			c := z.Open(t, steady)
			g := snowflakes(t, way.open(t, c, time.Second))
			deleteAll(t, c, way.dir)
			testwait.Until(t, "the loss is noticed", func() bool {
				err := g.Stats().LastError
				return err != nil && strings.Contains(err.Error(), "has lost "+way.dir+"; end all processes")
			})
		})
	}
}

func deleteAll(t *testing.T, c *zk.Conn, dir string) {
	t.Helper()
	names, _, err := c.Children(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		deleteAll(t, c, path.Join(dir, name))
	}
	if err := c.Delete(dir, -1); err != nil {
		t.Fatal(err)
	}
}

func TestNoIDComesTwiceWhileSomebodyDeletesZnodes(t *testing.T) {
	z := server.RunZooKeeper(t)
	for name, way := range ofZooKeeper {
		t.Run(name, func(t *testing.T) {
			c := z.Open(t, steady)
			var ids []int64
			var ends []func()
			for range 40 {
				g := anyWorkerID(t, way.open(t, c, time.Second))
				stop := drawing(t, patient{g})
				ends = append(ends, func() {
					ids = append(ids, stop()...)
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				})
				if len(ends) > 3 { // of eight worker ids
					ends[0]()
					ends = ends[1:]
				}
				deleteZnode(t, c, way.dir)
			}
			for _, end := range ends {
				end()
			}
			if id, twice := keygentest.Duplicate(ids); twice {
				t.Errorf("%d came twice, of %d", id, len(ids))
			}
		})
	}
}

// anyWorkerID makes a generator once a worker id is free.
func anyWorkerID(t *testing.T, a keygen.Assigner) (g *snowflake.Generator) {
	t.Helper()
	testwait.Until(t, "a worker id is free", func() bool {
		made, err := snowflake.New(t.Context(), snowflake.Config{Layout: fewWorkers(), Worker: a})
		if err != nil && !errors.Is(err, keygen.ErrNoWorker) && !errors.Is(err, keygen.ErrStarved) {
			t.Fatal(err)
		}
		g = made
		return err == nil
	})
	return g
}

// deleteZnode deletes one znode without children below a path.
func deleteZnode(t *testing.T, c *zk.Conn, dir string) {
	t.Helper()
	for {
		names, _, err := c.Children(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			break
		}
		dir = path.Join(dir, names[rand.N(len(names))])
	}
	if strings.HasSuffix(dir, "/workers") { // all records with it would be a loss of data
		return
	}
	if err := c.Delete(dir, -1); err != nil {
		t.Fatal(err)
	}
}
