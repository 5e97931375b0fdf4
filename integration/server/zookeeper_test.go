// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestZooKeeperKeepsItsDataWhenKilled(t *testing.T) {
	z := RunZooKeeper(t)
	before, c := z.Addr(), z.Open(t, SteadySession)
	if _, err := c.Create("/key", []byte("kept"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	z.Kill()
	if _, _, err := c.Get("/key"); err == nil {
		t.Error("a killed server answered")
	}
	if err := z.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, _, err := z.Open(t, SteadySession).Get("/key")
	if string(got) != "kept" || err != nil || z.Addr() != before {
		t.Errorf("the value is %q (%v); the address was %s and is %s", got, err, before, z.Addr())
	}
}

func TestZooKeeperThatDoesNotStartSaysWhy(t *testing.T) {
	_, err := StartZooKeeper(t.Context(), "tickTime=often")
	if err == nil || !strings.Contains(err.Error(), "often") {
		t.Errorf("StartZooKeeper says %v", err)
	}
}
