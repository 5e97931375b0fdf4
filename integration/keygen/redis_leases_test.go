// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

func redisLeases(t *testing.T, c redis.UniversalClient) *redisgen.Leases {
	t.Helper()
	l, err := redisgen.NewLeases(c, "shop:worker")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// created is a ledger whose namespaces are known to be new.
type created struct{ *redisgen.Leases }

func (l created) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if err := l.Create(ctx, c.Namespace); err != nil {
		return workerid.Entry{}, err
	}
	return l.Leases.Take(ctx, c)
}

func TestLeasesInRedisKeepTheContract(t *testing.T) {
	onEachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger { return created{redisLeases(t, c)} })
	})
}

func takeRedis(t *testing.T, l *redisgen.Leases, owner string) workerid.Entry {
	t.Helper()
	e, err := l.Take(t.Context(), claim(owner))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLeasesAreOnRedisClock(t *testing.T) {
	l := redisLeases(t, server.RunRedis(t).Open(t))
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	before := keygen.Twitter().Tick(time.Now())
	e := takeRedis(t, l, "a")
	after := keygen.Twitter().Tick(time.Now())
	if e.NotBefore < before-1 || e.NotBefore > after+1 || e.Ceiling != e.NotBefore+time.Minute.Milliseconds() {
		t.Errorf("taken between %d and %d: %+v", before, after, e)
	}
}

// It is unknown which leases a Redis without the namespace has lost.
func TestTheFirstLeaseInARedisThatNobodyCalledNewBeginsTwoTermsLater(t *testing.T) {
	l := redisLeases(t, server.RunRedis(t).Open(t))
	now := keygen.Twitter().Tick(time.Now())
	first := takeRedis(t, l, "a")
	if least := now + 2*time.Minute.Milliseconds(); first.NotBefore < least || first.Ceiling != first.NotBefore {
		t.Errorf("%+v at %d", first, now)
	}
	if err := l.Create(t.Context(), "shop"); err != nil { // which comes too late
		t.Fatal(err)
	}
	if e := takeRedis(t, l, "b"); e.NotBefore < first.NotBefore {
		t.Errorf("%+v after %+v", e, first)
	}
}

// Leases that Redis lost may still be valid for a term.
func TestARedisThatForgotLeasesGivesNoneUpToTheCeilingsThatItLost(t *testing.T) {
	for name, forget := range map[string]func(t *testing.T, r *server.Redis){
		"killed":  restart,
		"flushed": func(t *testing.T, r *server.Redis) { r.Open(t).FlushAll(t.Context()) },
		"evicted": func(t *testing.T, r *server.Redis) { r.Open(t).Del(t.Context(), "shop:worker:shop") },
	} {
		t.Run(name, func(t *testing.T) {
			r := server.RunRedis(t)
			l := redisLeases(t, r.Open(t))
			if err := l.Create(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
			lost := takeRedis(t, l, "a")
			ceiling, err := l.Renew(t.Context(), claim("a"), lost)
			if err != nil {
				t.Fatal(err)
			}
			forget(t, r)
			if again, err := l.Renew(t.Context(), claim("a"), lost); !errors.Is(err, keygen.ErrWorkerLost) {
				t.Errorf("renewed up to %d, %v", again, err)
			}
			next := takeRedis(t, l, "b")
			if next.Worker != lost.Worker || next.NotBefore < ceiling {
				t.Errorf("%+v, where %+v could be used up to %d", next, lost, ceiling)
			}
		})
	}
}

// A Redis that keeps a file has lost the last second of it, or nothing: it cannot
// tell, and so begins all leases anew.
func TestARestartOfRedisCountsAsAFailOver(t *testing.T) {
	r := server.RunRedis(t, server.Persistent()...)
	l := redisLeases(t, r.Open(t))
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	before := takeRedis(t, l, "a")
	restart(t, r)
	if _, err := l.Renew(t.Context(), claim("a"), before); !errors.Is(err, keygen.ErrWorkerLost) || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("%v", err)
	}
	if e := takeRedis(t, l, "a"); e.Worker != before.Worker || e.Generation <= before.Generation || e.NotBefore < before.Ceiling {
		t.Errorf("%+v after %+v", e, before)
	}
}

func TestLeasesThatAFailOverLostAreNotGivenAgain(t *testing.T) {
	cluster := durableCluster(t)
	cluster.Replicate(t)
	l := redisLeases(t, cluster.Open(t))
	// The namespace whose key lies on the node that will fail.
	var c workerid.Claim
	for n := 0; ; n++ {
		c = claim("a")
		c.Namespace = fmt.Sprint("shop", n)
		if keyNode(t, cluster, "shop:worker:"+c.Namespace) == 1 {
			break
		}
	}
	if err := l.Create(t.Context(), c.Namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Take(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	isolate(t, cluster, 1)
	b := c
	b.Owner = "b"
	lost, err := l.Take(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	failOver(t, cluster, 1)
	testwait.Until(t, "the lease is lost", func() bool {
		_, err := l.Renew(t.Context(), b, lost)
		return errors.Is(err, keygen.ErrWorkerLost)
	})
	for _, owner := range []string{"c", "d", "e"} {
		next := c
		next.Owner = owner
		e, err := l.Take(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if e.Worker == lost.Worker && e.NotBefore < lost.Ceiling {
			t.Errorf("%+v, where %+v was lost", e, lost)
		}
	}
}

// keyNode returns which node of the cluster has a key.
func keyNode(t *testing.T, cluster *server.RedisCluster, key string) int {
	t.Helper()
	for n, node := range cluster.Nodes {
		if err := node.Open(t).Exists(t.Context(), key).Err(); err == nil {
			return n
		}
	}
	t.Fatalf("no node has %s", key)
	return 0
}

// The generators go ahead of the clock, so that what is not known of the leases before
// shows as duplicates.
func TestNoIDComesTwiceWhenRedisIsKilledAndForgetsItsLeases(t *testing.T) {
	r := server.RunRedis(t)
	var stops []func() []int64
	for range 3 {
		assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: redisLeases(t, r.Open(t)), Namespace: "shop", Term: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		g, err := start(t.Context(), snowflake.Config{Layout: fewWorkers(), Worker: assigner, Borrow: borrow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		stops = append(stops, drawing(t, g))
	}
	c := r.Open(t)
	for range 4 {
		before := c.HGet(t.Context(), "shop:worker:shop", "c:0").Val()
		testwait.Until(t, "leases are renewed", func() bool {
			now, err := c.HGet(t.Context(), "shop:worker:shop", "c:0").Result()
			return err == nil && now != before
		})
		restart(t, r)
	}
	var ids []int64
	for _, stop := range stops {
		ids = append(ids, stop()...)
	}
	t.Logf("%d ids over 4 kills", len(ids))
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

func TestNoIDComesTwiceWhenProcessesWithLeasesInRedisAreKilled(t *testing.T) {
	r := server.RunRedis(t)
	if err := redisLeases(t, r.Open(t)).Create(t.Context(), "children"); err != nil {
		t.Fatal(err)
	}
	ids := killChildren(t, redisDriver, r.Addr(), kills()/2, 2000, func() error { return nil })
	c := r.Open(t)
	again := 0
	for worker := range 8 {
		if n, err := c.HGet(t.Context(), "shop:worker:children", fmt.Sprint("g:", worker)).Int(); err == nil && n > 1 {
			again++
		}
	}
	t.Logf("%d ids over %d kills, %d worker ids were used again", len(ids), kills()/2, again)
	if id, twice := keygentest.Duplicate(ids); twice || again == 0 {
		t.Errorf("%d came twice, of %d ids; %d worker ids were used again", id, len(ids), again)
	}
}

// A process clock that jumps neither repeats ids nor keeps callers waiting for good.
func TestAClockThatStepsRepeatsNoIDWithLeasesInRedis(t *testing.T) {
	l := redisLeases(t, server.RunRedis(t).Open(t))
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	var ids []int64
	clock := &keygentest.WallClock{}
	for _, step := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Second, -time.Second} {
		clock.Step(step)
		assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "shop", Term: time.Second, Instance: "10.0.0.7:80"})
		if err != nil {
			t.Fatal(err)
		}
		g, err := snowflake.New(testwait.Context(t), snowflake.Config{Layout: fewWorkers(), Worker: assigner, Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, someIDs(t, g, 2000)...)
		clock.Step(-step / 2)
		ids = append(ids, someIDs(t, g, 2000)...)
		if g.Stats().Worker != 0 {
			t.Errorf("the instance got worker id %d", g.Stats().Worker)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

// The rights that the error for a missing one names are enough, and each is needed.
func TestAUserWithTheRightsThatTheErrorNamesLeasesInRedis(t *testing.T) {
	r := server.RunRedis(t)
	admin := r.Open(t)
	grant := func(rules ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "app"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rights := []any{"+eval", "+time", "+info", "+hgetall", "+hset", "~shop:worker:*"}
	grant("on", ">secret")
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), Username: "app", Password: "secret", MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	l := redisLeases(t, c)
	all := func() error {
		if err := l.Create(t.Context(), "shop"); err != nil {
			return err
		}
		e, err := l.Take(t.Context(), claim("a"))
		if err != nil {
			return err
		}
		_, err = l.Renew(t.Context(), claim("a"), e)
		return errors.Join(err, l.Return(t.Context(), claim("a"), e, e.NotBefore))
	}
	for missing := range rights {
		grant("resetkeys", "-@all")
		grant(slices.Delete(slices.Clone(rights), missing, missing+1)...)
		var setup *keygen.SetupError
		if err := all(); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "right") {
			t.Errorf("without %s: %v", rights[missing], err)
		}
	}
	grant(rights...)
	if err := all(); err != nil {
		t.Error(err)
	}
}

func TestAKeyThatHoldsNoLeasesIsSaidAtOnce(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	c.Set(t.Context(), "shop:worker:shop", "abc", 0)
	var setup *keygen.SetupError
	if _, err := redisLeases(t, c).Take(t.Context(), claim("a")); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "prefix") {
		t.Errorf("%v", err)
	}
}
