// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
)

func TestServersThatDoNotNumberByStepsAreNotExpanded(t *testing.T) {
	dbs := sharding.DBs{"one": openFile(t, t.TempDir(), "one"), "two": openFile(t, t.TempDir(), "two")}
	at := sharding.Target{DB: "one", Table: "orders_0"}
	m, err := sharding.MapOf(at)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, dbs["one"], "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY)")
	table := sharding.Table{Name: "orders", Key: "id", Rule: sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}), Map: m}
	_, planned := rebalance.PlanExpansion(t.Context(), rebalance.ExpandConfig{DBs: dbs, Table: table, Add: []sharding.Target{{DB: "two", Table: "orders_1"}}, Margin: 1})
	for _, err := range []error{planned, rebalance.CheckExpansion(t.Context(), dbs, table, 1)} {
		if !errors.Is(err, rebalance.ErrUnsupported) || !strings.Contains(err.Error(), "one/orders_0") {
			t.Error(err)
		}
	}
	if _, err := rebalance.UnseenConnections(t.Context(), dbs, table); !errors.Is(err, rebalance.ErrUnsupported) {
		t.Error(err)
	}
}
