// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Slots close when the transactions that have written to them have ended, because these hold a lock on the fence. But MariaDB
// releases shared locks when it prepares a transaction, and MySQL forgets those of prepared transactions when it is killed. Such a
// transaction may commit later, and its changes would stay on the old shard. Who reads what is not committed finds them in the log.

// haveUnended reports whether the log has changes of the closed slots. If all committed ones were applied before, these are of
// transactions that have not ended.
func (r *rows) haveUnended(ctx context.Context) (is bool, err error) {
	if r.job.Source.Name() != "mysql" {
		return false, nil // PostgreSQL keeps the locks of prepared transactions, and SQLite prepares none
	}
	err = r.job.Source.Do(ctx, func(s *backend.Session) error {
		for _, t := range r.job.Tables {
			if is, err = r.hasUnended(ctx, s, t); is || err != nil {
				return err
			}
		}
		return nil
	})
	return is, err
}

func (r *rows) hasUnended(ctx context.Context, s *backend.Session, t *openjob.Table) (is bool, err error) {
	var ids []int64
	err = uncommitted(ctx, s, func() error {
		ids, err = s.IDs(ctx, fmt.Sprintf("SELECT DISTINCT id FROM %s WHERE tbl = %d", s.Database.Quote(r.job.LogTable()), t.Number))
		return err
	})
	if err != nil {
		return false, err
	}
	key := s.Database.Quote(t.Key)
	for some := range slices.Chunk(ids, comparedAtOnce) {
		find := func() error {
			found, err := s.IDs(ctx, fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s IN (%[3]s) AND %[4]s LIMIT 1", key, s.Database.Quote(t.Name), backend.IDList(some), r.among[t.Number](key)))
			is = is || len(found) > 0
			return err
		}
		// A row may be there before the change, after it, or both.
		if err := find(); err != nil {
			return false, err
		}
		if err := uncommitted(ctx, s, find); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

// uncommitted runs queries that see what is not committed.
func uncommitted(ctx context.Context, s *backend.Session, queries func() error) error {
	if err := s.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"); err != nil {
		return err
	}
	return s.Tx(ctx, queries)
}
