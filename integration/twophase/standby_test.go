// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/effort"
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
	withACopyOfMariaDB(t, test)
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		copied := server.RunMySQL(t, "--log-bin", "--server-id=2")
		copied.Renew(t)
		test(t, server.RunMySQL(t, "--log-bin", "--server-id=1"), copied, server.RunMySQL(t))
	})
}

func withACopyOfMariaDB(t *testing.T, test func(t *testing.T, of, copied, other database.Server)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		logs := []string{"--log-bin", "--binlog-format=ROW", "--log-slave-updates"}
		test(t, server.RunMariaDB(t, append(logs, "--server-id=1")...), server.RunMariaDB(t, append(logs, "--server-id=2")...), server.RunMariaDB(t))
	})
}

// Programs make transfers while a server of the two falls, whose copy has received every commit. fall moves the address.
func underFailOver(t *testing.T, east, west *database.Address, fall func()) {
	t.Helper()
	e, w := east.Open(t), west.Open(t)
	trading, err := newBank(t.Context(), e, w)
	must(t, err)
	t.Cleanup(func() { must(t, trading.routed.Close()) })
	ctx, stop := context.WithCancel(t.Context())
	resolver := trading.resolver(t, 100*time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() { resolver.Run(ctx) })
	said := &outcomes{all: map[int64]byte{}}
	var committed atomic.Int64
	for n := range int64(4) {
		wg.Go(func() {
			for id := n*1_000_000 + 1; ctx.Err() == nil; id++ {
				outcome := outcomeOf(ctx, trading, id)
				if outcome == '+' {
					committed.Add(1)
				}
				said.note(fmt.Sprintf("%c%d", outcome, id))
			}
		})
	}
	more := func(n int64) {
		until := committed.Load() + n
		testwait.Until(t, "transfers are committed", func() bool { return committed.Load() >= until })
	}
	more(30)
	fall()
	more(30)
	stop()
	wg.Wait()
	trading.compare(t, said, 1, resolver)
}

// outcomeOf makes a transfer between random users: + for a commit, - for a rollback, ? if it is unknown.
func outcomeOf(ctx context.Context, b *bank, id int64) byte {
	from, to := 2*rand.IntN(users/2), 1+2*rand.IntN(users/2)
	if rand.IntN(2) == 0 {
		from, to = to, from
	}
	limited, done := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond) // no server sees a deadlock over two
	defer done()
	switch err := b.transfer(limited, id, from, to); {
	case errors.Is(err, sharding.ErrInDoubt):
		return '?'
	case err != nil:
		return '-'
	}
	return '+'
}

// ofApp has the data source names of a user who may not write on a read-only server.
type ofApp struct{ database.DSNOpener }

func (a ofApp) DSN(name string) string {
	return strings.Replace(a.DSNOpener.DSN(name), "root@", "app@", 1)
}

func TestNoTransferIsThereByHalfWhenACopyTakesOverUnderLoad(t *testing.T) {
	with := withACopyOfMariaDB
	if effort.Soak() {
		with = withACopy
	}
	for round := range effort.Cases(1, 20) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			with(t, func(t *testing.T, of, copied, other database.Server) {
				servers, n := [2]database.Server{of, other}, 0
				if rand.IntN(2) == 0 {
					servers, n = [2]database.Server{other, of}, 1
				}
				b := openBank(t, servers[0], servers[1])
				var at [2]*database.Address
				names := [2]string{"bank_east", "bank_west"}
				for i, name := range names {
					at[i] = database.NewAddress(t, ofApp{servers[i]}, name)
				}
				must(t, twophase.Create(t.Context(), b.router, nil))
				for _, db := range []*sql.DB{b.east, b.west} {
					database.Exec(t, db, "CREATE USER app")
					database.Exec(t, db, "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO app")
					if b.server.Kind == dialect.KindMySQL {
						database.Exec(t, db, "GRANT XA_RECOVER_ADMIN ON *.* TO app")
					}
				}
				r := database.Replicate(t, of, copied)
				r.Acknowledge(t)
				underFailOver(t, at[0], at[1], func() {
					r.Hold(t)
					time.Sleep(rand.N(20 * time.Millisecond))
					of.Kill()
					at[n].Move(ofApp{copied}, names[n])
					time.Sleep(rand.N(100 * time.Millisecond))
					r.TakeOver(t)
				})
			})
		})
	}
}
