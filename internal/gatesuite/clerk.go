package gatesuite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

// clerk writes tickets of one user and knows what must be there.
type clerk struct {
	*Theatre
	user  int64
	owned map[int64]Ticket
}

// open has clerks at work until the returned function is called, which returns
// what must be there.
func (h *Theatre) open(t *testing.T, n int) (closed func() map[int64]Ticket) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	clerks := make([]*clerk, n)
	var all sync.WaitGroup
	for i := range clerks {
		clerks[i] = &clerk{h, int64(i + 1), map[int64]Ticket{}}
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				if err := clerks[i].work(context.WithoutCancel(ctx), random); err != nil {
					t.Errorf("clerk %d: %v", i, err)
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
		for _, c := range clerks {
			maps.Copy(owned, c.owned)
		}
		return owned
	}
}

// more waits until the clerks have done something.
func (h *Theatre) more(t *testing.T) {
	t.Helper()
	for from := h.done.Load(); h.done.Load() < from+100 && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
}

// work makes one change, or reads what was written last.
func (c *clerk) work(ctx context.Context, random *rand.Rand) error {
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

// buy inserts through any shard, or two rows through the handle of theirs.
func (c *clerk) buy(ctx context.Context, n int) error {
	if c.Table.Key == "id" {
		n = 1 // several would be on several databases
	}
	rows := make([]Ticket, n)
	for i := range rows {
		rows[i] = Ticket{UserID: c.user, Note: "new"}
	}
	on := c.Shards()
	if n == 2 {
		s, err := c.For("tickets", c.key(rows[0]))
		if err != nil {
			return err
		}
		on = s
	}
	res, err := c.Insert(ctx, on, "tickets", rows)
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

func (c *clerk) update(ctx context.Context, row Ticket) error {
	s, err := c.For("tickets", c.key(row))
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

func (c *clerk) remove(ctx context.Context, row Ticket) error {
	s, err := c.For("tickets", c.key(row))
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

// check reads a row as it was written last.
func (c *clerk) check(ctx context.Context, row Ticket) error {
	s, err := c.For("tickets", c.key(row))
	if err != nil {
		return err
	}
	var got Ticket
	if err := s.GetContext(ctx, &got, "SELECT id, user_id, note FROM tickets WHERE id = ?", row.ID); err != nil || got != row {
		return fmt.Errorf("row %+v reads as %+v (%w)", row, got, err)
	}
	return nil
}

// exchange puts a new row in the place of another one, in a transaction that is
// run again when the table moves meanwhile.
func (c *clerk) exchange(ctx context.Context, row Ticket) error {
	if c.Table.Key == "id" {
		return nil // the new row may belong into another database
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

func (c *clerk) exchangeOnce(ctx context.Context, old Ticket, fresh *Ticket) error {
	tx, err := c.Begin(ctx, "tickets", c.key(old))
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
