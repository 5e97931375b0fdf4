// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

func TestLeasesInZooKeeperKeepTheContract(t *testing.T) {
	z := server.RunZooKeeper(t)
	keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
		l, err := zookeeper.NewLeases(z.Open(t, steady), "/shop/worker")
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
}
