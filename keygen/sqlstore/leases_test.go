// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
)

func TestLedgerConformanceOnSQLite(t *testing.T) {
	_, store := database(t)
	keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return store.Leases() })
}

// A file as it is opened without any option: no waiting for locks, and readers
// in the way of every COMMIT.
func TestLedgerConformanceOnSQLiteWithoutOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return applied(t, db).Leases()
	})
}

func TestLedgerConformanceOnSQLiteInMemory(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	store := applied(t, db)
	keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return store.Leases() })
}

func applied(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func claim(owner string) workerid.Claim {
	return workerid.Claim{
		Namespace: "shop", Owner: owner, Holder: "host/" + owner, Most: 3, Term: time.Minute,
		Layout: keygen.Twitter(),
	}
}

func take(t *testing.T, store *sqlstore.Store, owner string) workerid.Entry {
	t.Helper()
	e, err := store.Leases().Take(t.Context(), claim(owner))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAFirstLeaseBeginsAtOnce(t *testing.T) {
	_, store := database(t)
	now := keygen.Twitter().Tick(time.Now())
	if e := take(t, store, "a"); e.NotBefore > now+5000 || e.Ceiling != e.NotBefore+60_000 {
		t.Errorf("at %d: %+v", now, e)
	}
}

func TestAnotherServerTakesAllLeasesAwayAndTheNextBeginTwoTermsLater(t *testing.T) {
	for name, loss := range map[string]string{
		"another identity":   "UPDATE worker_namespace SET identity = 'another' WHERE namespace = ''",
		"a restored backup":  "UPDATE worker_namespace SET identity = '' WHERE namespace = ''", // as the package's comment says
		"the header is gone": "DELETE FROM worker_namespace WHERE namespace = ''",
	} {
		t.Run(name, func(t *testing.T) {
			db, store := database(t)
			kept := take(t, store, "kept")
			lost := take(t, store, "lost")
			exec(t, db, loss)
			exec(t, db, "UPDATE worker_lease SET owner = NULL, generation = 0, ceiling = 0 WHERE owner = 'lost'")
			if ceiling, err := store.Leases().Renew(t.Context(), claim("kept"), kept); !errors.Is(err, keygen.ErrWorkerLost) {
				t.Errorf("renewed before anybody noticed: %d, %v", ceiling, err)
			}
			next := take(t, store, "next")
			// The lost server's clock may have been ahead by a term.
			if next.Worker != lost.Worker || next.NotBefore < lost.Ceiling+60_000 || next.Ceiling != next.NotBefore {
				t.Errorf("%+v after %+v was lost", next, lost)
			}
			if ceiling, err := store.Leases().Renew(t.Context(), claim("kept"), kept); !errors.Is(err, keygen.ErrWorkerLost) {
				t.Errorf("renewed afterwards: %d, %v", ceiling, err)
			}
			if ceiling, err := store.Leases().Renew(t.Context(), claim("next"), next); err != nil || ceiling < next.Ceiling {
				t.Errorf("a lease of the new server: %d, %v", ceiling, err)
			}
		})
	}
}

// A process with a longer term than the one that notices the new server may have
// held the lost lease. The statement is that of the package's comment.
func TestTheLongestTermOfAllDecidesHowLongTheNextServerWaits(t *testing.T) {
	db, store := database(t)
	long := claim("long")
	long.Namespace, long.Term = "other", 10*time.Minute
	if _, err := store.Leases().Take(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE worker_namespace SET identity = '' WHERE namespace = ''")
	now := keygen.Twitter().Tick(time.Now())
	if e := take(t, store, "a"); e.NotBefore < now+2*599_000 {
		t.Errorf("at %d: %+v", now, e)
	}
}

func TestLeasesRefuseClocksThatTheDatabasesWouldBeRoundedFor(t *testing.T) {
	_, store := database(t)
	for name, change := range map[string]func(*keygen.Layout){
		"unit of 1.5 µs":     func(c *keygen.Layout) { c.Unit = 1500 * time.Nanosecond },
		"unit of 100 ns":     func(c *keygen.Layout) { c.Unit = 100 * time.Nanosecond },
		"no unit":            func(c *keygen.Layout) { c.Unit = 0 },
		"epoch with 1 ns":    func(c *keygen.Layout) { c.Epoch = c.Epoch.Add(1) },
		"epoch in next year": func(c *keygen.Layout) { c.Epoch = time.Now().AddDate(1, 0, 0).Truncate(time.Second) },
	} {
		c := claim("a")
		c.Namespace = name
		change(&c.Layout)
		if e, err := store.Leases().Take(t.Context(), c); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestTicksOfAnyUnitAndEpochAreTheLayouts(t *testing.T) {
	_, store := database(t)
	for _, l := range []keygen.Layout{keygen.Twitter(), keygen.Baidu(), keygen.Sonyflake(), {Epoch: time.Date(1950, 1, 1, 0, 0, 0, 1000, time.UTC), Unit: 7 * time.Millisecond}} {
		c := claim("a")
		c.Namespace, c.Layout = l.Unit.String(), l
		before := l.Tick(time.Now().Truncate(time.Millisecond))
		e, err := store.Leases().Take(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if after := l.Tick(time.Now()); e.NotBefore < before || e.NotBefore > after || e.Ceiling-e.NotBefore != int64(c.Term/l.Unit) {
			t.Errorf("%v: %+v, taken from %d to %d", l.Unit, e, before, after)
		}
	}
}

func TestNamesThatTheTablesCannotHoldAreRefused(t *testing.T) {
	_, store := database(t)
	for name, change := range map[string]func(*workerid.Claim){
		"no namespace":     func(c *workerid.Claim) { c.Namespace = "" },
		"long namespace":   func(c *workerid.Claim) { c.Namespace = strings.Repeat("x", 65) },
		"that of segments": func(c *workerid.Claim) { c.Namespace = "leaf_alloc" },
		"that of starts":   func(c *workerid.Claim) { c.Namespace = "WORKER_NODE" },
		"no text":          func(c *workerid.Claim) { c.Namespace = "\xff" },
		"no owner":         func(c *workerid.Claim) { c.Owner = "" },
	} {
		c := claim("a")
		change(&c)
		if e, err := store.Leases().Take(t.Context(), c); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	c := claim("a")
	c.Holder = "\xff" + strings.Repeat("界", 200)
	if _, err := store.Leases().Take(t.Context(), c); err != nil {
		t.Errorf("a long holder: %v", err)
	}
}

func TestLeasesWhoseNamespaceIsGoneAreNotCountedAnew(t *testing.T) {
	db, store := database(t)
	take(t, store, "a")
	exec(t, db, "DELETE FROM worker_namespace WHERE namespace = 'shop'")
	if e, err := store.Leases().Take(t.Context(), claim("b")); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("%+v, %v", e, err)
	}
}

// Somebody takes the rows for a list of dead processes, say, and deletes them.
func TestALeaseWhoseRowWasDeletedIsNotGrantedAgainWithinItsTerm(t *testing.T) {
	for name, deletion := range map[string]string{"all rows": "DELETE FROM worker_lease", "the last rows": "DELETE FROM worker_lease WHERE worker_id > 1"} {
		t.Run(name, func(t *testing.T) {
			db, store := database(t)
			held := map[int64]workerid.Entry{}
			for _, owner := range []string{"a", "b", "c"} {
				e := take(t, store, owner)
				held[e.Worker] = e
			}
			exec(t, db, deletion)
			if ceiling, err := store.Leases().Renew(t.Context(), claim("c"), held[2]); !errors.Is(err, keygen.ErrWorkerLost) || !strings.Contains(err.Error(), "deleted") {
				t.Errorf("a lease without its row was renewed: %d, %v", ceiling, err)
			}
			wider := claim("next")
			wider.Most = 31
			e, err := store.Leases().Take(t.Context(), wider)
			if before, twice := held[e.Worker]; err != nil || twice && e.NotBefore < before.Ceiling {
				t.Errorf("%+v was given while another process has %+v, %v", e, before, err)
			}
			if now := keygen.Twitter().Tick(time.Now()); e.NotBefore > now+5000 {
				t.Errorf("a worker id that nobody had begins at %d: %+v", now, e)
			}
		})
	}
}

func TestWhenAllRowsWereDeletedAllWorkerIDsAreHeldForATerm(t *testing.T) {
	db, store := database(t)
	lost := take(t, store, "a")
	exec(t, db, "DELETE FROM worker_lease")
	if e, err := store.Leases().Take(t.Context(), claim("b")); !errors.Is(err, keygen.ErrNoWorker) || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("%+v, %v", e, err)
	}
	exec(t, db, "UPDATE worker_lease SET ceiling = ceiling - 60000") // a term later
	if e := take(t, store, "b"); e.NotBefore < lost.Ceiling-60_000 {
		t.Errorf("%+v after %+v", e, lost)
	}
}

// The change finds no row with a lease in force.
func TestAChangeOfTheLayoutBeginsAboveLeasesWhoseRowsWereDeleted(t *testing.T) {
	db, store := database(t)
	lost := take(t, store, "a")
	exec(t, db, "DELETE FROM worker_lease")
	next := claim("b")
	next.Former = next.Layout
	next.Layout = keygen.Layout{Epoch: next.Layout.Epoch, Unit: time.Millisecond, Fields: []keygen.Field{
		{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 8}, {Kind: keygen.Sequence, Bits: 14},
	}}
	e, err := store.Leases().Take(t.Context(), next)
	if err != nil || e.NotBefore < lost.Ceiling {
		t.Errorf("%+v after %+v, %v", e, lost, err)
	}
}

func TestWhenAllAreHeldSomeHoldersAreNamed(t *testing.T) {
	_, store := database(t)
	for _, owner := range []string{"a", "b", "c", "d"} {
		take(t, store, owner)
	}
	_, err := store.Leases().Take(t.Context(), claim("e"))
	if !errors.Is(err, keygen.ErrNoWorker) || !strings.Contains(err.Error(), "all 4 worker ids") || !strings.Contains(err.Error(), "by host/a, host/b, host/c, others") {
		t.Errorf("%v", err)
	}
}

func TestSQLitesSettingsAreLeftAsTheyWere(t *testing.T) {
	for name, value := range map[string]int{"busy_timeout": 5000, "synchronous": 1} {
		db, store := database(t)
		db.SetMaxOpenConns(1)
		exec(t, db, fmt.Sprintf("PRAGMA %s = %d", name, value))
		take(t, store, "a")
		var is int
		if err := db.QueryRow("PRAGMA " + name).Scan(&is); err != nil || is != value {
			t.Errorf("%s is %d, %v", name, is, err)
		}
	}
}

func TestReservationsOnAFileWithoutOptionsWaitForEachOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		store := applied(t, db)
		if i == 0 {
			exec(t, db, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('orders', 1)")
		}
		wg.Go(func() {
			for range 10 {
				span, err := store.Tag("orders").Reserve(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[span.First] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 80 {
		t.Errorf("80 reservations gave %d ids", len(seen))
	}
}
