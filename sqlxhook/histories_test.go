// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// faulty is a file of SQLite that fails on request, and checks that each transaction of a
// connection ends once.
type faulty struct {
	file   string
	driver driver.Driver
	after  func() // is called after the first INSERT, if it is set

	mu    sync.Mutex
	fails map[string]bool // BEGIN, EXEC or COMMIT
	traffic
}

// traffic is the statements that a database got.
type traffic struct {
	began, ended, committed, executed int

	wrong []string
}

var errFaulty = errors.New("the database fails")

// do records a statement, and returns an error if this one must fail.
func (f *faulty) do(what string, count *int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails[what] {
		return errFaulty
	}
	*count++
	return nil
}

func (f *faulty) note(wrong string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, wrong)
}

// take returns the events since the last call, and sets the next failure.
func (f *faulty) take(fails map[string]bool) traffic {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.traffic
	f.fails, f.traffic = fails, traffic{}
	return was
}

func (f *faulty) Driver() driver.Driver { return f.driver }

func (f *faulty) Connect(context.Context) (driver.Conn, error) {
	conn, err := f.driver.Open(f.file)
	return &faultyConn{Conn: conn, faulty: f}, err
}

type faultyConn struct {
	driver.Conn
	faulty *faulty
	tx     driver.Tx // nil outside of one
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.tx != nil {
		c.faulty.note("BEGIN in a transaction")
	}
	err := c.faulty.do("BEGIN", &c.faulty.began)
	if err == nil {
		c.tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	}
	return c, err
}

func (c *faultyConn) end() driver.Tx {
	tx := c.tx
	if tx == nil {
		c.faulty.note("an end outside of a transaction")
	}
	c.tx = nil
	_ = c.faulty.do("", &c.faulty.ended)
	return tx
}

// Commit leaves the transaction open when it fails, as SQLite does when it is busy.
func (c *faultyConn) Commit() error {
	if err := c.faulty.do("COMMIT", &c.faulty.committed); err != nil {
		return err
	}
	return c.end().Commit()
}

func (c *faultyConn) Rollback() error { return c.end().Rollback() }

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "INSERT") {
		if err := c.faulty.do("EXEC", &c.faulty.executed); err != nil {
			return nil, err
		}
	}
	res, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if after := c.faulty.after; after != nil && strings.HasPrefix(query, "INSERT") {
		c.faulty.after = nil
		after()
	}
	return res, err
}

// troubled is a hook over two databases that fail from time to time.
type troubled struct {
	*sqlxhook.Hook
	*rand.Rand
	db     *sqlx.DB
	faults map[string]*faulty
	dbs    sharding.DBs
}

func newTroubled(t *testing.T, seed uint64) *troubled {
	t.Helper()
	home := open(t)
	d := &troubled{Rand: rand.New(rand.NewPCG(seed, 9)), faults: map[string]*faulty{}, dbs: sharding.DBs{}}
	for i, name := range []string{"east", "west"} {
		d.faults[name] = &faulty{file: filepath.Join(t.TempDir(), name), driver: home.Driver()}
		d.dbs[name] = sql.OpenDB(d.faults[name])
		t.Cleanup(func() { _ = d.dbs[name].Close() })
		for table := i; table < 4; table += 2 {
			if _, err := d.dbs[name].Exec("CREATE TABLE lines_" + strconv.Itoa(table) + " (id INTEGER PRIMARY KEY, user_id INTEGER)"); err != nil {
				t.Fatal(err)
			}
		}
	}
	router, err := sharding.New(d.dbs, sharding.Transactions(sharding.BestEffort),
		sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Low(2), Map: spread(t, []string{"east", "west"}, "lines_%d")})
	if err != nil {
		t.Fatal(err)
	}
	d.Hook, d.db = routed(t, router, home.DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}})
	return d
}

// spoil makes some of the next statements fail.
func (d *troubled) spoil() {
	for _, f := range d.faults {
		f.take(map[string]bool{"BEGIN": d.IntN(10) == 0, "EXEC": d.IntN(6) == 0, "COMMIT": d.IntN(5) == 0})
	}
}

// ended returns the events on each database, after all connections are released: a goroutine
// releases that of a transaction whose context has ended.
func (d *troubled) ended(t *testing.T) map[string]traffic {
	t.Helper()
	said := map[string]traffic{}
	for name, db := range d.dbs {
		testwait.Until(t, "no connection of "+name+" is in use", func() bool { return db.Stats().InUse == 0 })
		f := d.faults[name].take(nil)
		if f.began != f.ended || f.began > 1 || len(f.wrong) > 0 {
			t.Errorf("%s: %d BEGINs, %d ends, %v", name, f.began, f.ended, f.wrong)
		}
		said[name] = f
	}
	return said
}

// batch inserts rows into several tables, and checks the error.
func (d *troubled) batch(t *testing.T) {
	t.Helper()
	rows := users()
	for range 1 + d.IntN(5) {
		rows = append(rows, line{UserID: 1 + d.Int64N(8)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if d.IntN(8) == 0 {
		cancel()
	}
	_, err := d.Insert(ctx, d.db, "lines", rows)
	var committed, begun []string
	for name, f := range d.ended(t) {
		if f.began > 0 {
			begun = append(begun, name)
		}
		if f.committed > 0 {
			committed = append(committed, name)
		}
	}
	slices.Sort(committed)
	var partly *sharding.PartialCommitError
	switch {
	case errors.As(err, &partly):
		if slices.Sort(partly.Committed); !slices.Equal(partly.Committed, committed) || len(committed) == len(begun) {
			t.Errorf("%v, but %v has committed", err, committed)
		}
	case err != nil && len(committed) > 0, err == nil && len(committed) != len(begun):
		t.Errorf("%v has committed of %v: %v", committed, begun, err)
	}
}

// transaction executes some statements and ends in one of several ways.
func (d *troubled) transaction(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := d.db.BeginTxx(ctx, nil)
	if err != nil {
		d.ended(t)
		return
	}
	for range d.IntN(4) {
		_, _ = d.Insert(t.Context(), tx, "lines", users(5, 1)) // it may fail, and does not end the transaction
	}
	end := d.IntN(4)
	switch end {
	case 0:
		err = tx.Rollback()
	case 1:
		cancel()
		if err = tx.Commit(); err == nil {
			t.Error("a transaction outlived its context")
		}
	default:
		err = tx.Commit()
	}
	_, late := d.Insert(t.Context(), tx, "lines", users(1)) // a context that has ended is noticed in its own time
	if again := tx.Commit(); late == nil && end != 1 || again == nil {
		t.Errorf("after end %d a transaction goes on: %v, %v", end, late, again)
	}
	if west := d.ended(t)["west"]; (west.committed == 1) != (west.began == 1 && err == nil && end > 1) {
		t.Errorf("%d BEGINs, %d COMMITs, %v", west.began, west.committed, err)
	}
}

// TestEachBeginHasOneEndOnItsOwnDatabase executes batches and transactions on databases that fail.
// The number of a failing history repeats it.
func TestEachBeginHasOneEndOnItsOwnDatabase(t *testing.T) {
	histories := 40
	if effort.Race {
		histories = 10
	}
	for seed := range uint64(histories) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d := newTroubled(t, seed)
			for range 50 {
				if d.spoil(); d.IntN(2) == 0 {
					d.batch(t)
				} else {
					d.transaction(t)
				}
			}
		})
	}
}
