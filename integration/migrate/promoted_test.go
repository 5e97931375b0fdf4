// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
)

// failing is a shop one of whose servers has a copy that has all of its commits and takes over.
type failing struct {
	*migrationShop

	fall func(t *testing.T)
}

// newFailing returns a shop whose server of that number falls.
func newFailing(t *testing.T, kind string, n int) *failing {
	t.Helper()
	of, copied := failingServers(t, kind, n)
	s := newMigrationShop(t, of[0], of[1])
	var takesOver func(t *testing.T)
	if primary, is := of[n].(*server.Postgres); is {
		standby := newStandby(t, primary, true)
		waits := database.OpenPlain(t, primary, "shop")
		database.Exec(t, waits, "ALTER SYSTEM SET synchronous_standby_names = '*'")
		database.Exec(t, waits, "SELECT pg_reload_conf()")
		copied, takesOver = standby, func(t *testing.T) { t.Helper(); takeOver(t, standby) }
	} else {
		r := database.Replicate(t, of[n], copied)
		r.Acknowledge(t)
		takesOver = r.TakeOver
	}
	var moves []func()
	at := func(name string) *database.Address {
		a := database.NewAddress(t, of[n], name)
		moves = append(moves, func() { a.Move(copied, name) })
		return a
	}
	if n == 0 {
		s.source, s.shards["a"] = at("shop").Open(t), at("shop_a").Open(t)
	} else {
		s.shards["b"] = at("shop_b").Open(t)
	}
	return &failing{s, func(t *testing.T) {
		t.Helper()
		of[n].Kill()
		takesOver(t)
		for _, move := range moves {
			move()
		}
	}}
}

// failingServers returns two servers, and one that will be a copy of that with the number, except for PostgreSQL.
func failingServers(t *testing.T, kind string, n int) (of [2]database.Server, copied database.Server) {
	t.Helper()
	logs := []string{"--log-bin", "--binlog-format=ROW", "--log-slave-updates"}
	switch kind {
	case "MariaDB":
		of[n], of[1-n], copied = server.RunMariaDB(t, append(logs, "--server-id=1")...), server.RunMariaDB(t), server.RunMariaDB(t, append(logs, "--server-id=2")...)
	case "MySQL":
		to := server.RunMySQL(t, "--log-bin", "--server-id=2")
		to.Renew(t)
		of[n], of[1-n], copied = server.RunMySQL(t, "--log-bin", "--server-id=1"), server.RunMySQL(t), to
	default:
		of[n], of[1-n] = server.RunPostgres(t), server.RunPostgres(t)
		of[1].Open(t, "shop") // for newStandby
	}
	return of, copied
}

// The copy has received every commit, so that whoever makes the call again finishes the job.
func TestNothingIsLostWhenACopyTakesOverDuringAJob(t *testing.T) {
	steps := []string{
		migrate.StepBound, migrate.StepSnapshot, migrate.StepStored, migrate.StepApplied, migrate.StepAcked, migrate.StepLocked, migrate.StepDrained, migrate.StepRenamed,
		migrate.StepFlipped, migrate.StepSealing, migrate.StepSealed, migrate.StepReinstated,
	}
	kinds := []string{"MariaDB", "MySQL", "PostgreSQL"}
	if !effort.Soak() {
		steps, kinds = []string{migrate.StepLocked}, []string{"MariaDB"}
	}
	for _, kind := range kinds {
		for n, name := range []string{"of the source", "of a shard"} {
			for _, step := range steps {
				t.Run(kind+"/"+name+"/"+step, func(t *testing.T) {
					newFailing(t, kind, n).during(t, step, n == 0)
				})
			}
		}
	}
}

// during lets the server fall at a step. Only a source that is on another server may have forgotten a switch.
func (s *failing) during(t *testing.T, step string, ofSource bool) {
	t.Helper()
	s.fill(t, 600)
	stopOracle := s.watch(t, 1)
	stop := s.writers(t, 1)
	fallen := false
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == step && !fallen {
				fallen = true
				s.fall(t)
			}
		}
	})
	goesOn := func(err error) bool {
		if ofSource && errors.Is(err, migrate.ErrUnclear) {
			s.declareUntaken(t)
			return true
		}
		return mayGoOn(err) || migrate.Transient(err)
	}
	calls := waysThereAndBack(t.Context(), j)
	for len(calls) > 0 {
		err := calls[0]()
		if err == nil || errors.Is(err, migrate.ErrPhase) {
			calls = calls[1:]
		} else if !goesOn(err) {
			t.Error(err)
			break
		}
	}
	if !fallen {
		t.Error("there is no such step")
	}
	stop()
	want := stopOracle()
	if err := j.Run(t.Context()); err != nil && !goesOn(err) {
		t.Error(err)
	}
	s.settle(t, want)
}

// declareUntaken does what ErrUnclear demands of an operator who knows that the source serves.
func (s *failing) declareUntaken(t *testing.T) {
	t.Helper()
	for _, db := range s.shards {
		for _, name := range database.Texts(t, db, s.speaks.triggers) {
			if strings.HasPrefix(name, "shardid_orders_b") {
				drop := "DROP TRIGGER %s"
				if s.speaks.driver == "pgx" {
					drop = "DROP FUNCTION %s() CASCADE"
				}
				database.Exec(t, db, fmt.Sprintf(drop, name))
			}
		}
	}
}
