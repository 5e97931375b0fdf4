// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
)

// mustSay requires an error that says what is wrong and what to do.
func mustSay(t *testing.T, err error, words ...string) {
	t.Helper()
	var setup *keygen.SetupError
	if !errors.As(err, &setup) || setup.Cure == "" || errors.Is(err, keygen.ErrStarved) {
		t.Errorf("not an error that says what to do: %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// tries opens a generator of segments and returns its error and how often the
// database was asked.
func tries(ctx context.Context, source keygen.Source) (n int, err error) {
	g, err := segment.New(ctx, segment.Config{Source: source, Observer: segment.Observer{
		Refill: func(keygen.Span, time.Duration, error) { n++ },
	}})
	if err == nil {
		err = errors.Join(errors.New("it was opened"), g.Close())
	}
	return n, err
}

func TestWhatIsWrongInTheDatabaseFailsAtOnceAndSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		wrong string
		words []string
	}{
		"no table":           {"DROP TABLE leaf_alloc", []string{"no such table: leaf_alloc", "schema.Apply"}},
		"no column":          {"ALTER TABLE leaf_alloc DROP COLUMN update_time", []string{"update_time", "add the column"}},
		"step is 0":          {"UPDATE leaf_alloc SET step = 0", []string{"step is 0", "1 or more"}},
		"step is no number":  {"UPDATE leaf_alloc SET step = 'many'", []string{"leaf_alloc.step", "not a whole number"}},
		"step is NULL":       {nullable + "INSERT INTO leaf_alloc VALUES ('orders', 1, NULL, NULL)", []string{"leaf_alloc.step", "NULL"}},
		"max_id is NULL":     {nullable + "INSERT INTO leaf_alloc VALUES ('orders', NULL, 10, NULL)", []string{"leaf_alloc.max_id", "NULL"}},
		"a tag has two rows": {nullable + "INSERT INTO leaf_alloc VALUES ('orders', 1, 10, NULL), ('orders', 1, 10, NULL)", []string{"primary key"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, store := database(t)
			exec(t, db, c.wrong)
			n, err := tries(t.Context(), store.Tag("orders"))
			mustSay(t, err, c.words...)
			if n != 1 {
				t.Errorf("the database was asked %d times", n)
			}
		})
	}
}

// nullable creates the table again in a form that differs from shardid's.
const nullable = "DROP TABLE leaf_alloc; CREATE TABLE leaf_alloc (biz_tag TEXT, max_id BIGINT, step INT, update_time TIMESTAMP);"

func TestACounterAtTheEndOfItsColumnFailsAtOnce(t *testing.T) {
	db, store := database(t)
	exec(t, db, "UPDATE leaf_alloc SET max_id = 9223372036854775800")
	if n, err := tries(t.Context(), store.Tag("orders")); !errors.Is(err, keygen.ErrExhausted) || n != 1 {
		t.Errorf("asked %d times: %v", n, err)
	}
}

func TestLeasesWorkerIDsAndGuardsSayWhatIsMissingAndWhatToDo(t *testing.T) {
	db, store := database(t)
	e := take(t, store, "a")
	for _, table := range []string{"worker_namespace", "worker_lease", "WORKER_NODE"} {
		exec(t, db, "DROP TABLE "+table)
	}
	_, err := store.Leases().Take(t.Context(), claim("b"))
	mustSay(t, err, "worker_namespace", "schema.Apply")
	_, err = store.Leases().Renew(t.Context(), claim("a"), e)
	mustSay(t, err, "worker_namespace", "schema.Apply")
	mustSay(t, store.Leases().Return(t.Context(), claim("a"), e, e.Ceiling), "worker_lease", "schema.Apply")
	_, err = store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
	mustSay(t, err, "WORKER_NODE", "schema.Apply")
	_, err = store.GuardedTag("orders").Reserve(t.Context(), 1)
	mustSay(t, err, "worker_namespace", "schema.Apply")
}

func TestATableOfAVersionBeforeIsAnErrorWithTheStatementThatMendsIt(t *testing.T) {
	db, store := database(t)
	e := take(t, store, "a")
	exec(t, db, "ALTER TABLE worker_namespace DROP COLUMN layout")
	_, err := store.Leases().Renew(t.Context(), claim("a"), e)
	mustSay(t, err, "schema.Apply", "ALTER TABLE")
	_, err = store.Leases().Take(t.Context(), claim("b"))
	mustSay(t, err, "schema.Apply")
	var setup *keygen.SetupError
	if !errors.As(err, &setup) {
		t.Fatal(err)
	}
	_, statement, _ := strings.Cut(setup.Cure, "run ")
	exec(t, db, statement)
	exec(t, db, "UPDATE worker_lease SET owner = NULL, ceiling = 0") // nobody knows of which layout it was
	take(t, store, "b")
}

// unreachable is a database to which connections fail until the test allows them.
type unreachable struct {
	down   atomic.Bool
	driver driver.Driver
	dsn    string
}

var errRefused = errors.New("connection refused")

func (u *unreachable) Connect(context.Context) (driver.Conn, error) {
	if u.down.Load() {
		return nil, errRefused
	}
	return u.driver.Open(u.dsn)
}

func (u *unreachable) Driver() driver.Driver { return u.driver }

func TestADatabaseThatIsOutOfReachIsAskedWhatItIsAtTheFirstUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	applied(t, db)
	connector := &unreachable{driver: db.Driver(), dsn: file}
	connector.down.Store(true)
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() })
	store, err := sqlstore.New(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := store.Leases().Take(t.Context(), claim("a")); !errors.Is(err, errRefused) {
		t.Errorf("%+v, %v", e, err)
	}
	connector.down.Store(false)
	take(t, store, "a")
	if _, err := store.GuardedTag("none").Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrUnknownTag) {
		t.Errorf("%v", err)
	}
}

// silent is a database whose machine is gone: nothing refuses a connection.
type silent struct{ unreachable }

func (s *silent) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestADatabaseThatDoesNotAnswerKeepsNoProcessFromStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := sql.OpenDB(&silent{})
		defer func() { _ = pool.Close() }()
		begin := time.Now()
		if _, err := sqlstore.New(t.Context(), pool); err != nil || time.Since(begin) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sqlstore.New(ctx, pool); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when its own context ended: %v", err)
		}
	})
}

func TestAPoolThatWasClosedFailsAtOnce(t *testing.T) {
	db, store := database(t)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := tries(t.Context(), store.Tag("orders"))
	mustSay(t, err, "database is closed", "keep the *sql.DB open")
	if n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	_, err = sqlstore.New(t.Context(), db)
	mustSay(t, err, "keep the *sql.DB open")
}

func TestAFileThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	at := func(dsn string) (*sqlstore.Store, error) {
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return sqlstore.New(t.Context(), db)
	}
	_, err := at("file:" + filepath.Join(t.TempDir(), "missing", "app.db"))
	mustSay(t, err, "unable to open", "DSN")

	file := filepath.Join(t.TempDir(), "app.db")
	rw, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	applied(t, rw)
	exec(t, rw, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('orders', 10)")
	if err := rw.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := at("file:" + file + "?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	n, err := tries(t.Context(), store.Tag("orders"))
	mustSay(t, err, "readonly", "mode=ro")
	if n != 1 {
		t.Errorf("the file was asked %d times", n)
	}
}

func TestAStoreThatNewHasNotMadeRefuses(t *testing.T) {
	var store sqlstore.Store
	_, reserved := store.Tag("orders").Reserve(t.Context(), 1)
	_, guarded := store.GuardedTag("orders").Reserve(t.Context(), 1)
	_, worker := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
	_, lease := store.Leases().Take(t.Context(), claim("a"))
	now := time.Now()
	_, numbered := store.Periods().Reserve(t.Context(), "order", "2026", now, now, 1)
	_, unmade := new(sqlstore.Periods).Reserve(t.Context(), "order", "2026", now, now, 1)
	var tinyID sqlstore.TinyID
	_, tiny := tinyID.Reserve(t.Context(), 1)
	_, step := tinyID.Step(t.Context())
	_, listed := store.TagRows(t.Context(), 1)
	if offset, increment := tinyID.Numbering(); offset != 0 || increment != 0 {
		t.Errorf("a TinyID that nobody made counts from %d by %d", offset, increment)
	}
	for name, err := range map[string]error{
		"Tag": reserved, "GuardedTag": guarded, "WorkerNode": worker, "Leases": lease, "Store.Periods": numbered, "Periods": unmade,
		"TinyID.Reserve": tiny, "TinyID.Step": step, "TagRows": listed,
	} {
		if err == nil {
			t.Errorf("%s gave something", name)
			continue
		}
		mustSay(t, err, "db is nil")
	}
	before := time.Now()
	_, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders")})
	mustSay(t, err, "db is nil")
	t.Logf("said after %v", time.Since(before))
}

// A retry does not help against a wrong name.
func TestANameThatNoCounterOfAPeriodCanHaveFailsAtOnce(t *testing.T) {
	_, store := database(t)
	for name, group := range map[string]string{
		"128 at most": "order/" + strings.Repeat("x", 118), "UTF-8": "order/\xff", "NUL": "order/a\x00b",
	} {
		now := time.Now()
		span, err := store.Periods().Reserve(t.Context(), group, "2026", now.Add(-time.Hour), now.Add(time.Hour), 1)
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || span != (keygen.Span{}) {
			t.Errorf("%+v, %v", span, err)
			continue
		}
		mustSay(t, err, name)
	}
	now := time.Now()
	if span, err := store.Periods().Reserve(t.Context(), "order/"+strings.Repeat("é", 117), "2026", now.Add(-time.Hour), now.Add(time.Hour), 1); err != nil || span.First != 1 {
		t.Errorf("%+v, %v", span, err)
	}
}
