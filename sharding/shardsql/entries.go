// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// The entries of a write in lookup tables: those that its rows get are inserted before it, and those that they no longer need
// are deleted after the transaction.

const (
	mostRows = 10_000 // rows of one write whose values are read before or after it
	// cleanupTimeout limits the time for deleting stale entries after a commit. Entries that remain are
	// harmless.
	cleanupTimeout = time.Second
)

// lookupWrite is a write for which lookup tables are maintained.
type lookupWrite struct {
	plan    *plan.LookupChanges
	session *session
	args    []driver.NamedValue
	had     [][]owner.Entry // for each element of Changes, the entries of the rows before the write
	known   bool            // had is complete
}

// recordOldValues records the values of the rows that an UPDATE or DELETE changes.
func (k *lookupWrite) recordOldValues(ctx context.Context, in inner.Conn, l participant) error {
	if k == nil {
		return nil
	}
	text, args, ok := k.plan.Before(l.target, mostRows+1)
	if k.known = ok; !ok {
		return nil
	}
	if k.session.database.server.Name() == "sqlite" { // takes the write lock, so that the rows do not change after they are read
		if err := in.Run(ctx, "DELETE FROM "+k.session.database.server.Quote(l.target.Table)+" WHERE 1 = 0"); err != nil {
			return err
		}
	}
	rows, err := returning()(ctx, in, participant{text: text, args: chosen(k.args, args)})
	if err != nil {
		return err
	}
	if len(rows.Rows) > mostRows { // some stale entries will remain
		k.known = false
		return nil
	}
	for _, row := range rows.Rows {
		for i, value := range row[1:] {
			if value != nil {
				k.had[i] = append(k.had[i], owner.Claimed(value, row[0]))
			}
		}
	}
	return nil
}

// enter inserts the entries of the new values, before the transaction commits. affected is the number of rows that the write
// has affected.
func (k *lookupWrite) enter(ctx context.Context, participants []participant, affected int64) error {
	if k == nil {
		return nil
	}
	if err := k.free(participants); err != nil {
		return err
	}
	owners := &k.session.tx.owners
	for i, kept := range k.plan.Changes {
		entries, err := k.entries(ctx, i, participants, affected)
		if err != nil {
			return err
		}
		if err := k.reserve(ctx, kept.Lookup, entries); err != nil {
			return err
		}
		for _, e := range k.had[i] {
			if !kept.Sets || !k.keeps(e, kept.Set) {
				owners.lost = append(owners.lost, staleEntry{k.plan.Table, kept.Lookup, e})
			}
		}
	}
	return nil
}

// free records the slots whose rows may have lost values.
func (k *lookupWrite) free(participants []participant) error {
	if !k.plan.Frees {
		return nil
	}
	owners := &k.session.tx.owners
	for _, l := range participants {
		if !k.known {
			owners.freed = append(owners.freed, freed{table: k.plan.Table.Name, pool: l.pool})
		}
	}
	for _, had := range k.had {
		for _, e := range had {
			slot, err := k.plan.Table.Slot(e.Key)
			if err != nil {
				return err
			}
			owners.freed = append(owners.freed, freed{table: k.plan.Table.Name, slot: slot})
		}
	}
	return nil
}

// keeps reports whether a row that had an entry's value keeps it when its column is set to a value.
func (k *lookupWrite) keeps(e owner.Entry, set any) bool {
	if k.session.database.server.Name() == "sqlite" && reflect.TypeOf(e.Value) != reflect.TypeOf(set) {
		return false // a column without a type distinguishes 5 from '5'
	}
	return proof.Text([]driver.Value{e.Value}) == proof.Text([]driver.Value{set})
}

// entries returns the entries that the rows need, without duplicates.
func (k *lookupWrite) entries(ctx context.Context, i int, participants []participant, affected int64) (all []owner.Entry, err error) {
	kept := k.plan.Changes[i]
	seen := map[string]bool{}
	add := func(value, key any) {
		if text := proof.Text([]driver.Value{value, key}); !seen[text] {
			seen[text] = true
			all = append(all, owner.Claimed(value, key))
		}
	}
	for _, row := range kept.Rows {
		add(row[0], row[1])
	}
	if !kept.Sets || kept.Set == nil {
		return all, nil
	}
	for _, e := range k.had[i] { // rows that keep their value need no new entry
		if k.keeps(e, kept.Set) {
			seen[proof.Text([]driver.Value{kept.Set, e.Key})] = true
		}
	}
	found := false
	for _, l := range participants {
		keys, err := (lookupAccess{k.session}).table(k.plan.Table, kept.Lookup, l.pool).Keys(ctx, shardConn{k.session.tx.has(l.pool).inner}, l.target, kept.Set, mostRows+1)
		if err != nil {
			return nil, err
		}
		if len(keys) > mostRows {
			return nil, &sharding.RouteError{Op: "update", Table: k.plan.Table.Name, Column: kept.Lookup.Column,
				Err: fmt.Errorf("%w: more than %d sharding keys have rows with this value", sharding.ErrLookup, mostRows), Hint: "change fewer rows at a time"}
		}
		found = found || len(keys) > 0
		for _, key := range keys {
			add(kept.Set, key)
		}
	}
	if !found && affected > 0 {
		return nil, k.rounded(kept.Lookup)
	}
	return all, nil
}

// rounded returns the error of a value that its column does not store unchanged.
func (k *lookupWrite) rounded(l *sharding.Lookup) error {
	return &sharding.RouteError{Op: "write", Table: k.plan.Table.Name, Column: l.Column, Err: fmt.Errorf("%w: %w", sharding.ErrLookup, owner.ErrRounded)}
}

// reserve inserts entries into the databases that have the lookup table.
func (k *lookupWrite) reserve(ctx context.Context, l *sharding.Lookup, entries []owner.Entry) error {
	pools, err := byPool(k.session.database, l, entries, func(e owner.Entry) any { return e.Value })
	if errors.Is(err, sharding.ErrKeyType) || errors.Is(err, sharding.ErrNoSlot) {
		return &sharding.RouteError{Op: "write", Table: k.plan.Table.Name, Column: l.Column, Err: err, Hint: "give it a value that leads to a shard of " + l.Table}
	} else if err != nil {
		return err
	}
	for _, of := range pools {
		table := lookupAccess{k.session}.table(k.plan.Table, l, of.pool)
		if err := k.hold(ctx, table, of); err != nil {
			return err
		}
		if !table.Locks { // otherwise a rollback undoes it
			owners := &k.session.tx.owners
			for _, e := range of.items {
				owners.got = append(owners.got, staleEntry{k.plan.Table, l, e})
			}
		}
		var stored func(owner.Entry) (bool, error)
		if k.plan.Upserts {
			stored = func(e owner.Entry) (bool, error) { return k.isStored(ctx, table, e) }
		}
		if err := owner.Reserve(ctx, table, of.items, stored); errors.Is(err, owner.ErrRounded) {
			return k.rounded(l)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// isStored reports whether a row of the transaction has the value of an entry.
func (k *lookupWrite) isStored(ctx context.Context, table *owner.SQL, e owner.Entry) (bool, error) {
	at, err := k.plan.Table.Target(e.Key)
	if err != nil {
		return false, err
	}
	keys, err := table.Keys(ctx, shardConn{k.session.tx.has(k.session.database.poolOrHome(at.DB)).inner}, at, e.Value, 1)
	return len(keys) > 0, err
}

// hold makes other sessions that search for the rows of these entries wait for the transaction. It records which parts of
// the transaction have the entries of which others.
func (k *lookupWrite) hold(ctx context.Context, table *owner.SQL, entries poolItems[owner.Entry]) error {
	t := k.session.tx
	keys, entered := map[*txPart][]any{}, t.has(entries.pool)
	for _, e := range entries.items {
		at, err := k.plan.Table.Target(e.Key)
		if err != nil {
			return err
		}
		b := t.has(k.session.database.poolOrHome(at.DB))
		keys[b] = append(keys[b], e.Key)
		if entered != nil && !slices.Contains(b.entries, entered) {
			b.entries = append(b.entries, entered)
		}
	}
	for _, b := range t.parts {
		if err := table.Hold(ctx, shardConn{b.inner}, keys[b]); err != nil {
			return err
		}
	}
	return nil
}

// pools returns the databases in which a write will insert entries into lookup tables, in the order
// of compare. A home database without shards is not among them: a session that holds a connection
// to it waits for no other.
func (k *lookupWrite) pools() (all []*sql.DB) {
	if k == nil {
		return nil
	}
	d := k.session.database
	for _, kept := range k.plan.Changes {
		values := []any{kept.Set}
		for _, row := range kept.Rows {
			values = append(values, row[0])
		}
		values = slices.DeleteFunc(values, func(v any) bool { return v == nil })
		pools, err := byPool(d, kept.Lookup, values, func(v any) any { return v })
		if err != nil {
			continue // inserting the entry will return the error
		}
		for _, p := range pools {
			if routerName(d.router, p.pool) != "" && !slices.Contains(all, p.pool) {
				all = append(all, p.pool)
			}
		}
	}
	slices.SortFunc(all, d.comparePools)
	return all
}

// lookupChanges records what a transaction has changed in lookup tables.
type lookupChanges struct {
	got, lost []staleEntry // entries inserted outside of the transaction, and entries that the rows no longer need
	freed     []freed
}

// undo records that the rows of all inserted entries after the first n were undone. The entries are deleted also if the transaction
// commits.
func (c *lookupChanges) undo(n int) {
	c.lost = append(c.lost, c.got[n:]...)
	c.got = c.got[:n]
}

// staleEntry is an entry that may have no row after the end of a transaction.
type staleEntry struct {
	table  *sharding.Table
	lookup *sharding.Lookup
	entry  owner.Entry
}

// freed is a slot of a table, or all slots of a database, whose rows may have lost values.
type freed struct {
	table string
	pool  *sql.DB // nil for one slot
	slot  sharding.Slot
}

// deleteStaleEntries deletes stale entries after the end of the transaction. Entries that it cannot delete in
// time remain: readers find no row by them, and writers replace them.
func (t *transaction) deleteStaleEntries(committed bool) {
	all := t.owners.lost
	if !committed {
		all = append(all, t.owners.got...)
	}
	t.owners = lookupChanges{}
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), cleanupTimeout)
	defer cancel()
	for _, l := range all {
		pools, err := byPool(t.session.database, l.lookup, []owner.Entry{l.entry}, func(e owner.Entry) any { return e.Value })
		if err == nil {
			_, err = owner.Release(ctx, lookupAccess{t.session}.table(l.table, l.lookup, pools[0].pool), l.entry)
		}
		if err != nil && ctx.Err() != nil {
			return
		}
	}
}
