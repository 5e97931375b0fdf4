// SPDX-License-Identifier: Apache-2.0

package gatesuite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// worker writes tickets of one user and remembers the expected rows.
type worker struct {
	*Harness
	user  int64
	owned map[int64]Ticket
}

// open runs workers until the returned function is called, which returns the expected rows.
func (h *Harness) open(t *testing.T, n int) (closed func() map[int64]Ticket) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	workers := make([]*worker, n)
	var all sync.WaitGroup
	for i := range workers {
		workers[i] = &worker{h, int64(i + 1), map[int64]Ticket{}}
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				if err := workers[i].work(context.WithoutCancel(ctx), random); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				h.done.Add(1)
				time.Sleep(time.Millisecond) // SQLite's lock is not fair to the job
			}
		})
	}
	return func() map[int64]Ticket {
		stop()
		all.Wait()
		owned := map[int64]Ticket{}
		for _, c := range workers {
			maps.Copy(owned, c.owned)
		}
		return owned
	}
}

// more waits until the workers have made more changes.
func (h *Harness) more(t *testing.T) {
	t.Helper()
	for from := h.done.Load(); h.done.Load() < from+100 && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
}

// work makes one change, or reads the last one.
func (c *worker) work(ctx context.Context, random *rand.Rand) error {
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

// buy inserts one row by name, or several.
func (c *worker) buy(ctx context.Context, n int) error {
	if c.Table.Key == "id" {
		n = 1 // several rows would be on several databases
	}
	rows := make([]Ticket, n)
	for i := range rows {
		rows[i] = Ticket{UserID: c.user, Note: "new"}
	}
	insert := func() (sqlxhook.Result, error) { return c.Insert(ctx, c.DB, "tickets", rows) }
	if n == 2 {
		insert = func() (sqlxhook.Result, error) {
			return c.NamedExec(ctx, c.DB, "INSERT INTO tickets (note, id, user_id) VALUES (:note, :id, :user_id)", rows)
		}
	}
	res, err := insert()
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.ID == 0 || res.IDs[i] != row.ID {
			return fmt.Errorf("row %+v has ids %v", row, res.IDs)
		}
		c.owned[row.ID] = row
	}
	return nil
}

func (c *worker) update(ctx context.Context, row Ticket) error {
	row.Note = fmt.Sprintf("%.400s+", row.Note)
	if _, err := c.NamedExec(ctx, c.DB, "UPDATE tickets SET note = :note WHERE id = :id AND user_id = :user_id", row); err != nil {
		return err
	}
	c.owned[row.ID] = row
	return nil
}

func (c *worker) remove(ctx context.Context, row Ticket) error {
	if err := one(c.DB.NamedExecContext(ctx, "DELETE FROM tickets WHERE id = :id AND user_id = :user_id", row)); err != nil {
		return err
	}
	delete(c.owned, row.ID)
	return nil
}

// one checks that a statement changed one row.
func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows (%w)", n, err)
	}
	return nil
}

// check compares a row with its last write.
func (c *worker) check(ctx context.Context, row Ticket) error {
	var got Ticket
	err := c.DB.GetContext(ctx, &got, c.DB.Rebind("SELECT id, user_id, note FROM tickets WHERE id = ? AND user_id = ?"), row.ID, row.UserID)
	if err != nil || got != row {
		return fmt.Errorf("row %+v reads as %+v (%w)", row, got, err)
	}
	return nil
}

// exchange replaces a row by a new one, in a transaction that is repeated if the table moves
// meanwhile.
func (c *worker) exchange(ctx context.Context, row Ticket) error {
	if c.Table.Key == "id" {
		return nil // the new row may belong to another database
	}
	for {
		fresh := Ticket{UserID: c.user, Note: "exchanged"}
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

func (c *worker) exchangeOnce(ctx context.Context, old Ticket, fresh *Ticket) error {
	tx, err := c.DB.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := one(tx.NamedExecContext(ctx, "DELETE FROM tickets WHERE id = :id AND user_id = :user_id", old)); err != nil {
		return err
	}
	if _, err := c.Insert(ctx, tx, "tickets", fresh); err != nil {
		return err
	}
	return tx.Commit()
}
