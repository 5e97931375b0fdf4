// SPDX-License-Identifier: Apache-2.0

package sqlrun_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/internal/testwait"
)

var (
	errLocked = errors.New("database is locked (5) (SQLITE_BUSY)")
	errBusy   = errors.New("all rows are taken")
	errOther  = errors.New("no such table")
)

// answers is a task that fails with each of the errors in turn.
func answers(errs ...error) (task func() error, runs *int) {
	runs = new(int)
	return func() error {
		*runs++
		return errs[min(*runs, len(errs))-1]
	}, runs
}

func TestATaskIsRetriedAfterAConflictWithAnotherWriter(t *testing.T) {
	for name, c := range map[string]struct {
		busy    error
		answers []error
		runs    int
		want    error
	}{
		"free":                   {nil, []error{nil}, 1, nil},
		"free, with busy":        {errBusy, []error{nil}, 1, nil},
		"locked twice":           {nil, []error{errLocked, errLocked, nil}, 3, nil},
		"busy":                   {errBusy, []error{errBusy, nil}, 2, nil},
		"busy means nothing":     {nil, []error{errBusy, nil}, 1, errBusy},
		"another error":          {errBusy, []error{errOther, nil}, 1, errOther},
		"another error, later":   {errBusy, []error{errLocked, errBusy, errOther}, 3, errOther},
		"an error of the server": {nil, []error{errors.New("Error 1213 (40001): Deadlock found"), nil}, 2, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			task, runs := answers(c.answers...)
			if err := sqlrun.Retry(t.Context(), c.busy, task); !errors.Is(err, c.want) || *runs != c.runs {
				t.Errorf("%s: %v after %d runs", name, err, *runs)
			}
		})
	}
}

func TestALockThatIsNeverReleasedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, runs := answers(errLocked)
		begin := time.Now()
		err := sqlrun.Retry(t.Context(), nil, task)
		if !errors.Is(err, errLocked) || !strings.Contains(err.Error(), "another writer was in the way for 10s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != 10*time.Second || *runs < 80 || *runs > 2500 {
			t.Errorf("%d runs in %v", *runs, took)
		}
	})
}

// A cluster holds a COMMIT back while it finds out that a member has died, and then rolls it back.
func TestATryThatTheServerDelayedLeavesTimeForFurtherTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, runs := answers(errLocked, errLocked, errLocked, nil)
		err := sqlrun.Retry(t.Context(), nil, func() error {
			err := task()
			if *runs == 2 {
				time.Sleep(12 * time.Second)
			}
			return err
		})
		if err != nil || *runs != 4 {
			t.Errorf("%v after %d runs", err, *runs)
		}
	})
}

func TestTriesThatAllTakeLongEndAfterTwiceThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, runs := time.Now(), 0
		err := sqlrun.Retry(t.Context(), nil, func() error {
			runs++
			time.Sleep(6 * time.Second) // as long as a wait for a row's lock
			return errLocked
		})
		if took := time.Since(begin); !errors.Is(err, errLocked) || runs != 4 || took > 25*time.Second {
			t.Errorf("%v after %d runs and %v", err, runs, took)
		}
	})
}

// Two writers that begin together and pause equally long would always conflict.
func TestPausesAreRandom(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			task, _ := answers(errLocked, errLocked, nil)
			begin := time.Now()
			if err := sqlrun.Retry(t.Context(), nil, task); err != nil {
				t.Error(err)
			}
			took := time.Since(begin)
			seen[took] = true
			if took > 90*time.Millisecond {
				t.Errorf("two pauses took %v", took)
			}
		})
	}
	if len(seen) < 10 {
		t.Errorf("the pauses are alike: %v", seen)
	}
}

// group is a row of a cluster whose members all write: a transaction that did not see the last
// commit of another member is refused at its commit. A member that commits directly after its own
// last commit has seen all.
type group struct {
	arrives time.Duration // how long a commit takes to the other members
	mu      sync.Mutex
	member  int
	at      time.Time
}

func (g *group) write(member int) error {
	began := time.Now()
	time.Sleep(time.Millisecond + rand.N(4*time.Millisecond))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.member != member && began.Before(g.at.Add(g.arrives)) {
		return errors.New("Error 3101 (40000): Plugin instructed the server to rollback the current transaction")
	}
	g.member, g.at = member, time.Now()
	return nil
}

// A member does not conflict with its own last commit, so other members rarely get between two of
// its transactions.
func TestNoMemberOfAClusterBlocksTheOthersFromARow(t *testing.T) {
	for name, c := range map[string]struct {
		arrives time.Duration
		gaps    bool
	}{
		"commits arrive soon":                         {2 * time.Millisecond, false},
		"commits arrive late, and writers leave gaps": {5 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, end := &group{arrives: c.arrives}, time.Now().Add(10*time.Minute)
			var all sync.WaitGroup
			for member := range 3 {
				all.Go(func() {
					var gap sqlrun.Gap
					for time.Now().Before(end) {
						err := gap.Wait(t.Context())
						var took time.Duration
						err = errors.Join(err, sqlrun.Retry(t.Context(), nil, func() error {
							began := time.Now()
							defer func() { took = time.Since(began) }()
							return g.write(member)
						}))
						if err != nil {
							t.Errorf("%s: %v", name, err)
						}
						if c.gaps {
							gap.Begin(took)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func TestARetryEndsWithItsContextAndSaysWhatItWaitedFor(t *testing.T) {
	for name, f := range map[string]func(context.Context) error{
		"a task that says what is in the way": func(context.Context) error { return errLocked },
		"a task that notices the end": func() func(context.Context) error {
			task, _ := answers(errLocked, errOther)
			return func(ctx context.Context) error {
				err := task()
				if errors.Is(err, errOther) {
					<-ctx.Done()
				}
				return err
			}
		}(),
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			err := sqlrun.Retry(ctx, nil, func() error { return f(ctx) })
			if !errors.Is(err, errLocked) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(begin))
			}
		})
	}
}

// numbers is a table of one row. Its pool has one connection, so that whatever is
// left open blocks the next statement.
func numbers(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "numbers.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func rows(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(testwait.Context(t), "SELECT COUNT(*) FROM numbers").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestATransactionIsCommittedUnlessItsTaskFails(t *testing.T) {
	db := numbers(t)
	for _, c := range []struct {
		fails error
		rows  int
	}{{errOther, 1}, {nil, 3}, {errOther, 3}} {
		err := sqlrun.InTx(t.Context(), db, nil, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO numbers VALUES (2), (3)"); err != nil {
				t.Error(err)
			}
			return c.fails
		})
		if kept := rows(t, db); !errors.Is(err, c.fails) || kept != c.rows {
			t.Errorf("a task that returns %v: %v, and there are %d rows", c.fails, err, kept)
		}
	}
}

func TestATransactionWhoseContextEndedReturnsOnlyTheContextsError(t *testing.T) {
	db := numbers(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := sqlrun.InTx(ctx, db, nil, func(tx *sql.Tx) error {
		cancel()
		for !errors.Is(tx.Commit(), sql.ErrTxDone) { // database/sql has rolled it back
		}
		return errOther
	})
	if !errors.Is(err, errOther) || errors.Is(err, sql.ErrTxDone) {
		t.Errorf("got %v", err)
	}
	if err := sqlrun.InTx(ctx, db, nil, func(*sql.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestEachRowIsScannedUntilOneFails(t *testing.T) {
	db := numbers(t)
	const three = "SELECT 1 UNION SELECT 2 UNION SELECT ?"
	for _, failing := range []int{0, 2} {
		var got []int
		err := sqlrun.Each(t.Context(), db, func(rows *sql.Rows) error {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			if n == failing {
				return errOther
			}
			got = append(got, n)
			return nil
		}, three, 3)
		if failing == 0 && (err != nil || len(got) != 3) || failing == 2 && (!errors.Is(err, errOther) || len(got) != 1) {
			t.Errorf("failing at %d: %v, %v", failing, got, err)
		}
		if rows(t, db) != 1 { // the connection is free again
			t.Error("rows changed")
		}
	}
	if err := sqlrun.Each(t.Context(), db, nil, "SELECT nothing"); err == nil {
		t.Error("a query that fails succeeded")
	}
}

// refusal is an error of a PostgreSQL server.
type refusal string

func (r refusal) Error() string    { return "SQLSTATE " + string(r) }
func (r refusal) SQLState() string { return string(r) }

// creator answers each statement with the next error.
type creator struct {
	answers []error
	runs    int
}

func (c *creator) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	c.runs++
	return nil, c.answers[c.runs-1]
}

func TestCreateSucceedsIfAnotherProcessCreatesTheTableMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"made":                       {[]error{nil}, nil},
		"in the catalog's index":     {[]error{refusal("23505"), nil}, nil},
		"its type is there":          {[]error{refusal("42710"), nil}, nil},
		"it is there":                {[]error{refusal("42P07"), nil}, nil},
		"another has that name":      {[]error{refusal("42710"), refusal("42710")}, refusal("42710")},
		"something else":             {[]error{refusal("42501")}, refusal("42501")},
		"another writer, then there": {[]error{errLocked, refusal("23505"), errLocked, nil}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &creator{answers: c.answers}
			if err := sqlrun.Create(t.Context(), on, "CREATE TABLE IF NOT EXISTS t"); !errors.Is(err, c.want) || on.runs != len(c.answers) {
				t.Errorf("%s: %v after %d runs", name, err, on.runs)
			}
		})
	}
}
