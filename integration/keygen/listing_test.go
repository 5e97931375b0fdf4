// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestTagsAndLeasesAreListed(t *testing.T) {
	list := func(t *testing.T, open database.Opener) {
		_, store := open.Store(t)
		tags, err := store.TagRows(t.Context(), 10)
		if err != nil || len(tags) != 1 || tags[0].Tag != "orders" || tags[0].Step != 1000 || tags[0].Unchanged > time.Minute {
			t.Errorf("%+v, %v", tags, err)
		}
		leased, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders", Instance: "pod-0", Term: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leased.Acquire(t.Context(), keygen.Twitter()); err != nil {
			t.Fatal(err)
		}
		leases, err := store.LeaseRows(t.Context(), 10)
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		if l := leases[0]; l.Holder != "pod-0" || !l.Held || l.Generation != 1 || l.Left < 30*time.Second || l.Left > time.Minute || l.Layout != keygen.Twitter().Fingerprint() {
			t.Errorf("%+v", l)
		}
	}
	database.OnEachServer(t, list)
	t.Run("MySQL", func(t *testing.T) { list(t, database.MySQL(server.ShareMySQL(t))) })
}
