// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// preparedPatience is how long Fence waits for prepared transactions.
const preparedPatience = time.Minute

// unprepared waits until the XA transactions have ended that are prepared now on the shards of slots, if these are of MariaDB. There they
// hold no lock on a fence, because MariaDB releases shared locks when it prepares a transaction, and may commit changes of a
// slot after it was closed. XA RECOVER does not say which tables they have changed.
func (s *Store) unprepared(ctx context.Context, slots []sharding.Slot) error {
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(v.owners(slots)))) {
		b, err := s.fences.shard(ctx, n)
		if err != nil {
			return err
		}
		if b.server.Kind != dialect.KindMariaDB {
			continue
		}
		if err := b.unprepared(ctx); err != nil {
			return fmt.Errorf("shard %d: %w", n, err)
		}
	}
	return nil
}

func (b base) unprepared(ctx context.Context) error {
	known, err := b.prepared(ctx)
	for giveUp := time.Now().Add(preparedPatience); err == nil && len(known) > 0; {
		var now map[string]bool
		if now, err = b.prepared(ctx); err != nil {
			break
		}
		maps.DeleteFunc(known, func(id string, _ bool) bool { return !now[id] })
		switch {
		case len(known) == 0:
			return nil
		case time.Now().After(giveUp):
			return fmt.Errorf("%d transactions have been prepared for more than %v, and may have changed rows of the slots: commit or roll back what XA RECOVER lists, and try again", len(known), preparedPatience)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d prepared transactions, which XA RECOVER lists, may have changed rows of the slots", len(known)), ctx.Err())
		case <-time.After(settlePoll):
		}
	}
	return err
}

// prepared returns the names of the prepared transactions of a server.
func (b base) prepared(ctx context.Context) (all map[string]bool, err error) {
	err = sqlrun.Retry(ctx, nil, func() error {
		all = map[string]bool{}
		return sqlrun.Each(ctx, b.db, func(rows *sql.Rows) error {
			var format, first, second int64
			var data []byte
			err := rows.Scan(&format, &first, &second, &data)
			all[fmt.Sprint(format, first, second, string(data))] = true
			return err
		}, "XA RECOVER")
	})
	return all, err
}
