package sqlxhook_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// What replaces a row is placed as what inserts it is: a row whose id leads to
// another shard than its key would come to lie beside the one that it replaces.
func TestAReplacementWhoseIDLeadsElsewhereIsRefused(t *testing.T) {
	m := newMarket(t)
	if _, err := m.Insert(t.Context(), m.Shards(), "purchases", &purchase{1001, 5}); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"REPLACE INTO", "INSERT OR REPLACE INTO", "INSERT OR IGNORE INTO", "replace\tinto"} {
		query := verb + " purchases (id, user_id) VALUES (:id, :user_id)"
		for name, to := range map[string]sqlxhook.Execer{"Shard": m.shard(t, 7), "Shards": m.Shards()} {
			if _, err := m.NamedExec(t.Context(), to, query, &purchase{1001, 7}); !errors.Is(err, sharding.ErrMisplaced) {
				t.Errorf("%s with %s: %v", verb, name, err)
			}
			if _, err := m.NamedExec(t.Context(), to, query, &purchase{1003, 7}); err != nil {
				t.Errorf("%s with %s: %v", verb, name, err)
			}
		}
		if _, err := m.shard(t, 7).ExecContext(t.Context(), verb+" purchases (id, user_id) VALUES (1001, 7)"); !errors.Is(err, sharding.ErrMissingKey) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if there, here := idsIn(t, m.own["west"], "purchases_1"), idsIn(t, m.own["west"], "purchases_3"); len(there) != 1 || len(here) != 1 {
		t.Errorf("%v, %v", there, here)
	}
}
