package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func TestAnAlterEndsAFollowingRunner(t *testing.T) {
	t.Parallel()
	for _, alter := range []string{"ALTER TABLE orders ADD COLUMN late TEXT", "ALTER TABLE orders RENAME COLUMN note TO remark"} {
		s := newShop(t, 50)
		j := s.job(t, "id")
		mustRun(t, j)
		following := make(chan error, 1)
		go func() { following <- j.Follow(t.Context()) }()
		exec(t, s.source, "UPDATE orders SET total = 4 WHERE id = 7")
		for count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders") > 0 {
			continue
		}
		exec(t, s.source, alter+"; UPDATE orders SET total = 5 WHERE id = 7")
		if err := <-following; !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%s: Follow ended with %v", alter, err)
		}
	}
}

func TestVerifyNotesNothingOfATableThatWasAltered(t *testing.T) {
	t.Parallel()
	for _, alter := range []string{"ALTER TABLE orders ADD COLUMN late TEXT", "ALTER TABLE orders DROP COLUMN note"} {
		s, job := copied(t, 100)
		db, table := s.home(t, 7)
		exec(t, db, fmt.Sprintf("DELETE FROM %s WHERE id = 7", table))
		exec(t, s.source, alter)
		if v, err := job.Verify(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%s: %+v, %v", alter, v, err)
		}
		if n := count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders"); n != 0 {
			t.Errorf("%s: %d entries were noted", alter, n)
		}
	}
}

func TestASwitchSaysHowManyChangesWaitWhenWritersAreTooFast(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1000)
	fast := false
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if fast && step.Name == migrate.StepAcked && count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders") == 0 {
				exec(t, s.source, "UPDATE orders SET note = 'again'")
			}
		}
	})
	mustRun(t, j)
	fast = true
	exec(t, s.source, "UPDATE orders SET note = 'first'")
	_, err := j.Cutover(t.Context(), longPause)
	waiting := fmt.Sprintf("; %d changes wait", count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders"))
	if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), waiting) {
		t.Errorf("the cutover ended with %v", err)
	}
	fast = false
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}
