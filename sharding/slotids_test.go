// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/sharding"
)

// geneLayout is Twitter's with the lowest ten bits for the slot.
func geneLayout() keygen.Layout {
	return keygen.Layout{
		Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 4}, {Kind: keygen.Sequence, Bits: 8}, {Kind: keygen.Bucket, Bits: 10}},
	}
}

func generator(t *testing.T, cfg snowflake.Config) *snowflake.Generator {
	t.Helper()
	cfg.Worker = unused{}
	g, err := snowflake.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// unused assigns worker id 1, which was never assigned before.
type unused struct{}

func (unused) Acquire(context.Context, keygen.Layout) (keygen.Lease, error) { return unused{}, nil }
func (unused) ID() int64                                                    { return 1 }
func (unused) NotBefore() int64                                             { return 0 }

func geneRouter(t *testing.T, byUser, byID sharding.Rule, from int64) *sharding.Router {
	t.Helper()
	names, dbs := databases(2)
	r, err := sharding.New(dbs, sharding.Table{
		Name: "orders", Key: "user_id", Rule: byUser, Map: spread(t, names, 8, "orders_%d"),
		Also: []sharding.Alt{{Column: "id", Rule: byID, From: from}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnOrdersIdLeadsToTheShardOfItsUser(t *testing.T) {
	g := generator(t, snowflake.Config{Layout: geneLayout()})
	for name, byUser := range map[string]sharding.Rule{
		"Low": sharding.Low(10), "Hash": sharding.Hash(1024), "Mod": sharding.Mod(1024), "Compat": sharding.Compat(1024),
	} {
		r := geneRouter(t, byUser, sharding.Low(10), 1<<50)
		keys := make([]any, 3000)
		for i := range keys {
			keys[i] = rand.Int64()
		}
		ids := make([]int64, len(keys))
		if err := r.FillIDs(t.Context(), g, "Orders", "ID", ids, keys); err != nil {
			t.Fatal(err)
		}
		seen := map[int64]bool{}
		for i, id := range ids {
			user, err := r.Target("orders", keys[i])
			order, alsoErr := r.TargetBy("orders", "id", id)
			if err != nil || alsoErr != nil || user != order || seen[id] {
				t.Fatalf("%s: user %v is on %s (%v), its order %d on %s (%v)", name, keys[i], user, err, id, order, alsoErr)
			}
			seen[id] = true
		}
	}
}

func TestAnIdThatWouldNotLeadToItsRowIsNotIssued(t *testing.T) {
	g := generator(t, snowflake.Config{Layout: geneLayout()})
	for want, r := range map[string]*sharding.Router{
		"does not carry the slot": geneRouter(t, sharding.Low(10), sharding.Bits(18, 10), 0),
		"is below":                geneRouter(t, sharding.Low(10), sharding.Low(10), 1<<62),
	} {
		id, err := r.NextID(t.Context(), g, "orders", "id", 77)
		var route *sharding.RouteError
		if id != 0 || !errors.As(err, &route) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d, %v", id, err)
		}
	}
	r := geneRouter(t, sharding.Low(10), sharding.Low(10), 0)
	for want, err := range map[string]error{
		"not a sharded table":         second(r.NextID(t.Context(), g, "users", "id", 1)),
		"NULL":                        second(r.NextID(t.Context(), g, "orders", "id", nil)),
		"does not lead to a shard":    second(r.NextID(t.Context(), g, "orders", "number", 1)),
		"1 ids for 2 keys":            r.FillIDs(t.Context(), g, "orders", "id", make([]int64, 1), []any{1, 2}),
		"no bucket field":             second(r.NextID(t.Context(), failing{}, "orders", "id", 1)),
		"users refused: not a sharde": r.FillIDs(t.Context(), g, "users", "id", nil, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

type failing struct{}

func (failing) NextIn(context.Context, int64) (int64, error) { return 0, errors.New("no bucket field") }
func (failing) FillIn(_ context.Context, dst, _ []int64) error {
	dst[0] = 1
	return errors.New("no bucket field")
}

// clock is moved by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// The generator is tested with the rule: an id without a slot field goes where its low bits lead.
func TestIdsOfTheGeneratorAreEvenOverTheSlotsOfTheRule(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 50} {
		c := &clock{noon}
		g := generator(t, snowflake.Config{Now: c.Now})
		r := rand.New(rand.NewPCG(1, 2))
		ids := make([]int64, 200_000)
		for i := range ids {
			c.now = c.now.Add(time.Duration(r.ExpFloat64() / rate * float64(time.Millisecond)))
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = id
		}
		for _, rule := range []sharding.Rule{sharding.Low(10), sharding.Mod(16), sharding.Hash(1024)} {
			report, err := sharding.Audit(rule, ids)
			if err != nil || report.Verdict != sharding.Even || rule != sharding.Hash(1024) && report.Chi2 > 1.2 {
				t.Errorf("%v ids per ms: %v, %v", rate, report, err)
			}
		}
	}
}

func TestAuditNamesTheProblem(t *testing.T) {
	zeroes := make([]int64, 100_000)
	for i := range zeroes {
		zeroes[i] = int64(i) << 12
	}
	few := zeroes[:1000]
	random := make([]int64, 100_000)
	for i := range random {
		random[i] = rand.Int64()
	}
	for _, c := range []struct {
		ids  []int64
		rule sharding.Rule
		want sharding.Balance
		text string
	}{
		{zeroes, sharding.Low(10), sharding.Uneven, "100000 ids over 1024 slots: chi² per degree of freedom 100000.000, fullest slot 0 (100000 ids), emptiest slot 1 (0 ids); uneven, 1023 slots are empty: choose a rule"},
		{zeroes, sharding.Hash(1024), sharding.Even, "; even"},
		{few, sharding.Low(10), sharding.TooFew, "; too few ids for a result; take 5120 or more"},
		{nil, sharding.Low(1), sharding.TooFew, "0 ids over 2 slots"},
		{random, sharding.Low(10), sharding.Even, "; even"},
		{random, sharding.Low(1), sharding.Even, "; even"},
		{random, sharding.Mod(1), sharding.Even, "; even"},
		{random, sharding.Ranges(1<<40, 1<<62), sharding.Uneven, "; uneven, "},
	} {
		report, err := sharding.Audit(c.rule, c.ids)
		if err != nil || report.Verdict != c.want || !strings.Contains(report.String(), c.text) {
			t.Errorf("%v, %v; want %q", report, err, c.text)
		}
	}
	if _, err := sharding.Audit(sharding.List(map[int]sharding.Slot{1: 0}), []int64{2}); !errors.Is(err, sharding.ErrNoSlot) {
		t.Error(err)
	}
	for _, rule := range []sharding.Rule{nil, sharding.Low(0)} {
		if _, err := sharding.Audit(rule, nil); err == nil {
			t.Error(fmt.Sprint(rule, " is accepted"))
		}
	}
}
