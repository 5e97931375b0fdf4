// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"testing"
	"time"
)

func TestRunCopiesEveryRowToItsShard(t *testing.T) {
	for _, key := range []string{"id", "user_id"} {
		s := newShop(t, 333)
		if err := s.job(t, key).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.compare(t, orders(t, key), "orders")
	}
}

func TestRunFollowsWritersWhileItCopies(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"id", "user_id"} {
		s := newShop(t, 600)
		stop := s.writers(t, 3)
		j := s.job(t, key)
		for range 3 {
			if err := j.Run(t.Context()); err != nil {
				stop()
				t.Fatal(err)
			}
		}
		n := stop()
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d changes", n)
		s.compare(t, orders(t, key), "orders")
	}
}

func TestRunBringsChangesOfTheShardsBackAfterTheSwitch(t *testing.T) {
	s := newShop(t, 200)
	j := s.job(t, "user_id")
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, at := range orders(t, "user_id").Map.Targets() {
		exec(t, s.shards[at.DB], "UPDATE "+at.Table+" SET note = 'changed', code = CASE id % 2 WHEN 0 THEN NULL ELSE code END WHERE id > 50")
	}
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := j.Progress(t.Context())
	if err != nil || p.Backlog != 0 {
		t.Errorf("%d changes wait (%v)", p.Backlog, err)
	}
	s.compare(t, orders(t, "user_id"), "orders_old")
}
