// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

func TestACutoverWhoseRenamesWouldNotFitIntoThePauseRenamesNothing(t *testing.T) {
	s := newShop(t, 20)
	j := s.job(t, "id")
	mustRun(t, j)
	_, err := j.SwitchWithin(t.Context(), time.Minute, time.Hour)
	var pause *migrate.PauseError
	if !errors.As(err, &pause) || pause.Needs != time.Hour {
		t.Fatalf("got %v", err)
	}
	exec(t, s.source, "INSERT INTO orders (user_id) VALUES (1)")
	done := mustCutover(t, j)
	if done.Over != 0 || done.Pause == 0 {
		t.Errorf("a pause of %s is said to be %s above a limit of a minute", done.Pause, done.Over)
	}
	s.compare(t, orders(t, "id"), "orders_old")
	for _, db := range []string{"a", "b"} {
		if n := count(t, s.shards[db], "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'shardid_try%' OR name LIKE 'shardid_was%'"); n != 0 {
			t.Errorf("the rehearsal left %d tables on %s", n, db)
		}
	}
}

func TestASwitchThatTookLongerThanAllowedSaysByHowMuch(t *testing.T) {
	s := newShop(t, 20)
	const allowed = 300 * time.Millisecond
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if step.Name == migrate.StepFlipped { // the database is slow from here on
				for began := time.Now(); time.Since(began) <= 2*allowed; {
					time.Sleep(allowed)
				}
			}
		}
	})
	mustRun(t, j)
	done, err := j.SwitchWithin(t.Context(), allowed, 0)
	var late *migrate.PauseError
	for errors.As(err, &late) { // this machine was
		done, err = j.SwitchWithin(t.Context(), allowed, 0)
	}
	if err != nil || done.Over != done.Pause-allowed || done.Over <= 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestASwitchThatIsLateIsUndoneWhereThatIsShorter(t *testing.T) {
	s := newShop(t, 20)
	const allowed = 300 * time.Millisecond
	slow := true
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if slow && step.Name == migrate.StepRenamed {
				for began := time.Now(); time.Since(began) <= 2*allowed; {
					time.Sleep(allowed)
				}
			}
		}
	})
	mustRun(t, j)
	_, err := j.Cutover(t.Context(), allowed)
	var late *migrate.PauseError
	if !errors.As(err, &late) {
		t.Fatal(err)
	}
	exec(t, s.source, "INSERT INTO orders (user_id) VALUES (1)")
	slow = false
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}
