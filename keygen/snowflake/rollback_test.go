// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// stepped runs f on the virtual clock with a wall clock that f may set back.
func stepped(t *testing.T, f func(t *testing.T, step func(time.Duration), now func() time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		clock := &keygentest.WallClock{}
		f(t, clock.Step, clock.Now)
	})
}

func TestASmallStepBackIsWaitedOut(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: fresh(1), Now: now, Rollback: []snowflake.Policy{snowflake.Wait(5 * time.Millisecond)}})
		before := next(t, g)
		step(-6 * time.Millisecond) // of which three are normal: one borrowed, two of tolerance
		begin := time.Now()
		ids := make([]int64, 4096)
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 6*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		if after := next(t, g); after.Time.Before(before.Time) || after.Worker != before.Worker {
			t.Errorf("%+v after %+v", after, before)
		}
		step(-time.Second)
		if err := g.Fill(t.Context(), ids); !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("a large step: %v", err)
		}
	})
}

func TestAWaitGivesUpAfterTwiceTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newHandClock(noon) // stands still
		g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now, Rollback: []snowflake.Policy{snowflake.Wait(time.Second)}})
		next(t, g)
		clock.Advance(-100 * time.Millisecond)
		begin := time.Now()
		if _, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took < 190*time.Millisecond || took > 210*time.Millisecond {
			t.Errorf("waited %v for a step of 100 ms", took)
		}
	})
}

func TestARollbackTakesABackupWorkerIDAndNoIDComesTwice(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		ledger := keygentest.NewMemoryLedger(time.Now) // its clock is right
		g := open(t, snowflake.Config{
			Layout: millennium, Worker: leased(t, ledger), Now: now,
			Rollback: []snowflake.Policy{snowflake.Wait(5 * time.Millisecond), snowflake.SwitchWorker(leased(t, ledger))},
		})
		var ids []int64
		workers := map[int64]bool{}
		for range 20 {
			for range 50 {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			workers[g.Stats().Worker] = true
			step(-20 * time.Millisecond)
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
		if len(workers) < 2 {
			t.Errorf("used the worker ids %v", workers)
		}
	})
}

func TestStatsTellHowLongABackupWorkerIDTook(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		backup := leased(t, slow{keygentest.NewMemoryLedger(time.Now), 3 * time.Millisecond})
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, keygentest.NewMemoryLedger(time.Now)), Now: now, Rollback: []snowflake.Policy{snowflake.SwitchWorker(backup)}})
		next(t, g)
		step(-time.Second)
		next(t, g)
		if s := g.Stats(); s.LastReservation != 3*time.Millisecond || s.LastError != nil {
			t.Errorf("%+v", s)
		}
	})
}

func TestAPolicyThatCannotHelpLeavesTheGeneratorAsItWas(t *testing.T) {
	clock := newHandClock(noon)
	g := open(t, snowflake.Config{
		Worker: fresh(1), Now: clock.Now,
		Rollback: []snowflake.Policy{snowflake.SwitchWorker(workerid.Static(5000))},
	})
	next(t, g)
	clock.Advance(-time.Minute)
	if _, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) || !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("%v", err)
	}
	clock.Advance(time.Minute)
	if p := next(t, g); p.Worker != 1 {
		t.Errorf("%+v", p)
	}
}

func TestTwoExtensionBitsAreGoodForThreeRollbacks(t *testing.T) {
	// The worker field has two bits more than the 62 workers of this service need.
	const w = 5
	ids := []int64{w, w | 1<<6, w | 2<<6, w | 3<<6}
	layout := keygen.Layout{
		Epoch: millennium.Epoch, Unit: time.Millisecond,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 8}, {Kind: keygen.Sequence, Bits: 12}},
	}
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		extension := workerid.Backup(ids...)
		g := open(t, snowflake.Config{
			Layout: layout, Worker: extension, Now: now, Rollback: []snowflake.Policy{snowflake.SwitchWorker(extension)},
		})
		var all []int64
		for rollbacks := range 4 {
			for range 100 {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, id)
			}
			if got := g.Stats().Worker; got != ids[rollbacks] {
				t.Errorf("after %d rollbacks the worker id is %d", rollbacks, got)
			}
			step(-time.Second)
		}
		if _, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("the fourth rollback: %v", err)
		}
		step(10 * time.Second) // time heals
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id, twice := keygentest.Duplicate(append(all, id)); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

func TestABackupWorkerIDThatIsAheadOfTheClockRemainsABackup(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		backup := workerid.Backup(1, 2)
		g := open(t, snowflake.Config{Layout: millennium, Worker: backup, Now: now, Rollback: []snowflake.Policy{snowflake.SwitchWorker(backup)}})
		next(t, g)
		step(-time.Minute)
		if p := next(t, g); p.Worker != 2 {
			t.Errorf("%+v", p)
		}
		step(-time.Minute)
		for range 3 {
			if _, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) || errors.Is(err, keygen.ErrNoWorker) {
				t.Errorf("both are ahead: %v", err)
			}
		}
		step(2*time.Minute + time.Second) // the time of the first one has come
		next(t, g)
		step(-time.Second / 2)
		if p := next(t, g); p.Worker != 1 {
			t.Errorf("%+v", p)
		}
	})
}

// unanswered is an assigner whose database does not answer.
type unanswered struct{}

func (unanswered) Acquire(ctx context.Context, _ keygen.Layout) (keygen.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestASwitchToAWorkerIDThatNobodyAnswersForKeepsNobodyWaiting(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: fresh(1), Now: now, Rollback: []snowflake.Policy{snowflake.SwitchWorker(unanswered{})}})
		next(t, g)
		step(-time.Minute)
		var patient sync.WaitGroup
		for range 2 {
			patient.Go(func() {
				if _, err := g.Next(context.Background()); !errors.Is(err, keygen.ErrClosed) {
					t.Errorf("without a deadline: %v", err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := g.Close(); err != nil || time.Since(begin) > time.Second {
			t.Errorf("closed after %v: %v", time.Since(begin), err)
		}
		patient.Wait()
	})
}

func TestAStartEndsWhenNobodyAnswersThoughItsContextDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := snowflake.New(context.Background(), snowflake.Config{Layout: millennium, Worker: unanswered{}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1m0s") || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// keeping is a lease whose database does not answer when it is released.
type keeping struct{ keygen.Lease }

func (keeping) Release(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

type keepingAssigner struct{ keygen.Assigner }

func (a keepingAssigner) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	lease, err := a.Assigner.Acquire(ctx, l)
	return keeping{lease}, err
}

func TestASwitchWaitsForTheReleaseOfTheOldWorkerIDAsLongAsItsContextAllows(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: keepingAssigner{fresh(1)}, Now: now, Rollback: []snowflake.Policy{snowflake.SwitchWorker(fresh(2))}})
		next(t, g)
		step(-time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if id, err := g.Next(ctx); err != nil || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("%d, %v after %v", id, err, time.Since(begin))
		}
		time.Sleep(5 * time.Second)
		if s := g.Stats(); s.Worker != 2 || !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("%+v", s)
		}
	})
}
