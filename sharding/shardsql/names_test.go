// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestAPhysicalNameIsRefusedWhereItsStatementWouldGoHome(t *testing.T) {
	w := newTwin(t, 20) // of which database a is the home database too
	before := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders")
	for _, text := range []string{
		"DELETE FROM orders_0", "DELETE FROM main.Orders_2", "UPDATE orders_1 SET note = 'x'", "INSERT INTO orders_0 (id, user_id) VALUES (999, 1)",
		"SELECT * FROM orders_0", "SELECT COUNT(*) FROM (SELECT id FROM \"orders_0\")", "DROP TABLE orders_2", "PRAGMA table_info(orders_2)",
		"DELETE FROM orders WHERE user_id = 4 AND id IN (SELECT id FROM orders_2)",
	} {
		_, err := w.routed.Exec(text)
		var refusal *sharding.RouteError
		if !errors.As(err, &refusal) || !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(refusal.Hint, "write orders, with a condition on user_id") {
			t.Errorf("%s: %v", text, err)
		}
	}
	exec(t, w.dbs["a"], "DELETE FROM orders_0 WHERE id < 0")
	if n, err := w.routed.ExecContext(sharding.Unsharded(t.Context()), "UPDATE orders_0 SET note = note"); err != nil {
		t.Error(n, err)
	}
	if after := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); after != before {
		t.Errorf("%d rows of %d are left", after, before)
	}
}
