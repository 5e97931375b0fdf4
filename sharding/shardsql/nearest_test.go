// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestATransactionReadsTheCopyOfABroadcastTableWhereItHasBegun(t *testing.T) {
	routed, copies := rated(t, sharding.SingleShard)
	for i, db := range copies {
		exec(t, db, "INSERT INTO rates VALUES (1, ?, 0)", []string{"home", "a", "b"}[i])
	}
	for user, want := range []string{"a", "b"} {
		tx, err := routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (?, ?)", 100+user, user)
		if got := one[string](t, tx, "SELECT name FROM rates WHERE id IN (SELECT id FROM rates)"); got != want {
			t.Errorf("user %d reads the copy of %s, want %s", user, got, want)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	if got := one[string](t, routed, "SELECT name FROM rates"); got != "home" {
		t.Errorf("outside of a transaction the copy of %s is read", got)
	}
}
