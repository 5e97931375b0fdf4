package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// sqlxTicket is a row of the table that is migrated.
type sqlxTicket struct {
	ID     int64  `db:"id" keygen:""`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

// sqlxTheatre is a source with a table of tickets, by user, that moves to two
// tables on its own server and two on another one.
type sqlxTheatre struct {
	*sqlxhook.Hook
	dbs    sharding.DBs
	router *sharding.Router
	table  sharding.Table
	done   atomic.Int64 // changes and reads
}

func runSqlxTheatre(t *testing.T, near, far interface {
	Open(tb testing.TB, database string) *sql.DB
}) *sqlxTheatre {
	t.Helper()
	h := &sqlxTheatre{dbs: sharding.DBs{"source": near.Open(t, "theatre"), "a": near.Open(t, "theatre_a"), "b": far.Open(t, "theatre_b")}}
	mustExec(t, h.dbs["source"], "CREATE TABLE tickets (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(500) NOT NULL)")
	m, err := sharding.Spread([]string{"a", "b"}, 4, "tickets_%d")
	if err != nil {
		t.Fatal(err)
	}
	h.table = sharding.Table{Name: "tickets", Key: "user_id", Rule: sharding.Low(2), Map: m}
	h.router, err = sharding.New(h.dbs, h.table, sharding.Migration{Source: "source", Tables: map[string]string{"tickets": "id"}, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h.Hook, err = sqlxhook.New(sqlxhook.Config{
		// The source goes on above the highest id after a rollback, far below the
		// next one of this generator.
		Generators: keygen.Set{Default: keygen.Counting(1<<40, 1<<20)},
		Router:     h.router, DriverName: "mysql",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.router.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// sqlxClerk writes tickets of one user and knows what must be there.
type sqlxClerk struct {
	*sqlxTheatre
	user  int64
	owned map[int64]sqlxTicket
}

func (c *sqlxClerk) work(ctx context.Context, random *rand.Rand) error {
	for _, row := range c.owned {
		switch random.IntN(7) {
		case 0:
			return c.update(ctx, row)
		case 1:
			return c.remove(ctx, row)
		case 2, 3:
			return c.check(ctx, row)
		case 4:
			return c.exchange(ctx, row)
		}
		break
	}
	return c.buy(ctx, random.IntN(3)+1)
}

func (c *sqlxClerk) buy(ctx context.Context, n int) error {
	rows := make([]sqlxTicket, n)
	for i := range rows {
		rows[i] = sqlxTicket{UserID: c.user, Note: "new"}
	}
	if _, err := c.Insert(ctx, c.Shards(), "tickets", rows); err != nil {
		return err
	}
	for _, row := range rows {
		c.owned[row.ID] = row
	}
	return nil
}

func (c *sqlxClerk) update(ctx context.Context, row sqlxTicket) error {
	s, err := c.For("tickets", row.UserID)
	if err != nil {
		return err
	}
	row.Note = fmt.Sprintf("%.400s+", row.Note)
	if _, err := c.NamedExec(ctx, s, "UPDATE tickets SET note = :note WHERE id = :id", row); err != nil {
		return err
	}
	c.owned[row.ID] = row
	return nil
}

func (c *sqlxClerk) remove(ctx context.Context, row sqlxTicket) error {
	s, err := c.For("tickets", row.UserID)
	if err != nil {
		return err
	}
	res, err := s.ExecContext(ctx, "DELETE FROM tickets WHERE id = ?", row.ID)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows had id %d (%w)", n, row.ID, err)
	}
	delete(c.owned, row.ID)
	return nil
}

func (c *sqlxClerk) check(ctx context.Context, row sqlxTicket) error {
	s, err := c.For("tickets", row.UserID)
	if err != nil {
		return err
	}
	var got sqlxTicket
	if err := s.GetContext(ctx, &got, "SELECT * FROM tickets WHERE id = ?", row.ID); err != nil || got != row {
		return fmt.Errorf("row %+v reads as %+v (%w)", row, got, err)
	}
	return nil
}

// exchange puts a new row in the place of another one, in a transaction that is
// run again when the table moves meanwhile.
func (c *sqlxClerk) exchange(ctx context.Context, row sqlxTicket) error {
	for {
		fresh := sqlxTicket{UserID: c.user, Note: "exchanged"}
		err := c.exchangeOnce(ctx, row, &fresh)
		if errors.Is(err, sharding.ErrRouteMoved) {
			continue
		}
		if err == nil {
			delete(c.owned, row.ID)
			c.owned[fresh.ID] = fresh
		}
		return err
	}
}

func (c *sqlxClerk) exchangeOnce(ctx context.Context, old sqlxTicket, fresh *sqlxTicket) error {
	tx, err := c.Begin(ctx, "tickets", old.UserID)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "DELETE FROM tickets WHERE id = ?", old.ID); err != nil {
		return err
	}
	if _, err := c.Insert(ctx, tx, "tickets", fresh); err != nil {
		return err
	}
	return tx.Commit()
}

// open has clerks at work until the returned function is called, which returns
// what must be there.
func (h *sqlxTheatre) open(t *testing.T, n int) func() map[int64]sqlxTicket {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	clerks := make([]*sqlxClerk, n)
	var all sync.WaitGroup
	for i := range clerks {
		clerks[i] = &sqlxClerk{h, int64(i + 1), map[int64]sqlxTicket{}}
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				if err := clerks[i].work(context.WithoutCancel(ctx), random); err != nil {
					t.Errorf("clerk %d: %v", i, err)
					return
				}
				h.done.Add(1)
			}
		})
	}
	return func() map[int64]sqlxTicket {
		stop()
		all.Wait()
		owned := map[int64]sqlxTicket{}
		for _, c := range clerks {
			maps.Copy(owned, c.owned)
		}
		return owned
	}
}

// more waits until the clerks have done something.
func (h *sqlxTheatre) more(t *testing.T) {
	t.Helper()
	for from := h.done.Load(); h.done.Load() < from+200 && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
}

// all reads the rows from where they are, and that each is where it belongs.
func (h *sqlxTheatre) all(t *testing.T) map[int64]sqlxTicket {
	t.Helper()
	found := map[int64]sqlxTicket{}
	for _, at := range h.router.Targets("tickets") {
		var rows []sqlxTicket
		if err := sqlx.NewDb(h.dbs[at.DB], "mysql").SelectContext(t.Context(), &rows, "SELECT * FROM "+at.Table); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if _, twice := found[row.ID]; twice {
				t.Errorf("row %d is on two shards", row.ID)
			}
			found[row.ID] = row
			if want, err := h.router.Target("tickets", row.UserID); err != nil || want != at {
				t.Errorf("row %d is on %s, not %s (%v)", row.ID, at, want, err)
			}
		}
	}
	return found
}

func TestSqlxWritersSeeNothingOfAMigrationOnMariaDB(t *testing.T) {
	migrateSqlxTheatre(t, runSqlxTheatre(t, server.RunMariaDB(t), server.RunMariaDB(t)))
}

func TestSqlxWritersSeeNothingOfAMigrationOnMySQL(t *testing.T) {
	one := server.RunMySQL(t)
	migrateSqlxTheatre(t, runSqlxTheatre(t, one, one))
}

// migrateSqlxTheatre migrates there and back while clerks are at work.
func migrateSqlxTheatre(t *testing.T, h *sqlxTheatre) {
	t.Helper()
	j, err := migrate.New(migrate.Config{
		Source: h.dbs["source"], Shards: sharding.DBs{"a": h.dbs["a"], "b": h.dbs["b"]},
		Tables: []migrate.Table{{Table: h.table}}, ChunkRows: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	closed := h.open(t, 4)
	h.more(t)
	must(j.Run(t.Context()))
	for range 2 {
		h.more(t)
		done, err := j.Cutover(t.Context(), longPause)
		must(err)
		t.Logf("cutover: pause %s, %d changes drained", done.Pause, done.Drained)
		h.more(t)
		done, err = j.Rollback(t.Context(), longPause)
		must(err)
		t.Logf("rollback: pause %s, %d changes drained", done.Pause, done.Drained)
		h.more(t)
		must(j.Run(t.Context()))
	}
	_, err = j.Cutover(t.Context(), longPause)
	must(err)
	h.more(t)
	want := closed()
	if got := h.all(t); !maps.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	t.Logf("%d changes and reads, %d rows", h.done.Load(), len(want))
}
