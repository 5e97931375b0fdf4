// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

func TestARowWhoseIDLeadsElsewhereIsRefused(t *testing.T) {
	m := newMarket(t)
	for _, verb := range []string{"INSERT INTO", "REPLACE INTO", "INSERT OR REPLACE INTO", "INSERT OR IGNORE INTO", "replace\tinto"} {
		query := verb + " purchases (id, user_id) VALUES (:id, :user_id)"
		_, err := m.NamedExec(t.Context(), m.db, query, &purchase{1001, 7})
		if !errors.Is(err, sharding.ErrMisplaced) || !strings.Contains(err.Error(), "id 1001 leads to slot 1, user_id to slot 3") {
			t.Errorf("%s: %v", verb, err)
		}
		m.db.MustExec("DELETE FROM purchases WHERE user_id = 7")
		if _, err := m.NamedExec(t.Context(), m.db, query, &purchase{1003, 7}); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := m.Insert(t.Context(), m.db, "purchases", &purchase{999, 7}); err != nil {
		t.Errorf("an id from before ids led to shards: %v", err)
	}
	var found []purchase
	if err := m.db.Select(&found, "SELECT * FROM purchases WHERE id IN (?, ?) ORDER BY id", 1003, 999); err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestAnIDOfAnotherSlotOfTheSameTableIsRefused(t *testing.T) {
	m := newMarket(t)
	m.move(t, func(targets []sharding.Target, _ string) { targets[3] = targets[1] })
	if _, err := m.Insert(t.Context(), m.db, "purchases", &purchase{1001, 7}); !errors.Is(err, sharding.ErrMisplaced) {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), m.db, "purchases", &[]purchase{{1003, 7}, {1001, 5}}); err != nil {
		t.Error(err)
	}
	if got := m.in(t, "purchases"); got != "[] [1001 1003] [] []" {
		t.Error(got)
	}
}

// bucketed makes ids from 1000 on with a bucket in their two lowest bits.
type bucketed struct{ last int64 }

func (g *bucketed) Next(ctx context.Context) (int64, error) { return g.NextIn(ctx, 0) }

func (g *bucketed) NextIn(_ context.Context, bucket int64) (int64, error) {
	g.last++
	return 1000 + g.last<<2 + bucket, nil
}

func (g *bucketed) FillIn(ctx context.Context, dst, buckets []int64) (err error) {
	for i := range dst {
		dst[i], err = g.NextIn(ctx, buckets[i])
	}
	return err
}

func TestGeneratedIDsCarryTheSlotOfTheirRow(t *testing.T) {
	type bought struct {
		ID     int64  `db:"id" keygen:"purchase"`
		UserID uint32 `db:"user_id"`
	}
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	h, db := routed(t, m.router, m.own["west"].DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"purchase": &bucketed{}, "line": keygen.Counting(4000, 1)}})
	rows := []bought{{UserID: 7}, {UserID: 2}, {ID: 1005, UserID: 1}, {UserID: 4}, {UserID: 0}}
	if _, err := h.Insert(t.Context(), db, "purchases", rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.ID%4 != int64(row.UserID%4) {
			t.Errorf("%+v", row)
		}
		var user uint32
		if err := db.Get(&user, "SELECT user_id FROM purchases WHERE id = ?", row.ID); err != nil || user != row.UserID {
			t.Errorf("user %d, %v", user, err)
		}
	}
	type wrong struct {
		ID     int64 `db:"id" keygen:"line"` // of a generator that knows no slots
		UserID int64 `db:"user_id"`
	}
	one := wrong{UserID: 1}
	if _, err := h.Insert(t.Context(), db, "purchases", &one); !errors.Is(err, sharding.ErrMisplaced) || one.ID != 0 {
		t.Errorf("%v, %+v", err, one)
	}
	if _, err := h.Insert(t.Context(), db, "purchases", []struct {
		ID     int64 `db:"id" keygen:"purchase"`
		UserID *int  `db:"user_id"`
	}{{}}); !errors.Is(err, sharding.ErrKeyType) {
		t.Error(err)
	}
}
