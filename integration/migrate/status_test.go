// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
)

// fullStatus is what status --json says.
type fullStatus struct {
	migrate.Status

	Next string `json:"next"`
}

// waitStatus asks until the status is as it is wanted.
func (o *operator) waitStatus(t *testing.T, wanted func(fullStatus) bool) fullStatus {
	t.Helper()
	for {
		var s fullStatus
		if err := json.Unmarshal([]byte(o.must(t, 0, "status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		if wanted(s) {
			return s
		}
		pauseOrFail(t)
	}
}

func TestAStatusSaysWhoLeadsAndThatNobodyDoesWhenAllWereKilled(t *testing.T) {
	onShops(t, func(t *testing.T, shop *migrationShop) {
		shop.fill(t, 300)
		o := newOperator(t, shop)
		o.must(t, 0, "install")
		o.must(t, 0, "seed", "--margin", "1000000")
		first := o.start(t, "run")
		ledBy := func(c *command) func(fullStatus) bool {
			return func(s fullStatus) bool {
				return s.Phase == migrate.PhaseFollowing && s.Runner != nil && s.Runner.Leads && s.Runner.PID == int64(c.Process.Pid) && s.Runner.Does == "follows changes"
			}
		}
		s := o.waitStatus(t, ledBy(first))
		if host, err := os.Hostname(); err != nil || s.Runner.Host != host {
			t.Errorf("%+v (%v)", *s.Runner, err)
		}
		second := o.start(t, "run")
		second.waitFor(t, "waiting to take over")
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		o.waitStatus(t, ledBy(second))

		tx, err := o.source.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET total = total + 1 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		var connection int64
		if err := tx.QueryRowContext(t.Context(), o.speaks.self).Scan(&connection); err != nil {
			t.Fatal(err)
		}
		o.waitStatus(t, func(s fullStatus) bool {
			return s.Oldest != nil && s.Oldest.Connection == connection && s.Oldest.Seconds >= 1
		})
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}

		o.waitStatus(t, func(s fullStatus) bool { return s.Backlog == 0 && s.Lag != nil && *s.Lag == 0 })
		if err := second.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, o.source, "UPDATE orders SET total = total + 1 WHERE id = 1")
		s = o.waitStatus(t, func(s fullStatus) bool { return !s.Runner.Leads })
		if s.Next != "shardid migrate run --config shards.json" || s.Backlog == 0 || s.Lag == nil {
			t.Errorf("%+v", s)
		}
		said := o.must(t, 6, "status", "--check")
		if want := fmt.Sprintf("no runner: last heard from %s pid %d, ", s.Runner.Host, second.Process.Pid); !strings.Contains(said, want) || !strings.Contains(said, "; start: "+s.Next+"\n") {
			t.Errorf("no %q in\n%s", want, said)
		}
		o.must(t, 0, "run", "--once")
		o.waitStatus(t, func(s fullStatus) bool { return s.Backlog == 0 && !s.Runner.Leads })

		third := o.start(t, "run")
		o.waitStatus(t, ledBy(third))
		o.must(t, 0, "cutover", "--max-pause", longPause.String())
		waitsOnTheWayBack(t, o)
	})
}

// waitsOnTheWayBack: after the switch a transaction on the source keeps the runner from
// bringing changes back.
func waitsOnTheWayBack(t *testing.T, o *operator) {
	t.Helper()
	o.waitStatus(t, func(s fullStatus) bool {
		return s.Phase == migrate.PhaseSwitched && s.Runner.Leads && s.Runner.Does == "brings changes of the shards back" && s.Lag != nil && *s.Lag == 0
	})
	tx, err := o.source.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT id FROM orders_old WHERE id <= 10 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, o.shards["a"], "UPDATE orders_00 SET total = total + 1 WHERE id <= 10")
	o.waitStatus(t, func(s fullStatus) bool { return s.Backlog > 0 && s.Lag != nil && *s.Lag >= 3 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	o.waitStatus(t, func(s fullStatus) bool { return s.Backlog == 0 && s.Lag != nil && *s.Lag == 0 })
}

// MySQL keeps the numbers of information_schema for a day after somebody has read them.
func TestAnEstimateOfRowsIsNotADayOld(t *testing.T) {
	s := newMigrationShop(t, server.RunMySQL(t), server.RunMySQL(t))
	j := s.job(t, "id")
	rows := func() int64 {
		t.Helper()
		plan, err := j.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return plan.Tables[0].Rows
	}
	if n := rows(); n != 0 {
		t.Errorf("an empty table has about %d rows", n)
	}
	s.fill(t, 3000)
	if n := rows(); n < 1000 {
		t.Errorf("a table of 3000 rows has about %d", n)
	}
}
