// SPDX-License-Identifier: Apache-2.0

package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// strict is a ZooKeeper that refuses some of the calls, with the words of
// go-zookeeper.
type strict struct {
	*standIn

	create, get, set, remove, children error
}

func (s *strict) Create(name string, data []byte, flags int32, acl []zookeeper.ACL) (string, error) {
	if s.create != nil {
		return "", s.create
	}
	return s.standIn.Create(name, data, flags, acl)
}

func (s *strict) Get(name string) ([]byte, *zookeeper.Stat, error) {
	if s.get != nil {
		return nil, nil, s.get
	}
	return s.standIn.Get(name)
}

func (s *strict) Set(name string, data []byte, version int32) (*zookeeper.Stat, error) {
	if s.set != nil {
		return nil, s.set
	}
	return s.standIn.Set(name, data, version)
}

func (s *strict) Delete(name string, version int32) error {
	if s.remove != nil {
		return s.remove
	}
	return s.standIn.Delete(name, version)
}

func (s *strict) Children(name string) ([]string, *zookeeper.Stat, error) {
	if s.children != nil {
		return nil, nil, s.children
	}
	return s.standIn.Children(name)
}

var errNoAuth = errors.New("zk: not authenticated")

// uses are what the package does with a connection, once what it needs is there.
func uses(t *testing.T, s *strict) map[string]func() error {
	t.Helper()
	counter := func(c *zookeeper.Counter, err error) *zookeeper.Counter {
		if err == nil {
			err = c.Seed(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	versions := counter(zookeeper.NewVersions(s, zookeeper.CounterConfig{Path: "/ids/order"}))
	sequence := counter(zookeeper.NewSequence(s, zookeeper.CounterConfig{Path: "/ids/item"}))
	leases, err := zookeeper.NewLeases(s, "/worker")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func() error{
		"seed": func() error {
			c, err := zookeeper.NewZxids(s, zookeeper.CounterConfig{Path: "/ids/new"})
			if err == nil {
				err = c.Seed(t.Context(), 1)
			}
			return err
		},
		"versions": func() error { _, err := versions.Reserve(t.Context(), 1); return err },
		"sequence": func() error { _, err := sequence.Reserve(t.Context(), 1); return err },
		"lease": func() error {
			_, err := leases.Take(t.Context(), workerid.Claim{Namespace: "n", Owner: "o", Most: 7, Layout: keygen.Twitter(), Term: time.Second})
			return err
		},
		"worker": func() error {
			w, err := zookeeper.NewWorkers(s, zookeeper.WorkersConfig{Path: "/snowflake/orders", Addr: "127.0.0.1:0"})
			if err != nil {
				return err
			}
			_, err = w.Acquire(t.Context(), keygen.Twitter())
			return errors.Join(err, w.Close())
		},
	}
}

func TestARightThatIsMissingIsAnErrorThatSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		strict strict
		uses   []string // that need the right
	}{
		"CREATE": {strict{create: errNoAuth}, []string{"seed", "sequence", "lease", "worker"}},
		"READ":   {strict{get: errNoAuth}, []string{"seed", "versions", "sequence", "lease", "worker"}},
		"list":   {strict{children: errNoAuth}, []string{"lease", "worker"}},
		"WRITE":  {strict{set: errNoAuth}, []string{"seed", "versions", "lease", "worker"}},
		"DELETE": {strict{remove: errNoAuth}, []string{"sequence"}},
		"ACL":    {strict{create: errors.New("zk: invalid ACL specified")}, []string{"seed", "lease", "worker"}},
		"login":  {strict{get: errors.New("zk: client authentication failed")}, []string{"versions", "worker"}},
		"closed": {strict{get: errors.New("zk: zookeeper is closing")}, []string{"versions", "worker"}},
	} {
		for _, use := range c.uses {
			s := &strict{standIn: newStandIn()}
			call := uses(t, s)[use]
			refusing := c.strict
			refusing.standIn = s.standIn
			*s = refusing
			var setup *keygen.SetupError
			if err := call(); !errors.As(err, &setup) || setup.Cure == "" || !strings.Contains(err.Error(), setup.Cure) {
				t.Errorf("%s without %s: %v", use, name, err)
			}
		}
	}
}
