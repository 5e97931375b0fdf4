// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// login makes the connection one of the user that owned is about.
func login(t *testing.T, c *zk.Conn) {
	t.Helper()
	if err := c.AddAuth("digest", []byte("ids:secret")); err != nil {
		t.Fatal(err)
	}
}

// owned gives the user all rights, and everybody else some.
func owned(others int32) []zookeeper.ACL {
	acl := []zookeeper.ACL{zookeeper.ACL(zk.DigestACL(zk.PermAll, "ids", "secret")[0])}
	if others != 0 {
		acl = append(acl, zookeeper.ACL{Perms: others, Scheme: "world", ID: "anyone"})
	}
	return acl
}

// wantSetup wants an error that says which rights to give.
func wantSetup(t *testing.T, what string, err error) {
	t.Helper()
	var setup *keygen.SetupError
	if !errors.As(err, &setup) || !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "READ, WRITE, CREATE and DELETE") {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAZooKeeperCounterWithoutRightsFailsAtOnceAndWorksWithThem(t *testing.T) {
	z := server.RunZooKeeper(t)
	onEachCounting(t, func(t *testing.T, open func(*zk.Conn, zookeeper.CounterConfig) *zookeeper.Counter) {
		owner := z.Open(t, steady)
		login(t, owner)
		for name, others := range map[string]int32{"none": 0, "READ": zk.PermRead, "all but DELETE": zk.PermAll &^ zk.PermDelete} {
			cfg := zookeeper.CounterConfig{Path: "/" + t.Name() + "/" + strings.ReplaceAll(name, " ", "-"), Block: 10, ACL: owned(others)}
			seeded(t, open(owner, cfg), 1)
			c := z.Open(t, steady)
			counter := open(c, cfg)
			_, err := counter.Reserve(t.Context(), 1)
			if others&zk.PermWrite != 0 && !strings.HasSuffix(t.Name(), "sequence") { // which alone deletes
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			wantSetup(t, name, err)
			_, err = segment.New(context.WithoutCancel(t.Context()), segment.Config{Source: counter})
			wantSetup(t, name+", in a generator", err)
			login(t, c)
			if _, err := counter.Reserve(t.Context(), 1); err != nil {
				t.Errorf("%s, then all: %v", name, err)
			}
		}
	})
}

func TestAWorkerIDOfZooKeeperWithoutRightsFailsAtOnceAndComesWithThem(t *testing.T) {
	z := server.RunZooKeeper(t)
	owner := z.Open(t, steady)
	login(t, owner)
	if _, err := owner.Create("/closed", nil, 0, []zk.ACL{zk.ACL(owned(zk.PermRead)[0])}); err != nil {
		t.Fatal(err)
	}
	c := z.Open(t, steady)
	cfg := anywhere()
	cfg.Path, cfg.ACL = "/closed/snowflake", owned(0)
	w := openWorkers(t, c, cfg)
	_, err := snowflake.New(context.WithoutCancel(t.Context()), snowflake.Config{Layout: fewWorkers(), Worker: w})
	wantSetup(t, "a generator", err)
	login(t, c)
	g := snowflakes(t, w)
	if _, err := g.Next(t.Context()); err != nil {
		t.Error(err)
	}
}
