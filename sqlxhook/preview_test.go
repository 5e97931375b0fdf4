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

// previewed returns the refusal of a statement in a preview, or nil.
func previewed(p *sharding.Preview, text string) error {
	for _, s := range p.Statements() {
		if s.Text == text {
			return s.Err
		}
	}
	return nil
}

// newPreviewed is a source of tickets whose hook follows a migration.
func newPreviewed(t *testing.T, m sharding.Migration, set keygen.Set, options ...sharding.Option) *harness {
	t.Helper()
	h := newHarness(t, "user_id")
	m.Source, m.Tables = "source", map[string]string{"tickets": "id"}
	router, err := sharding.New(h.DBs, append(options, h.Table, m)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.DBs["source"].Exec("CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)"); err != nil {
		t.Fatal(err)
	}
	h.Hook, h.DB = routed(t, router, h.DBs["source"], set)
	return h
}

// inserts are calls of the hook, with the refusals by shards of users whose generator makes the ids.
var inserts = map[string]struct {
	mode   sharding.TxMode
	insert func(context.Context, *harness) error
	want   error
}{
	"a batch of users in two databases": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		return second(h.Insert(ctx, h.DB, "tickets", []ticket{{UserID: 1}, {UserID: 2}}))
	}, sharding.ErrCrossDatabase},
	"two inserts in a transaction": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		tx := h.DB.MustBeginTx(ctx, nil)
		return errors.Join(second(h.Insert(ctx, tx, "tickets", &ticket{UserID: 1})), second(h.Insert(ctx, tx, "tickets", &ticket{UserID: 2})), tx.Commit())
	}, sharding.ErrCrossDatabase},
	"a key that is NULL": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		err := second(h.NamedExec(ctx, h.DB, "INSERT INTO tickets (id, user_id, note) VALUES (:id, NULL, :note)", &ticket{}))
		if err != nil && strings.Contains(err.Error(), "NOT NULL") {
			return nil // the source planned it, too
		}
		return err
	}, sharding.ErrKeyType},
	"a row": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		return second(h.Insert(ctx, h.DB, "tickets", &ticket{UserID: 1}))
	}, nil},
	"a batch of one user": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		return second(h.Insert(ctx, h.DB, "tickets", []ticket{{UserID: 1}, {UserID: 1}}))
	}, nil},
	"a batch of one database": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		return second(h.Insert(ctx, h.DB, "tickets", []ticket{{UserID: 1}, {UserID: 3}}))
	}, nil},
	"a batch by best effort": {sharding.BestEffort, func(ctx context.Context, h *harness) error {
		return second(h.Insert(ctx, h.DB, "tickets", []ticket{{UserID: 1}, {UserID: 2}}))
	}, nil},
	"an upsert": {sharding.SingleShard, func(ctx context.Context, h *harness) error {
		return second(h.NamedExec(ctx, h.DB, "INSERT INTO tickets (id, user_id, note) VALUES (:id, :user_id, :note) ON CONFLICT (id) DO NOTHING", &ticket{UserID: 1}))
	}, nil},
}

func TestAPreviewRefusesTheInsertsThatShardsRefuse(t *testing.T) {
	for what, c := range inserts {
		t.Run(what, func(t *testing.T) {
			found := new(sharding.Preview)
			h := newPreviewed(t, sharding.Migration{Preview: found}, keygen.Set{Default: keygen.Counting(1000, 1)}, sharding.Transactions(c.mode))
			if err := c.insert(t.Context(), h); err != nil {
				t.Fatalf("the source: %v", err)
			}
			all := found.Statements()
			if c.want == nil && len(all) > 0 && all[0].Err != nil || c.want != nil && (len(all) != 1 || !errors.Is(all[0].Err, c.want)) {
				t.Errorf("previewed %+v, want %v", all, c.want)
			}
			for _, text := range []string{"ALTER TABLE tickets RENAME TO tickets_old", "INSERT INTO shardid_route VALUES ('tickets', 'autumn', 1, 'shards')"} {
				if _, err := h.DBs["source"].Exec(text); err != nil {
					t.Fatal(err)
				}
			}
			for _, at := range h.Table.Map.Targets() {
				if _, err := h.DBs[at.DB].Exec(strings.Replace(ticketsDDL, "tickets", at.Table, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.insert(t.Context(), h); !errors.Is(err, c.want) {
				t.Errorf("the shards: %v", err)
			}
		})
	}
}

func TestAStrictSourceRefusesTheInsertsThatShardsRefuse(t *testing.T) {
	for what, c := range inserts {
		t.Run(what, func(t *testing.T) {
			h := newPreviewed(t, sharding.Migration{Strict: true}, keygen.Set{Default: keygen.Counting(1000, 1)}, sharding.Transactions(c.mode))
			if err := c.insert(t.Context(), h); !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), "Migration.Strict") {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
