package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
)

// copies returns the pools that have a copy of each broadcast table: the home pool,
// and those of the router, each once.
func (d *database) copies() []*sql.DB {
	all := []*sql.DB{d.home}
	for _, name := range d.router.Databases() {
		if pool := d.router.DB(name); !slices.Contains(all, pool) {
			all = append(all, pool)
		}
	}
	return all
}

// copy writes every copy of a broadcast table, and returns the result of the one at
// home.
func (c *conn) copy(ctx context.Context, text, table string, args []driver.NamedValue) (driver.Result, error) {
	alone, err := c.spreads(ctx, table)
	if err != nil {
		return nil, err
	}
	all, err := c.results(ctx, c.copied(text, table, args), alone, func(*transaction, []driver.Result) error { return nil })
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// copyRows is copy for a statement that returns rows.
func (c *conn) copyRows(ctx context.Context, text, table string, args []driver.NamedValue) (driver.Rows, error) {
	alone, err := c.spreads(ctx, table)
	if err != nil {
		return nil, err
	}
	all, err := c.returned(ctx, c.copied(text, table, args), alone, func(*transaction, []*heldRows) error { return nil })
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// spreads reports whether nothing else belongs to the transaction of a write to copies.
// Such a write may span databases in every mode, as a broadcast table could not be
// written otherwise; others need that mode. A copy that cannot commit is told by a
// PartialCommitError.
func (c *conn) spreads(ctx context.Context, table string) (alone bool, err error) {
	alone = c.tx == nil || writehint.Of(ctx, table).Single
	if !alone && !c.tx.spans {
		return false, &sharding.RouteError{Op: "write of broadcast table", Table: table, Err: sharding.ErrCrossDatabase,
			Hint: "it is written in every database; write it outside of the transaction, or allow partial commits with sharding.Transactions(sharding.BestEffort)"}
	}
	return alone, nil
}

// copied returns the legs of a write to every copy.
func (c *conn) copied(text, table string, args []driver.NamedValue) []leg {
	pools := c.database.copies()
	legs := make([]leg, len(pools))
	for i, pool := range pools {
		legs[i] = leg{place: i, pool: pool, target: sharding.Target{DB: c.database.shortNameOf(pool), Table: table}, text: text, args: args}
	}
	return legs
}
