// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestSegmentsKeepTheContractOnMySQL(t *testing.T) {
	open := database.MySQL(server.ShareMySQL(t))
	t.Run("source", func(t *testing.T) {
		keygentest.Source(t, func(t *testing.T) keygen.Source {
			_, store := open.Store(t)
			return store.Tag("orders")
		})
	})
	t.Run("generator", func(t *testing.T) {
		_, store := open.Store(t)
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return openSegment(t, store, 5000) })
	})
}

func TestLeasesKeepTheContractOnMySQL(t *testing.T) {
	open := database.MySQL(server.ShareMySQL(t))
	keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
		_, store := open.Store(t)
		return store.Leases()
	})
}
