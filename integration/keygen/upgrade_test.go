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
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
)

// earlier is the ledger of the version that noted no layout (commit f649a89): it runs
// the statements of that version's keygen/sqlstore in their order. At is called
// between them, where a process may be paused.
type earlier struct {
	db *sql.DB
	at func(step string)
}

var _ workerid.Ledger = earlier{}

// conversation is one connection of an earlier process.
type conversation struct {
	*sql.Conn

	server dialect.Server
}

func (s conversation) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.ExecContext(ctx, dialect.Text(s.server, text), args...)
	return err
}

func (s conversation) row(ctx context.Context, text string, args ...any) *sql.Row {
	return s.QueryRowContext(ctx, dialect.Text(s.server, text), args...)
}

func (l earlier) converse(ctx context.Context) (conversation, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return conversation{}, err
	}
	is, err := dialect.Detect(ctx, conn)
	return conversation{conn, is}, err
}

func (l earlier) inTx(ctx context.Context, s conversation, f func() error) (err error) {
	begin := map[string][]string{
		"mysql":    {"COMMIT", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"},
		"postgres": {"BEGIN ISOLATION LEVEL READ COMMITTED"},
		"sqlite":   {"BEGIN IMMEDIATE"},
	}
	for _, text := range begin[s.server.Name()] {
		if err := s.exec(ctx, text); err != nil {
			return err
		}
	}
	if err = f(); err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	if err != nil {
		err = errors.Join(err, s.exec(ctx, "ROLLBACK"))
	}
	return err
}

func (l earlier) present(ctx context.Context, s conversation) (micros int64, err error) {
	text := map[string]string{
		"mysql":    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		"postgres": "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)",
		"sqlite":   "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000",
	}
	return micros, s.row(ctx, text[s.server.Name()]).Scan(&micros)
}

type due struct {
	text string
	args []any
}

// Take runs taking.run of that version. The header is left out: it is about the
// server, not about layouts.
func (l earlier) Take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	s, err := l.converse(ctx)
	if err != nil {
		return e, err
	}
	defer func() { _ = s.Close() }()
	for range 10 {
		var d *due
		err := l.inTx(ctx, s, func() (err error) {
			e, d, err = l.take(ctx, s, c)
			return err
		})
		if err != nil || d == nil {
			return e, err
		}
		l.at("about to add")
		if s.server.Name() == "mysql" {
			d.text += ` ON DUPLICATE KEY UPDATE "namespace" = "namespace"`
		} else {
			d.text += " ON CONFLICT DO NOTHING"
		}
		if err := s.exec(ctx, d.text, d.args...); err != nil {
			return e, err
		}
	}
	return e, errors.New("other processes hold the locks")
}

func (l earlier) take(ctx context.Context, s conversation, c workerid.Claim) (e workerid.Entry, d *due, err error) {
	micros, err := l.present(ctx, s)
	if err != nil {
		return e, nil, err
	}
	epoch, unit := c.Layout.Epoch.UnixMicro(), c.Layout.Unit.Microseconds()
	var counted, counts, safe int64
	err = s.row(ctx, `SELECT "epoch_us", "unit_ns", "safe_from_us" FROM "worker_namespace" WHERE "namespace" = ?`, c.Namespace).Scan(&counted, &counts, &safe)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return e, &due{`INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us")
		VALUES (?, ?, ?, ?, ?, ?)`, []any{c.Namespace, epoch, unit * 1000, "", 0, 0}}, nil
	case err != nil:
		return e, nil, err
	case counted != epoch || counts/1000 != unit:
		return e, nil, fmt.Errorf("%w: namespace %q counts others", keygen.ErrLayout, c.Namespace)
	}
	l.at("looked")
	return l.choose(ctx, s, c, c.Layout.Tick(time.UnixMicro(micros)))
}

func (l earlier) choose(ctx context.Context, s conversation, c workerid.Claim, now int64) (e workerid.Entry, d *due, err error) {
	ids, err := l.free(ctx, s, c, now)
	if err != nil {
		return e, nil, err
	}
	l.at("listed")
	for _, id := range ids {
		how := " FOR UPDATE SKIP LOCKED"
		if s.server.Name() == "sqlite" {
			how = ""
		}
		var owner sql.NullString
		var generation, ceiling int64
		err := s.row(ctx, `SELECT "owner", "generation", "ceiling" FROM "worker_lease"
	WHERE "namespace" = ? AND "worker_id" = ?`+how, c.Namespace, id).Scan(&owner, &generation, &ceiling)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return e, nil, err
		}
		if owner.String != c.Owner && ceiling > now {
			continue
		}
		l.at("locked")
		e = workerid.Entry{Worker: id, Generation: generation + 1, NotBefore: max(now, ceiling)}
		e.Ceiling = max(now+int64(c.Term/c.Layout.Unit), e.NotBefore)
		return e, nil, s.exec(ctx, `UPDATE "worker_lease" SET "owner" = ?, "holder" = ?, "era" = ?, "generation" = ?, "ceiling" = ?
	WHERE "namespace" = ? AND "worker_id" = ? AND "generation" = ?`, c.Owner, c.Holder, 0, e.Generation, e.Ceiling, c.Namespace, id, generation)
	}
	d, err = l.addRows(ctx, s, c)
	return e, d, err
}

func (l earlier) free(ctx context.Context, s conversation, c workerid.Claim, now int64) (ids []int64, err error) {
	rows, err := s.QueryContext(ctx, dialect.Text(s.server, `SELECT "worker_id" FROM "worker_lease"
	WHERE "namespace" = ? AND ("owner" = ? OR "ceiling" <= ? AND "worker_id" <= ?)
	ORDER BY CASE WHEN "owner" = ? THEN 0 WHEN "generation" > 0 THEN 1 ELSE 2 END, "ceiling", "worker_id" LIMIT ?`),
		c.Namespace, c.Owner, now, c.Most, c.Owner, 64)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func (l earlier) addRows(ctx context.Context, s conversation, c workerid.Claim) (*due, error) {
	var first int64
	err := s.row(ctx, `SELECT COALESCE(MAX("worker_id") + 1, 0) FROM "worker_lease" WHERE "namespace" = ?`, c.Namespace).Scan(&first)
	if err != nil {
		return nil, err
	}
	if first > c.Most {
		return nil, keygen.ErrNoWorker
	}
	d := &due{text: `INSERT INTO "worker_lease" ("namespace", "worker_id", "owner", "holder", "era", "generation", "ceiling") VALUES `}
	for id := first; id < first+16 && id <= c.Most; id++ {
		if id > first {
			d.text += ", "
		}
		d.text += "(?, ?, NULL, '', 0, 0, 0)"
		d.args = append(d.args, c.Namespace, id)
	}
	return d, nil
}

// Renew is the method of that version: it compares only owner and generation.
func (l earlier) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	s, err := l.converse(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	err = l.inTx(ctx, s, func() error {
		micros, err := l.present(ctx, s)
		if err != nil {
			return err
		}
		var owner sql.NullString
		var generation int64
		err = s.row(ctx, `SELECT "owner", "generation", "ceiling" FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" = ?`,
			c.Namespace, e.Worker).Scan(&owner, &generation, &ceiling)
		if err != nil {
			return err
		}
		if owner.String != c.Owner || generation != e.Generation {
			return keygen.ErrWorkerLost
		}
		ceiling = max(ceiling, c.Layout.Tick(time.UnixMicro(micros))+int64(c.Term/c.Layout.Unit))
		return s.exec(ctx, `UPDATE "worker_lease" SET "ceiling" = ? WHERE "namespace" = ? AND "worker_id" = ? AND "owner" = ? AND "generation" = ?`,
			ceiling, c.Namespace, e.Worker, c.Owner, e.Generation)
	})
	return ceiling, err
}

// Return is the method of that version.
func (l earlier) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	s, err := l.converse(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	return s.exec(ctx, `UPDATE "worker_lease" SET "owner" = NULL, "ceiling" = ? WHERE "namespace" = ? AND "worker_id" = ? AND "owner" = ? AND "generation" = ?`,
		end, c.Namespace, e.Worker, c.Owner, e.Generation)
}

func nowhere(string) {}

// split returns a layout with these numbers of bits for worker and sequence.
func split(worker, sequence int) keygen.Layout {
	l := keygen.Twitter()
	l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: worker}, {Kind: keygen.Sequence, Bits: sequence}}
	return l
}

func claimOf(owner string, l keygen.Layout) workerid.Claim {
	c := claim(owner)
	c.Layout, c.Most = l, int64(1)<<l.WorkerBits()-1
	return c
}

// before makes the tables as that version did, with the row of the namespace shop
// and, when the worker ids are to have rows, those.
func before(t *testing.T, open database.Opener, rows bool) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db, store := open.Store(t)
	database.Exec(t, db, "ALTER TABLE worker_namespace DROP COLUMN layout")
	if rows {
		old, c := earlier{db, nowhere}, claimOf("seed", split(10, 12))
		e, err := old.Take(t.Context(), c)
		if err == nil {
			err = old.Return(t.Context(), c, e, e.NotBefore)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		database.Exec(t, db, fmt.Sprintf("INSERT INTO worker_namespace (namespace, epoch_us, unit_ns, identity, longest_us, safe_from_us) VALUES ('shop', %d, 1000000, '', 0, 0)",
			keygen.Twitter().Epoch.UnixMicro()))
	}
	return db, store
}

// onEachDatabaseAndMySQL runs a test on all four.
func onEachDatabaseAndMySQL(t *testing.T, test func(t *testing.T, open database.Opener)) {
	t.Helper()
	database.OnEach(t, test)
	t.Run("MySQL", func(t *testing.T) { test(t, database.MySQL(server.RunMySQL(t))) })
}

func TestAStoreOnATableOfAVersionBeforeSaysWhichStatementMendsIt(t *testing.T) {
	onEachDatabaseAndMySQL(t, func(t *testing.T, open database.Opener) {
		db, store := before(t, open, true)
		_, err := store.Leases().Take(t.Context(), claim("a"))
		var setup *keygen.SetupError
		if !errors.As(err, &setup) {
			t.Fatalf("%v", err)
		}
		_, statement, _ := strings.Cut(setup.Cure, "run ")
		database.Exec(t, db, statement)
		take(t, store, "a")
		if err := schema.Apply(t.Context(), db); err != nil {
			t.Error(err)
		}
	})
}

func TestTheDDLRunByHandBringsATableOfAVersionBeforeUpToDate(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (admin, hand *sql.DB, kind string){
		"MariaDB": func(t *testing.T) (admin, hand *sql.DB, kind string) {
			m := server.RunMariaDB(t)
			hand, err := sql.Open("mysql", m.DSN("app")+"?multiStatements=true&sql_mode=%27NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES%27")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hand.Close() })
			return m.Open(t, "app"), hand, "mysql"
		},
		"MySQL": func(t *testing.T) (admin, hand *sql.DB, kind string) {
			m := server.RunMySQL(t)
			hand, err := sql.Open("mysql", m.DSN("app")+"?multiStatements=true")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hand.Close() })
			return m.Open(t, "app"), hand, "mysql"
		},
		"PostgreSQL": func(t *testing.T) (admin, hand *sql.DB, kind string) {
			p := server.RunPostgres(t)
			hand, err := sql.Open("pgx", p.DSN("app")+"?default_query_exec_mode=simple_protocol")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = hand.Close() })
			return p.Open(t, "app"), hand, "postgres"
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, hand, kind := open(t)
			text, err := schema.DDL(kind)
			if err != nil {
				t.Fatal(err)
			}
			database.Prepare(t, db)
			database.Exec(t, db, "ALTER TABLE worker_namespace DROP COLUMN layout")
			for range 2 {
				database.Exec(t, hand, text)
			}
			if layout := database.MustNumber(t, db, "SELECT COUNT(*) FROM worker_namespace WHERE layout = ''"); layout == 0 {
				t.Error("no row has a layout")
			}
		})
	}
}

func TestALeaseInForceOfAVersionBeforeKeepsAnotherLayoutOut(t *testing.T) {
	onEachDatabaseAndMySQL(t, func(t *testing.T, open database.Opener) {
		db, store := before(t, open, true)
		old, c := earlier{db, nowhere}, claimOf("old", split(10, 12))
		e, err := old.Take(t.Context(), c)
		if err == nil {
			err = schema.Apply(t.Context(), db)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []keygen.Layout{split(12, 10), split(10, 12)} {
			_, err := store.Leases().Take(t.Context(), claimOf("new", l))
			if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "host/old") || !strings.Contains(err.Error(), l.Fingerprint()) {
				t.Errorf("%v", err)
			}
		}
		ceiling, err := old.Renew(t.Context(), c, e)
		if err != nil {
			t.Fatal(err)
		}
		if err := old.Return(t.Context(), c, e, ceiling); err != nil { // used up to its end
			t.Fatal(err)
		}
		next, err := store.Leases().Take(t.Context(), claimOf("new", split(12, 10)))
		if err != nil || next.NotBefore <= ceiling {
			t.Fatalf("%+v after %d, %v", next, ceiling, err)
		}
		if e, err := old.Take(t.Context(), c); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("the version before got %+v, %v", e, err)
		}
	})
}

// In each of the places where a process of the version before can be when the first
// new one comes, one of both is refused.
func TestOfAVersionBeforeInTheMidstOfTakingALeaseAndANewOneOneIsRefused(t *testing.T) {
	onEachDatabaseAndMySQL(t, func(t *testing.T, open database.Opener) {
		for _, rows := range []bool{true, false} {
			for _, step := range []string{"looked", "listed", "locked", "about to add"} {
				t.Run(fmt.Sprintf("%s, rows %v", step, rows), func(t *testing.T) { meet(t, open, step, rows) })
			}
		}
	})
}

func meet(t *testing.T, open database.Opener, step string, rows bool) {
	t.Helper()
	db, store := before(t, open, rows)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	defer database.Exec(t, db, "DELETE FROM worker_namespace WHERE namespace = 'shop'")
	defer database.Exec(t, db, "DELETE FROM worker_lease")
	met := false
	var refused error
	old := earlier{open(t), func(at string) {
		if at != step || met {
			return
		}
		met = true
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, refused = store.Leases().Take(ctx, claimOf("new", split(12, 10)))
	}}
	e, err := old.Take(t.Context(), claimOf("old", split(10, 12)))
	if err == nil && met && refused == nil {
		t.Fatalf("both have a lease: %+v", e)
	}
	if err != nil && refused != nil && !errors.Is(refused, context.DeadlineExceeded) { // it may have counted the namespace as its own in time
		t.Errorf("neither has a lease: %v, %v", err, refused)
	}
	if _, again := store.Leases().Take(t.Context(), claimOf("newer", split(12, 10))); (again == nil) != (err != nil) {
		t.Errorf("the version before: %v; the new one later: %v", err, again)
	}
}

// One process of the version before is about to add rows, another about to look for
// them, when the first new one comes.
func TestRowsThatAVersionBeforeWasAboutToAddAreOfNoUseToAnother(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := before(t, open, false)
		if err := schema.Apply(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		once := map[string]bool{}
		at := func(step string, do func()) func(string) {
			return func(at string) {
				if at == step && !once[step] {
					once[step] = true
					do()
				}
			}
		}
		var taken error
		adding := earlier{open(t), at("about to add", func() {
			_, taken = store.Leases().Take(t.Context(), claimOf("new", split(12, 10)))
		})}
		var added error
		looking := earlier{open(t), at("looked", func() {
			_, added = adding.Take(t.Context(), claimOf("adding", split(10, 12)))
		})}
		e, looked := looking.Take(t.Context(), claimOf("looking", split(10, 12)))
		if taken != nil || added == nil || looked == nil || len(once) != 2 {
			t.Errorf("new: %v; about to add: %v; about to look: %+v, %v; %v", taken, added, e, looked, once)
		}
	})
}

// generator of a ledger's worker ids. Ids run ahead of the clock, as far as they may.
func generator(t *testing.T, l workerid.Ledger, layout, former keygen.Layout) (*snowflake.Generator, error) {
	t.Helper()
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "shop", Former: former})
	if err != nil {
		t.Fatal(err)
	}
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: worker, Borrow: borrow})
	if err == nil {
		t.Cleanup(func() { _ = g.Close() })
	}
	return g, err
}

func TestProcessesOfTheVersionBeforeAndNewOnesNeverMakeAnIDTwice(t *testing.T) {
	onEachDatabaseAndMySQL(t, func(t *testing.T, open database.Opener) {
		db, store := before(t, open, true)
		old := earlier{open(t), nowhere}
		narrow, wide := split(10, 12), split(12, 10)
		first, err := generator(t, old, narrow, keygen.Layout{})
		if err == nil {
			err = schema.Apply(t.Context(), db)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids := someIDs(t, first, 20_000)
		if _, err := generator(t, store.Leases(), wide, narrow); !errors.Is(err, keygen.ErrLayout) {
			t.Fatalf("beside one of the version before: %v", err)
		}
		// Processes are upgraded one by one, and then the layout is changed.
		second, err := generator(t, store.Leases(), narrow, narrow)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(append(ids, someIDs(t, first, 20_000)...), someIDs(t, second, 20_000)...)
		if _, err := generator(t, old, narrow, keygen.Layout{}); !errors.Is(err, keygen.ErrLayout) {
			t.Fatalf("another of the version before: %v", err)
		}
		if err := errors.Join(first.Close(), second.Close()); err != nil {
			t.Fatal(err)
		}
		var third *snowflake.Generator
		testwait.Until(t, "the leases of the old layout have ended", func() bool {
			third, err = generator(t, store.Leases(), wide, narrow)
			return !errors.Is(err, keygen.ErrLayout)
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, someIDs(t, third, 20_000)...)
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice, of %d ids", id, len(ids))
		}
	})
}
