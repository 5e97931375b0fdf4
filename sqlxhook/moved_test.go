// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// move replaces the maps of purchases and lines.
func (m market) move(t *testing.T, change func(targets []sharding.Target, table string)) {
	t.Helper()
	maps := map[string]sharding.Map{}
	for _, table := range []string{"purchases", "lines"} {
		targets := m.router.Targets(table)
		change(targets, table)
		next, err := sharding.MapOf(targets...)
		if err != nil {
			t.Fatal(err)
		}
		maps[table] = next.At(1)
	}
	if err := m.router.Swap(maps); err != nil {
		t.Fatal(err)
	}
}

func TestRowsGoWhereTheirSlotHasMoved(t *testing.T) {
	m := newMarket(t)
	for _, table := range []string{"purchases", "lines"} {
		m.own["east"].MustExec("CREATE TABLE " + table + "_new (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)")
	}
	insert := func() {
		t.Helper()
		if _, err := m.Insert(t.Context(), m.db, "lines", &line{UserID: 7}); err != nil {
			t.Error(err)
		}
	}
	insert()
	m.move(t, func(targets []sharding.Target, table string) {
		targets[3] = sharding.Target{DB: "east", Table: table + "_new"}
	})
	insert()
	if got, moved := m.in(t, "lines"), fmt.Sprint(idsIn(t, m.own["east"], "lines_new")); got != "[] [] [] [1]" || moved != "[2]" {
		t.Errorf("%s, %s", got, moved)
	}
}

// meddler is a generator that changes the router's maps before it issues a key.
type meddler struct {
	keygen.Generator[int64]
	meddle func()
}

func (m *meddler) Next(ctx context.Context) (int64, error) {
	m.meddle()
	return m.Generator.Next(ctx)
}

// The statement is planned when its keys are filled.
func TestAMapThatIsSwappedWhileKeysAreFilledIsUsed(t *testing.T) {
	m := newMarket(t)
	m.own["east"].MustExec("CREATE TABLE lines_new (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)")
	gen := &meddler{keygen.Counting(1, 1), func() {
		m.move(t, func(targets []sharding.Target, table string) {
			targets[3] = sharding.Target{DB: "east", Table: table + "_new"}
		})
	}}
	h, db := routed(t, m.router, m.own["west"].DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"line": gen}})
	if _, err := h.Insert(t.Context(), db, "lines", &line{UserID: 7}); err != nil {
		t.Fatal(err)
	}
	if got := idsIn(t, m.own["east"], "lines_new"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
