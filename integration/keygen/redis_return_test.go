// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// redisPair are two servers, of which either can follow the other.
type redisPair struct{ first, second *redis.Client }

func newRedisPair(t *testing.T) redisPair {
	t.Helper()
	run := func() *redis.Client { return server.RunRedis(t, "--repl-diskless-sync-delay", "0").Open(t) }
	p := redisPair{run(), run()}
	follow(t, p.second, p.first)
	return p
}

// follow makes a server the replica of a master, with all of its data.
func follow(t *testing.T, replica, master *redis.Client) {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.SlaveOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the replica has the master's data", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// replicated returns an offset in the stream of replication.
func replicated(t *testing.T, on *redis.Client, field string) int {
	t.Helper()
	_, text, _ := strings.Cut(on.Info(t.Context(), "replication").Val(), field)
	text, _, _ = strings.Cut(text, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func promote(t *testing.T, replica *redis.Client) {
	t.Helper()
	if err := replica.SlaveOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
}

// thereAndBack fails over to the replica, which lacks what lost writes, and back again. No
// process uses the leases while the replica is the master.
func (p redisPair) thereAndBack(t *testing.T, lost func()) {
	t.Helper()
	promote(t, p.second)
	lost()
	follow(t, p.first, p.second)
	promote(t, p.first)
	follow(t, p.second, p.first)
}

// The master is the same as before, and runs since then; only its data are those of the replica.
func TestLeasesLostByAFailOverThereAndBackAreNotGivenAgain(t *testing.T) {
	p := newRedisPair(t)
	l := redisLeases(t, p.first)
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	kept := takeRedis(t, l, "a")
	for _, owner := range []string{"b", "c"} { // the second time the first server has been a replica before
		written := replicated(t, p.first, "master_repl_offset:")
		testwait.Until(t, "the replica has all leases before the one that is lost", func() bool {
			return replicated(t, p.second, "slave_repl_offset:") >= written
		})
		var lost workerid.Entry
		p.thereAndBack(t, func() { lost = takeRedis(t, l, owner) })
		next := takeRedis(t, l, "after "+owner)
		if next.Worker != lost.Worker || next.NotBefore < lost.Ceiling {
			t.Errorf("%+v shares ticks with %+v, which was lost", next, lost)
		}
		for owner, e := range map[string]workerid.Entry{"a": kept, owner: lost} {
			if ceiling, err := l.Renew(t.Context(), claim(owner), e); !errors.Is(err, keygen.ErrWorkerLost) {
				t.Errorf("the lease of %s was renewed up to %d: %v", owner, ceiling, err)
			}
		}
	}
}

// Versions before stored no such thing, and run beside new ones during an upgrade.
func TestANamespaceOfAVersionThatDidNotNoticeReturnsKeepsItsLeases(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	l := redisLeases(t, c)
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	e := takeRedis(t, l, "a")
	if n, err := c.HDel(t.Context(), "shop:worker:shop", "followed").Result(); n != 1 || err != nil {
		t.Fatalf("%d fields of the new version: %v", n, err)
	}
	if _, err := l.Renew(t.Context(), claim("a"), e); err != nil {
		t.Error(err)
	}
	now := keygen.Twitter().Tick(time.Now())
	if next := takeRedis(t, l, "b"); next.NotBefore > now+time.Minute.Milliseconds() {
		t.Errorf("%+v at %d", next, now)
	}
}
