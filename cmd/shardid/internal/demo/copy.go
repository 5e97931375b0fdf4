package demo

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/shardid/shardid/sharding"
)

// batchRows is how many rows one transaction of the copy writes.
const batchRows = 4000

// bindLimit keeps statements small: the driver's time for binding grows with
// the square of the number of parameters.
const bindLimit = 128

// copier reads the source in the order of its keys, in one goroutine, and
// writes to each database in another.
type copier struct {
	table   *table
	router  *sharding.Router
	add     func(int64)
	pending map[string]batch // by database, being filled
	writers map[string]chan batch
}

// batch is rows for one database, by their physical table.
type batch struct {
	rows map[string][][]any
	n    int
}

// copyTable copies all rows of t and returns their number.
func copyTable(ctx context.Context, s *source, to *shards, t *table, add func(int64)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &copier{table: t, router: to.router, add: add, pending: map[string]batch{}, writers: map[string]chan batch{}}
	var running sync.WaitGroup
	for name, db := range to.dbs {
		in := make(chan batch, 2)
		c.writers[name] = in
		running.Go(func() {
			if err := c.write(ctx, db, in); err != nil {
				cancel(fmt.Errorf("copy %s to %s: %w", t.name, name, err))
			}
		})
	}
	n, err := c.read(ctx, s)
	for _, in := range c.writers {
		close(in)
	}
	if err != nil {
		cancel(err)
	}
	running.Wait()
	return n, context.Cause(ctx)
}

func (c *copier) read(ctx context.Context, s *source) (int64, error) {
	var n int64
	err := eachRow(ctx, s.tx, len(c.table.columns), func(row []any) error {
		n++
		return c.put(ctx, row)
	}, c.table.selectAll(c.table.name))
	if err != nil {
		return n, err
	}
	for name := range c.pending {
		if err := c.send(ctx, name); err != nil {
			return n, err
		}
	}
	return n, nil
}

// put adds a row to the batch of its database.
func (c *copier) put(ctx context.Context, row []any) error {
	target, err := c.router.Target(c.table.name, row[c.table.byAt])
	if err != nil {
		return err
	}
	b, ok := c.pending[target.DB]
	if !ok {
		b.rows = map[string][][]any{}
	}
	b.rows[target.Table] = append(b.rows[target.Table], row)
	b.n++
	c.pending[target.DB] = b
	if b.n < batchRows {
		return nil
	}
	return c.send(ctx, target.DB)
}

func (c *copier) send(ctx context.Context, name string) error {
	b := c.pending[name]
	delete(c.pending, name)
	select {
	case c.writers[name] <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *copier) write(ctx context.Context, db *sql.DB, in <-chan batch) error {
	for b := range in {
		if err := c.writeBatch(ctx, db, b); err != nil {
			return err
		}
		c.add(int64(b.n))
	}
	return nil
}

// writeBatch writes a batch in one transaction.
func (c *copier) writeBatch(ctx context.Context, db *sql.DB, b batch) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for physical, rows := range b.rows {
		if err := c.insert(ctx, tx, physical, rows); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (c *copier) insert(ctx context.Context, tx *sql.Tx, physical string, rows [][]any) error {
	size := max(1, bindLimit/len(c.table.columns))
	full, err := tx.PrepareContext(ctx, c.table.insertRows(physical, size))
	if err != nil {
		return err
	}
	defer func() { _ = full.Close() }() // its executions told all
	for chunk := range slices.Chunk(rows, size) {
		args := slices.Concat(chunk...)
		if len(chunk) == size {
			_, err = full.ExecContext(ctx, args...)
		} else {
			_, err = tx.ExecContext(ctx, c.table.insertRows(physical, len(chunk)), args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// indexChildren indexes the sharding key where it is not the primary key, after
// the copy, which is faster.
func indexChildren(ctx context.Context, to *shards, t *table) error {
	if t.by == t.key {
		return nil
	}
	for _, target := range to.router.Targets(t.name) {
		if _, err := to.dbs[target.DB].ExecContext(ctx, t.createIndex(target.Table)); err != nil {
			return err
		}
	}
	return nil
}
