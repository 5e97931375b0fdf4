// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"strings"
	"testing"
)

// abortedAndOpen aborts a job, and returns a transaction that keeps the next one from making
// its triggers. It is rolled back when the test ends.
func (o *operator) abortedAndOpen(t *testing.T) *sql.Tx {
	t.Helper()
	o.must(t, 0, "run", "--once")
	o.must(t, 0, "abort", "--yes")
	tx, err := o.source.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // it may have ended
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'open' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// A runner that is kept waiting by a transaction on the table has not begun the job
// yet: another one that stands by must not take it for one that was aborted.
func TestARunnerStandsByForAJobThatATransactionKeepsFromBeginning(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 50)
		o := newOperator(t, s)
		tx := o.abortedAndOpen(t)
		leader := o.start(t, "run")
		leader.waitFor(t, "waiting for transactions on table orders to end")
		standby := o.start(t, "run")
		standby.waitFor(t, "another runner leads the job")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		o.wait(t, func(s jobStatus) bool { return s.Phase == "following" }, leader, standby)
		if err := leader.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		epoch := o.status(t).Epoch
		o.wait(t, func(s jobStatus) bool { return s.Epoch > epoch }, standby)
		if said := standby.stderr.String(); strings.Contains(said, "was aborted") {
			t.Error(said)
		}
	})
}

// Runners that lose the source before they have begun the job begin it when the source is back.
func TestRunnersSurviveAnOutageBeforeTheJobIsBegun(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 10)
		o := newOperator(t, s)
		o.abortedAndOpen(t)
		leader := o.start(t, "run", "--interval", "100ms")
		leader.waitFor(t, "waiting for transactions on table orders to end")
		standby := o.start(t, "run", "--interval", "100ms")
		standby.waitFor(t, "another runner leads the job")
		s.servers[0].Kill()
		waitForOneOf(t, "waiting, and trying again: ", leader, standby)
		if err := s.servers[0].Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.wait(t, func(s jobStatus) bool { return s.Phase == "following" }, leader, standby)
	})
}
