// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestTagsAndLeasesAreListed(t *testing.T) {
	db, store := database(t)
	exec(t, db, "INSERT INTO leaf_alloc (biz_tag, step, update_time) VALUES ('items', 10, datetime('now', '-90 seconds'))")
	tags, err := store.TagRows(t.Context(), 100)
	if err != nil || len(tags) != 2 {
		t.Fatal(tags, err)
	}
	if old := tags[0]; old.Tag != "items" || old.Step != 10 || old.Next != 1 || old.Unchanged < 90*time.Second || old.Unchanged > 2*time.Minute {
		t.Errorf("%+v", old)
	}
	if tags, err = store.TagRows(t.Context(), 1); err != nil || len(tags) != 1 {
		t.Error(tags, err)
	}

	lease := func(instance string) keygen.Returnable {
		from, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders", Instance: instance, Term: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := from.Acquire(t.Context(), keygen.Twitter())
		if err != nil {
			t.Fatal(err)
		}
		return lease.(keygen.Returnable)
	}
	lease("pod-0")
	returned := lease("pod-1")
	if err := returned.Release(t.Context(), keygen.Twitter().Tick(time.Now())); err != nil {
		t.Fatal(err)
	}
	rows, err := store.LeaseRows(t.Context(), 100)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	for _, r := range rows {
		if r.Namespace != "orders" || r.Layout != keygen.Twitter().Fingerprint() || r.Generation != 1 {
			t.Errorf("%+v", r)
		}
	}
	if held := rows[0]; held.Worker != 0 || held.Holder != "pod-0" || !held.Held || held.Left < 50*time.Second || held.Left > 61*time.Second { // SQLite counts whole seconds
		t.Errorf("%+v", held)
	}
	if free := rows[1]; free.Worker != returned.ID() || free.Held || free.Left > time.Second {
		t.Errorf("%+v", free)
	}
}
