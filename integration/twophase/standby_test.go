// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// A program that was told to commit on the second database meets a copy of it that does not take
// over at once. fall kills the server, and moves its address to the copy.
func meetsTheCopyFirst(t *testing.T, b *bank, east, west *database.Address, fall, takeOver func()) {
	t.Helper()
	s := &steps{}
	e, w := sql.OpenDB(stepping{east, s}), sql.OpenDB(stepping{west, s})
	stepped, err := newBank(t.Context(), e, w)
	must(t, err)
	defer func() { must(t, errors.Join(stepped.routed.Close(), e.Close(), w.Close())) }()
	must(t, stepped.transfer(t.Context(), 1, 0, 1))
	tries, over := 0, false
	s.at = func(_ int64, behind bool) {
		switch {
		case tries > 0 && !behind:
			if tries++; tries == 4 {
				takeOver()
				over = true
			}
		case tries == 0 && behind && decided(t, b.east):
			fall()
			tries = 1
		}
	}
	err = stepped.transfer(t.Context(), 2, 2, 3)
	s.at = nil
	must(t, err)
	if !over {
		t.Error("the program did not wait until the copy took over")
		takeOver()
	}
	b.west = west.Open(t)
	stepped.settle(t)
	if all := b.audit(t); all[1] != 3 || all[2] != 3 {
		t.Errorf("%v", all)
	}
	must(t, stepped.transfer(t.Context(), 3, 0, 1))
	b.audit(t)
}

func decided(t *testing.T, db *sql.DB) bool {
	t.Helper()
	return database.MustNumber(t, db, "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state = 'committed'") > 0
}

// Neither kind of copy lists a branch that it has received: a standby of PostgreSQL never does, and a replica of the
// others must apply it first.
func TestABranchIsNotTakenForEndedBecauseACopyDoesNotListIt(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		a, z := server.RunPostgres(t, "max_prepared_transactions=100"), server.RunPostgres(t, "max_prepared_transactions=100")
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		meetsTheCopyFirst(t, b, database.NewAddress(t, a, "bank_east"), database.NewAddress(t, z, "bank_west"), func() {
			database.Exec(t, b.west, "COPY (SELECT 1) TO PROGRAM 'cat > standby.signal'") // in the folder of the data
			z.Kill()
			must(t, z.Start(t.Context()))
			testwait.Until(t, "a query on the standby", func() bool { return b.west.PingContext(t.Context()) == nil })
		}, func() { database.Exec(t, b.west, "SELECT pg_promote()") })
	})
	replicated := func(t *testing.T, z, copied, a database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		r := database.Replicate(t, z, copied)
		r.Hold(t)
		west := database.NewAddress(t, z, "bank_west")
		meetsTheCopyFirst(t, b, database.NewAddress(t, a, "bank_east"), west, func() {
			r.Receive(t)
			z.Kill()
			west.Move(copied, "bank_west")
		}, func() { r.TakeOver(t) })
	}
	withACopy(t, replicated)
}

// A user with the right to write on a read-only server would decide there against a transaction that has committed, and
// whose decision the copy has not applied yet.
func TestNothingIsDecidedOnACopyThatHasNotTakenOver(t *testing.T) {
	test := func(t *testing.T, a, copied, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		r := database.Replicate(t, a, copied)
		east := database.NewAddress(t, a, "bank_east")
		s := &steps{}
		e := sql.OpenDB(stepping{east, s})
		stepped, err := newBank(t.Context(), e, b.west)
		must(t, err)
		defer func() { must(t, errors.Join(stepped.routed.Close(), e.Close())) }()
		must(t, stepped.transfer(t.Context(), 1, 0, 1))
		r.CatchUp(t)
		r.Hold(t)
		fallen := false
		s.at = func(_ int64, behind bool) {
			if fallen || !behind || !decided(t, b.east) {
				return
			}
			fallen = true
			r.Receive(t)
			a.Kill()
			s.lost = driver.ErrBadConn
			east.Move(copied, "bank_east")
		}
		err = stepped.transfer(t.Context(), 2, 2, 3)
		s.at = nil
		if !errors.Is(err, sharding.ErrInDoubt) && err != nil {
			t.Errorf("the program was told: %v", err)
		}
		report, err := stepped.resolver(t, time.Millisecond).Resolve(t.Context())
		if err == nil || report.Committed+report.RolledBack > 0 {
			t.Errorf("a resolver did %+v, %v", report, err)
		}
		r.TakeOver(t)
		b.east = east.Open(t)
		stepped.settle(t)
		if all := b.audit(t); all[1] != 3 || all[2] != 3 {
			t.Errorf("%v", all)
		}
	}
	withACopy(t, test)
}

// withACopy runs a test on a server, its copy to be, and another server.
func withACopy(t *testing.T, test func(t *testing.T, of, copied, other database.Server)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		logs := []string{"--log-bin", "--binlog-format=ROW", "--log-slave-updates"}
		test(t, server.RunMariaDB(t, append(logs, "--server-id=1")...), server.RunMariaDB(t, append(logs, "--server-id=2")...), server.RunMariaDB(t))
	})
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		copied := server.RunMySQL(t, "--log-bin", "--server-id=2")
		copied.Renew(t)
		test(t, server.RunMySQL(t, "--log-bin", "--server-id=1"), copied, server.RunMySQL(t))
	})
}
