// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

func TestAnUpsertMayNotChangeTheKey(t *testing.T) {
	m := newMarket(t)
	upsert := "INSERT INTO purchases (id, user_id) VALUES (:id, :user_id) ON CONFLICT (id) DO "
	for i := range 2 { // it is there the second time
		if _, err := m.NamedExec(t.Context(), m.db, upsert+"UPDATE SET user_id = 6", &purchase{1003, 7}); !errors.Is(err, sharding.ErrKeyChange) {
			t.Error(err)
		}
		if res, err := m.NamedExec(t.Context(), m.db, upsert+"NOTHING", &purchase{1003, 7}); err != nil || res.RowsAffected != int64(1-i) {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

func TestAnUpsertOfARowThatAnotherShardHasStoresNoSecondOne(t *testing.T) {
	m := newMarket(t)
	if _, err := m.Insert(t.Context(), m.db, "lines", &line{ID: 50, UserID: 6}); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"REPLACE INTO lines (id, user_id) VALUES (:id, :user_id)",
		"INSERT OR IGNORE INTO lines (id, user_id) VALUES (:id, :user_id)",
		"INSERT INTO lines (id, user_id) VALUES (:id, :user_id) ON CONFLICT (id) DO NOTHING",
	} {
		var route *sharding.RouteError
		if _, err := m.NamedExec(t.Context(), m.db, query, &line{50, 7}); !errors.As(err, &route) {
			t.Errorf("%s: %v", query, err)
		}
		if _, err := m.NamedExec(t.Context(), m.db, query, &line{50, 6}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	if got := m.in(t, "lines"); got != "[] [] [50] []" {
		t.Error(got)
	}
}

// An upsert searches all shards, which is more than FanOut allows here, for rows with preset ids,
// and not for rows with newly generated ids.
func TestAnUpsertDoesNotSearchForNewIDs(t *testing.T) {
	m := newMarket(t, sharding.FanOut(3, 1))
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}}, Router: m.router, MaxParams: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	const values = " INTO lines (id, user_id) VALUES (:id, :user_id)"
	for _, query := range []string{"REPLACE" + values, "INSERT OR IGNORE" + values, "INSERT" + values + " ON CONFLICT (id) DO NOTHING"} {
		if res, err := h.NamedExec(t.Context(), m.db, query, users(4, 2, 6)); err != nil || res.RowsAffected != 3 { // two statements
			t.Errorf("%s: %+v, %v", query, res, err)
		}
		old := users(4, 2, 6)
		old[2].ID = 1000
		if _, err := h.NamedExec(t.Context(), m.db, query, old); !errors.Is(err, sharding.ErrTooManyShards) || old[0].ID != 0 {
			t.Errorf("%s: %v, %v", query, old, err)
		}
	}
	found, err := h.NamedQuery(t.Context(), m.db, "INSERT"+values+" ON CONFLICT (id) DO NOTHING RETURNING id", users(4))
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Close(); err != nil {
		t.Error(err)
	}
}
