// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/segment"
)

func TestCountersOfAClusterLieOnAllItsNodes(t *testing.T) {
	cluster := server.RunRedisCluster(t, 3)
	for n := range 12 {
		c := redisCounter(t, cluster.Open(t), redisgen.Config{Key: fmt.Sprint("ids:", n)})
		if span, err := c.Reserve(t.Context(), 10); err != nil || span.First != 1 {
			t.Errorf("%+v, %v", span, err)
		}
	}
	for _, node := range cluster.Nodes {
		if node.Open(t).DBSize(t.Context()).Val() == 0 {
			t.Errorf("the node %s has no counter", node.Addr())
		}
	}
}

// durableCluster loses only writes that its replicas do not have yet, and each
// of its nodes serves without the others.
func durableCluster(t *testing.T) *server.RedisCluster {
	t.Helper()
	return server.RunRedisCluster(t, 3, append(server.Persistent(), "--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0")...)
}

// keyOnEach are names of counters, of which the n-th one lies on the n-th node.
func keyOnEach(t *testing.T, cluster *server.RedisCluster) []string {
	t.Helper()
	c := cluster.Open(t)
	keys, found := make([]string, len(cluster.Nodes)), 0
	for n := 0; found < len(keys); n++ {
		key := fmt.Sprint("ids:", n)
		master, err := c.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(cluster.Nodes, func(r *server.Redis) bool { return r.Addr() == master.Options().Addr })
		if keys[i] == "" {
			keys[i] = key
			found++
		}
	}
	return keys
}

// The counters of the other nodes go on; those of the killed one wait for it.
func TestACountersClusterNodeThatIsKilledComesBackWithoutDuplicates(t *testing.T) {
	cluster := durableCluster(t)
	var gens []*segment.Generator
	for _, key := range keyOnEach(t, cluster) {
		gens = append(gens, redisSegments(t, redisCounter(t, cluster.Open(t), redisgen.Config{Key: key}), 5))
	}
	ids := make([][]int64, len(gens))
	draw := func(n int) {
		t.Helper()
		ids[n] = append(ids[n], someIDs(t, gens[n], 100)...)
	}
	for n := range gens {
		draw(n)
	}
	cluster.Nodes[1].Kill()
	ids[1] = append(ids[1], untilDown(t, gens[1])...)
	draw(0)
	draw(2)
	if err := cluster.Nodes[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready(t, cluster)
	draw(1)
	for n, got := range ids {
		if id, twice := keygentest.Duplicate(got); twice || len(got) < 200 {
			t.Errorf("node %d: %d came twice, of %d", n, id, len(got))
		}
	}
}

func ready(t *testing.T, cluster *server.RedisCluster) {
	t.Helper()
	if err := cluster.Ready(testwait.Context(t), t); err != nil {
		t.Fatal(err)
	}
}

// untilDown draws ids until the error says that there are no more, and why.
func untilDown(t *testing.T, g *segment.Generator) (ids []int64) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		id, err := g.Next(ctx)
		cancel()
		if err == nil {
			ids = append(ids, id)
			continue
		}
		if id != 0 || !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%d, %v", id, err)
		}
		return ids
	}
}

func awaitRole(t *testing.T, r *server.Redis, want string) {
	t.Helper()
	c := r.Open(t)
	testwait.Until(t, r.Addr()+" is a "+want, func() bool {
		role, err := c.Do(t.Context(), "ROLE").Slice()
		return err == nil && role[0] == want
	})
}

// failOver kills a node and returns when its replica has taken its place.
func failOver(t *testing.T, cluster *server.RedisCluster, n int) {
	t.Helper()
	cluster.FailOver(t, n)
}

// rejoin starts a node again that has failed over, as the replica of its replica.
func rejoin(t *testing.T, cluster *server.RedisCluster, n int) {
	t.Helper()
	if err := cluster.Nodes[n].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, cluster.Nodes[n], "slave")
	ready(t, cluster)
}

func TestProcessesGoOnWithThePromotedReplicaOfTheirCounter(t *testing.T) {
	cluster := durableCluster(t)
	cluster.Replicate(t)
	key := keyOnEach(t, cluster)[1]
	var ids []int64
	processes := []*redisgen.Counter{
		redisCounter(t, cluster.Open(t), redisgen.Config{Key: key}), redisHandle(t, cluster.Open(t), redisgen.Config{Key: key}),
	}
	draw := func() {
		t.Helper()
		for _, p := range slices.Concat(processes, processes) {
			testwait.Until(t, "ids", func() bool {
				span, err := p.Reserve(t.Context(), 3)
				if err == nil {
					ids = append(ids, span.First, span.First+1, span.First+2)
				}
				return err == nil
			})
		}
	}
	draw()

	// What comes after the ids in the stream to the replica has arrived there.
	mark := cluster.Nodes[1].Open(t).Conn()
	defer func() { _ = mark.Close() }()
	if err := mark.Set(t.Context(), "{"+key+"}:mark", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if replicas, err := mark.Wait(t.Context(), 1, testwait.Limit).Result(); err != nil || replicas != 1 {
		t.Fatalf("%d replicas have the counter: %v", replicas, err)
	}

	failOver(t, cluster, 1)
	draw()
	rise := slices.IsSorted(ids) // before Duplicate sorts them
	if id, twice := keygentest.Duplicate(ids); twice || !rise || len(ids) != 24 {
		t.Errorf("%d came twice, of %v; they rise: %v", id, ids, rise)
	}
}

// isolate keeps a node's replica from getting what is written from now on.
func isolate(t *testing.T, cluster *server.RedisCluster, n int) {
	t.Helper()
	c := cluster.Nodes[n].Open(t)
	testwait.Until(t, "the replica has what was written so far", func() bool {
		info := c.Info(t.Context(), "replication").Val()
		return field(info, "master_repl_offset:") != "" && strings.Contains(info, ",offset="+field(info, "master_repl_offset:")+",")
	})
	if err := c.Do(t.Context(), "ACL", "SETUSER", "default", "-psync", "-sync").Err(); err != nil {
		t.Fatal(err)
	}
	if cut, err := c.ClientKillByFilter(t.Context(), "TYPE", "replica").Result(); err != nil || cut != 1 {
		t.Fatalf("%d replicas cut off: %v", cut, err)
	}
}

// field returns the value of a line of INFO.
func field(info, name string) string {
	_, rest, _ := strings.Cut(info, "\n"+name)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// Replication is asynchronous: the replica may not have what its master answered.
func TestACounterThatWentBackWithAFailOverIsRegressedAndNeverADuplicate(t *testing.T) {
	cluster := durableCluster(t)
	cluster.Replicate(t)
	keys := keyOnEach(t, cluster)
	cfg := redisgen.Config{Key: keys[1]}
	counter := redisCounter(t, cluster.Open(t), cfg)
	g := redisSegments(t, counter, 10)
	other := redisSegments(t, redisCounter(t, cluster.Open(t), redisgen.Config{Key: keys[0]}), 10)
	ids, others := someIDs(t, g, 50), someIDs(t, other, 50)
	isolate(t, cluster, 1)
	ids = append(ids, someIDs(t, g, 500)...)
	failOver(t, cluster, 1)

	given, err := untilRegressed(t, g)
	ids = append(ids, given...)
	t.Log(err)
	for range 5 { // it stays refused, however often it is tried
		if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
			t.Fatalf("%d, %v from a counter that went back", id, err)
		}
	}
	others = append(others, someIDs(t, other, 100)...)

	// A new process knows nothing but its floor.
	cfg.Floor = slices.Max(ids) + 1
	late := redisHandle(t, cluster.Open(t), cfg)
	if span, err := late.Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("%+v, %v below the floor", span, err)
	}

	rejoin(t, cluster, 1) // the old master, which has more, must not bring the ids back
	if _, err := counter.Seed(t.Context(), slices.Max(ids)+1000); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, someIDs(t, g, 100)...)
	for _, all := range [][]int64{ids, others} {
		if id, twice := keygentest.Duplicate(all); twice {
			t.Errorf("%d came twice, of %d", id, len(all))
		}
	}
}

// untilRegressed draws the ids that were reserved in time, up to the error.
func untilRegressed(t *testing.T, g *segment.Generator) (ids []int64, err error) {
	t.Helper()
	for ctx := testwait.Context(t); ; {
		id, err := g.Next(ctx)
		switch {
		case errors.Is(err, keygen.ErrRegressed):
			return ids, err
		case errors.Is(err, keygen.ErrStarved) && ctx.Err() == nil: // until the client has heard of the fail-over
			continue
		case err != nil || len(ids) == 10_000:
			t.Fatalf("after %d ids: %d, %v", len(ids), id, err)
		}
		ids = append(ids, id)
	}
}

// mended is a process that waits as long as it takes, and does what the error of
// a counter that went back says.
type mended struct {
	*segment.Generator
	counter *redisgen.Counter
	highest atomic.Int64
	cured   atomic.Int64
}

func (m *mended) Next(ctx context.Context) (int64, error) {
	for {
		id, err := m.Generator.Next(ctx)
		switch {
		case err == nil:
			m.highest.Store(max(id, m.highest.Load())) // roughly, of several callers
			return id, nil
		case ctx.Err() != nil:
			return 0, err
		case errors.Is(err, keygen.ErrRegressed):
			if _, err := m.counter.Seed(ctx, m.highest.Load()+10_000); err == nil {
				m.cured.Add(1)
			}
		case !errors.Is(err, keygen.ErrStarved):
			return 0, err
		}
	}
}

func TestNoIDComesTwiceWhenTheMastersOfAClusterFailOverOneByOne(t *testing.T) {
	cluster := durableCluster(t)
	cluster.Replicate(t)
	keys, c := keyOnEach(t, cluster), cluster.Open(t)
	gens, stops := make([]*mended, len(keys)), make([]func() []int64, len(keys))
	for n, key := range keys {
		counter := redisCounter(t, c, redisgen.Config{Key: key})
		gens[n] = &mended{Generator: redisSegments(t, counter, 5), counter: counter}
		stops[n] = drawing(t, gens[n])
	}
	progress := func(key string) {
		t.Helper()
		before := c.Get(t.Context(), key).Val()
		testwait.Until(t, "ids of "+key, func() bool { now, err := c.Get(t.Context(), key).Result(); return err == nil && now != before })
	}
	for n, key := range keys {
		progress(key)
		failOver(t, cluster, n)
		c.ReloadState(t.Context()) // by itself it may take ten seconds
		for _, key := range keys {
			progress(key)
		}
		rejoin(t, cluster, n)
	}
	for n, stop := range stops {
		ids := stop()
		t.Logf("%d ids, of a counter that went back %d times", len(ids), gens[n].cured.Load())
		if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
			t.Errorf("%s: %d came twice, of %d", keys[n], id, len(ids))
		}
	}
}
