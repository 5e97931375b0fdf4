package sqlxhook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// meddler is a generator that changes the router's maps before it issues a key.
type meddler struct {
	keygen.Generator[int64]
	meddle func()
}

func (m *meddler) Next(ctx context.Context) (int64, error) {
	m.meddle()
	return m.Generator.Next(ctx)
}

// Rows of a statement go by the map that the statement was planned with: one that
// came in between knows tables that the plan does not.
func TestAStatementKeepsTheMapItWasPlannedWith(t *testing.T) {
	old, fresh := spread(t, []string{"main"}, "orders_%d"), spread(t, []string{"main"}, "fresh_%d")
	var ddl []string
	for _, target := range append(old.Targets(), fresh.Targets()...) {
		ddl = append(ddl, strings.Replace(ordersDDL, "orders", target.Table, 1))
	}
	db := open(t, ddl...)
	router, err := sharding.New(sharding.DBs{"main": db.DB}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: old})
	if err != nil {
		t.Fatal(err)
	}
	swapped := false
	gen := &meddler{keygen.Counting(1, 1), func() {
		if swapped {
			return
		}
		swapped = true
		if err := router.Swap(map[string]sharding.Map{"orders": fresh.At(1)}); err != nil {
			t.Error(err)
		}
	}}
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": gen}}, Router: router, DriverName: "sqlite"})
	if err != nil {
		t.Fatal(err)
	}
	for want, table := range []string{"orders_1", "fresh_2"} {
		if _, err := h.Insert(t.Context(), h.Shards(), "orders", &order{}); err != nil {
			t.Fatal(err)
		}
		if ids := idsIn(t, db, table); len(ids) != 1 || ids[0] != int64(want+1) {
			t.Errorf("%s holds %v", table, ids)
		}
	}
}

func TestNoTargetsAreNoSuccess(t *testing.T) {
	h, _ := newSharded(t)
	err := h.Each(t.Context(), nil, 0, func(context.Context, *sqlxhook.Shard) error { return nil })
	if !errors.Is(err, sharding.ErrUnknownTable) || !strings.Contains(err.Error(), "Router.Load") {
		t.Errorf("got %v", err)
	}
}
