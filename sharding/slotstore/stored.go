// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// storedMap is the map in the database that stores it.
type storedMap struct {
	base
	layout *layout
}

// lock prevents other transactions from changing the map or taking a lease, and returns the map's
// version. It writes the row because that locks on every database.
func (m storedMap) lock(ctx context.Context, t tx) (version int64, err error) {
	err = t.exec(ctx, `UPDATE "shard_map" SET "version" = "version" WHERE "name" = ?`, m.layout.name)
	switch {
	case dialect.FaultOf(err) == dialect.NoTable:
		return 0, m.layout.missing(err)
	case err != nil:
		return 0, err
	}
	var slots int
	err = t.row(ctx, `SELECT "version", "slots" FROM "shard_map" WHERE "name" = ?`, m.layout.name).Scan(&version, &slots)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, m.layout.missing(err)
	case err == nil && slots != m.layout.slots:
		return 0, fmt.Errorf("%w: map %q has %d slots, the rule %d", sharding.ErrStaleMap, m.layout.name, slots, m.layout.slots)
	}
	return version, err
}

// view locks the map and reads it.
func (m storedMap) view(ctx context.Context, t tx) (View, error) {
	version, err := m.lock(ctx, t)
	if err != nil {
		return View{}, err
	}
	v := View{Version: version}
	err = t.each(ctx, func(rows *sql.Rows) error {
		var slot Slot
		if err := rows.Scan(&slot.Slot, &slot.State, &slot.Shard, &slot.Other, &slot.Version); err != nil {
			return err
		}
		v.Slots = append(v.Slots, slot)
		return nil
	}, `SELECT "slot", "state", "shard", "other", "version" FROM "shard_slot" WHERE "name" = ? ORDER BY "slot"`, m.layout.name)
	if err == nil {
		err = m.layout.check(v)
	}
	return v, err
}

// unleased returns a *LeasedError while versions below this one are in use.
func (m storedMap) unleased(ctx context.Context, t tx, version int64) error {
	e := LeasedError{Version: version}
	var micros int64
	present := now(t.server)
	err := t.row(ctx, `SELECT COUNT(*), COALESCE(MAX("expires_us"), 0) - `+present+` FROM "shard_lease" WHERE "name" = ? AND "version" < ? AND "expires_us" > `+present,
		m.layout.name, version).Scan(&e.Holders, &micros)
	if err != nil || e.Holders == 0 {
		return err
	}
	e.Wait = time.Duration(micros) * time.Microsecond
	return &e
}
