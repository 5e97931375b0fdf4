// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestAHintChoosesATargetUnlessTheStatementSaysOtherwise(t *testing.T) {
	w := newWorld(t)
	onKey := sharding.Hint{Table: "orders", Key: 6}
	on := sharding.Hint{On: sharding.Target{DB: "a", Table: "orders_2"}}
	for _, c := range []struct {
		text string
		hint sharding.Hint
		want string // the target's table, "" where it is refused
		err  error
	}{
		{"DELETE FROM orders", onKey, "orders_2", nil},
		{"SELECT * FROM items WHERE paid = 1", onKey, "items_2", nil},
		{"SELECT * FROM orders WHERE user_id = 10", onKey, "orders_2", nil},
		{"SELECT * FROM orders WHERE user_id = 7", onKey, "", sharding.ErrCrossShard},
		{"SELECT * FROM orders WHERE user_id IN (6, 7)", onKey, "", sharding.ErrCrossShard},
		{"SELECT * FROM orders WHERE user_id = 7", on, "orders_2", nil},
		{"INSERT INTO orders (id, user_id) VALUES (1002, 6)", on, "orders_2", nil},
		{"INSERT INTO orders (id, user_id) VALUES (1003, 7)", on, "", sharding.ErrMisplaced},
		{"INSERT INTO orders (id, user_id) VALUES (1003, 7)", onKey, "", sharding.ErrMisplaced},
		{"SELECT * FROM accounts", onKey, "", sharding.ErrCrossShard},
		{"SELECT * FROM orders", sharding.Hint{Unsharded: true}, "home", nil},
	} {
		p := plan.Of(sqlparse.Parse(c.text, dialects["mysql"]), w.router.Snapshot(), analysis.Options{Schema: schema, Quote: func(name string) string { return name }})
		r, err := p.Bind(nil, c.hint)
		got := ""
		switch {
		case err != nil:
		case r.Kind == plan.Home:
			got = "home"
		default:
			got = r.Target.Table
		}
		if !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%s with %+v: %s, %v; want %s, %v", c.text, c.hint, got, err, c.want, c.err)
		}
	}
}

func TestTheHintOfAWriteWithoutAKeySaysWhatAllShardsNeeds(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		text string
		mode sharding.TxMode
		want bool
	}{
		{"DELETE FROM orders", sharding.SingleShard, true},
		{"DELETE FROM orders", sharding.BestEffort, false},
		{"DELETE FROM orders", sharding.Atomic, false},
		{"DELETE FROM guests", sharding.SingleShard, false}, // all of its shards are in one database
	} {
		p := plan.Of(sqlparse.Parse(c.text, dialects["mysql"]), w.router.Snapshot(), analysis.Options{Schema: schema, Mode: c.mode})
		_, err := p.Bind(nil, sharding.Hint{})
		var refusal *sharding.RouteError
		if !errors.As(err, &refusal) || !errors.Is(err, sharding.ErrMissingKey) {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := strings.Contains(refusal.Hint, "needs sharding.Transactions"); got != c.want {
			t.Errorf("%s in mode %d: %s", c.text, c.mode, refusal.Hint)
		}
	}
}
