package migrate_test

import (
	"testing"
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
