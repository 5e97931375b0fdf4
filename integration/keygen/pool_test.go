// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

// patience is how long a call waits: not long where it may be in vain.
func patience(inside bool) time.Duration {
	if inside {
		return 200 * time.Millisecond
	}
	return testwait.Limit
}

// inTime calls with a context that ends after patience. A call that waits for
// something else than its context waits for longer than the test does: for an hour.
func inTime(t *testing.T, patience time.Duration, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(testwait.Context(t), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	return testwait.For(t, ended, "the end of a call whose context has ended")
}

// onEachPool runs a test with pools of one and two connections, beside and
// inside a transaction of the caller that has written something.
func onEachPool(t *testing.T, test func(t *testing.T, db *sql.DB, store *sqlstore.Store, inside bool)) {
	t.Helper()
	each := func(t *testing.T, open database.Opener) {
		for _, size := range []int{1, 2} {
			for _, inside := range []bool{false, true} {
				t.Run(fmt.Sprintf("pool of %d, inside a transaction: %v", size, inside), func(t *testing.T) {
					db, store := open.Store(t)
					db.SetMaxOpenConns(size)
					test(t, db, store, inside)
				})
			}
		}
	}
	t.Run("SQLite", func(t *testing.T) { each(t, database.SQLiteWaiting(t, time.Hour)) })
	database.OnEachServer(t, each)
}

// callersWork is a transaction that has written something, or none.
func callersWork(t *testing.T, db *sql.DB, inside bool) (end func()) {
	t.Helper()
	if !inside {
		return func() {}
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO leaf_alloc (biz_tag, step) VALUES ('the caller''s', 1)"); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// idOrStarved tells whether next gave an id; otherwise it has to be starved.
func idOrStarved(t *testing.T, inside bool, next func(context.Context) (int64, error)) bool {
	t.Helper()
	err := inTime(t, patience(inside), func(ctx context.Context) error {
		for {
			_, err := next(ctx)
			if !errors.Is(err, keygen.ErrStarved) || ctx.Err() != nil || inside {
				return err
			}
		}
	})
	if err != nil && !errors.Is(err, keygen.ErrStarved) {
		t.Errorf("neither an id nor ErrStarved: %v", err)
	}
	return err == nil
}

func TestSegmentsNeverDeadlockWithTheCallersTransaction(t *testing.T) {
	onEachPool(t, func(t *testing.T, db *sql.DB, store *sqlstore.Store, inside bool) {
		g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: 20})
		if err != nil {
			t.Fatal(err)
		}
		end := callersWork(t, db, inside)
		ids := 0
		for range 200 {
			if !idOrStarved(t, inside, g.Next) {
				break
			}
			ids++
		}
		if ids < 20 || ids < 200 && !inside {
			t.Errorf("%d ids", ids)
		}
		end()
		someIDs(t, g, 1) // works again after the transaction
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLeasedSnowflakesNeverDeadlockWithTheCallersTransaction(t *testing.T) {
	onEachPool(t, func(t *testing.T, db *sql.DB, store *sqlstore.Store, inside bool) {
		assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: t.Name()[len(t.Name())-20:], Term: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		g, err := snowflake.New(t.Context(), snowflake.Config{Worker: assigner})
		if err != nil {
			t.Fatal(err)
		}
		end := callersWork(t, db, inside)
		starved := false
		renewed := func() bool { return !inside && g.Stats().Reservations >= 3 }
		for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond && !starved && !renewed(); { // longer than the term
			starved = !idOrStarved(t, inside, g.Next)
		}
		if starved && !inside {
			t.Error("starved without a transaction in the way")
		}
		end()
		someIDs(t, g, 1) // works again after the transaction
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What generators do in the background is bounded as well: each call to the
// store ends with its context.
func TestStoreCallsEndWithTheirContextBesideTheCallersTransaction(t *testing.T) {
	onEachPool(t, func(t *testing.T, db *sql.DB, store *sqlstore.Store, inside bool) {
		c := claim("a")
		c.Namespace = t.Name()[len(t.Name())-20:]
		e, err := store.Leases().Take(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		another := c
		another.Owner = "b"
		defer callersWork(t, db, inside)()
		for name, call := range map[string]func(context.Context) error{
			"reserve": func(ctx context.Context) error { _, err := store.Tag("orders").Reserve(ctx, 1); return err },
			"step":    func(ctx context.Context) error { _, err := store.Tag("orders").(keygen.Stepper).Step(ctx); return err },
			"node": func(ctx context.Context) error {
				_, err := store.WorkerNode("h", "p").Acquire(ctx, keygen.Twitter())
				return err
			},
			"take":   func(ctx context.Context) error { _, err := store.Leases().Take(ctx, another); return err },
			"renew":  func(ctx context.Context) error { _, err := store.Leases().Renew(ctx, c, e); return err },
			"return": func(ctx context.Context) error { return store.Leases().Return(ctx, c, workerid.Entry{}, 1) },
		} {
			err := inTime(t, patience(inside), call)
			switch {
			case err != nil && !inside:
				t.Errorf("%s: %v", name, err)
			case err != nil && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s: %v", name, err)
			case err != nil && db.Stats().MaxOpenConnections == 1 && !strings.Contains(err.Error(), "pool"):
				t.Errorf("%s does not say that the pool is used up: %v", name, err)
			}
		}
	})
}
