// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// counting returns another number on each call of Value.
type counting struct{ n *int64 }

func (c counting) Value() (driver.Value, error) {
	*c.n++
	return *c.n, nil
}

func TestTheValueOfAKeyIsReadOnce(t *testing.T) {
	w := newTwin(t, 0)
	n := int64(4)
	exec(t, w.routed, "INSERT INTO orders (id, user_id) VALUES (1, ?)", counting{&n})
	if at := one[int64](t, w.routed, "SELECT user_id FROM orders WHERE user_id = 5"); at != 5 || n != 5 {
		t.Errorf("it was asked up to %d", n)
	}
	st, err := w.routed.Prepare("INSERT INTO orders (id, user_id) VALUES (2, ?)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Exec(counting{&n}); err != nil {
		t.Fatal(err)
	}
	if at := one[int64](t, w.routed, "SELECT user_id FROM orders WHERE user_id = 6"); at != 6 || n != 6 {
		t.Errorf("prepared, it was asked up to %d", n)
	}
	var none *counting
	exec(t, w.routed, "INSERT INTO orders (id, user_id, note) VALUES (3, 7, ?)", none)
}

func TestNewRowsBelongToTheTargetThatIsNamed(t *testing.T) {
	w := newTwin(t, 0)
	for query, args := range map[string][]any{
		"INSERT INTO orders (id, user_id) SELECT 77, 2":           nil,
		"INSERT INTO orders (id, user_id) VALUES (77, 2)":         nil,
		"INSERT INTO orders (id, user_id) VALUES (?, ?)":          {77, 2},
		"INSERT INTO orders (id, user_id) VALUES (7, 1), (77, 2)": nil,
	} {
		ctx := sharding.On(t.Context(), sharding.Target{DB: "b", Table: "orders_1"})
		if _, err := w.routed.ExecContext(ctx, query, args...); !errors.Is(err, sharding.ErrMisplaced) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); n != 0 {
		t.Errorf("%d rows", n)
	}
}
