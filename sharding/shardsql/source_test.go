// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestOnlyRowsOfATableThatIsMigratedAreChanged(t *testing.T) {
	m := newMoving(t)
	for _, text := range []string{"DROP TABLE orders", "/* x */ alter table orders ADD COLUMN more", "ALTER TABLE orders RENAME TO lost", "TRUNCATE TABLE orders"} {
		if _, err := m.routed.Exec(text); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	exec(t, m.routed, "INSERT INTO orders (user_id, note) SELECT 1, 'kept'")
	exec(t, m.routed, "CREATE TABLE old (orders TEXT)")
	if _, err := m.routed.ExecContext(sharding.Unsharded(t.Context()), "ALTER TABLE old DROP COLUMN orders"); err == nil || errors.Is(err, sharding.ErrRawTable) { // which is the only one
		t.Error(err)
	}
}

func TestTheSourceServesNoShardThatTheContextNames(t *testing.T) {
	m := newMoving(t)
	for name, at := range map[string]struct {
		target sharding.Target
		want   error
	}{
		"a shard":    {sharding.Target{DB: "main", Table: "orders_0"}, sharding.ErrCrossShard},
		"the source": {sharding.Target{DB: "main", Table: "orders"}, nil},
	} {
		if _, err := m.routed.ExecContext(sharding.On(t.Context(), at.target), "UPDATE orders SET note = 'x'"); !errors.Is(err, at.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.routed.ExecContext(sharding.OnKey(t.Context(), "orders", 1), "UPDATE orders SET note = 'x'"); err != nil {
		t.Error(err)
	}
}

// The first statement of the text is executed before the second one finds its table closed.
func TestATextOfSeveralStatementsIsNotSentAgain(t *testing.T) {
	m := newMoving(t)
	exec(t, m.db, "CREATE TABLE logged (note TEXT)")
	exec(t, m.routed, "UPDATE orders SET note = 'early'")
	m.closes(t, sharding.OnShards)()
	_, err := m.routed.Exec("INSERT INTO logged VALUES ('once'); UPDATE orders SET note = 'late'")
	var refused *sharding.RouteError
	if err == nil || !strings.Contains(err.Error(), "no such table") || errors.As(err, &refused) {
		t.Error(err)
	}
	var n int
	if err := m.db.QueryRow("SELECT COUNT(*) FROM logged").Scan(&n); err != nil || n != 1 {
		t.Errorf("logged %d times, %v", n, err)
	}
}
