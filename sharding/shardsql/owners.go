// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Lookup tables map the values of a column to the sharding keys of their rows: see
// [sharding.Lookup]. Package owner documents the order in which their entries are written. The
// statements that read and write lookup tables are routed like all others.

const (
	mostOwners = 1000   // sharding keys of the values of a query; a query with more goes to all shards
	mostRows   = 10_000 // rows of one write whose values are read before or after it
	// cleanupTimeout limits the time for deleting stale entries after a commit. Entries that remain are
	// harmless.
	cleanupTimeout = time.Second
)

// withLookups returns the plan with the results of lookup tables for the values in its conditions.
func (s *session) withLookups(ctx context.Context, p *plan.Plan, args []driver.NamedValue) (*plan.Plan, error) {
	if !plan.Owned(p) {
		return p, nil
	}
	o := plan.OwnersOf(p, unwrapped(args), sharding.HintOf(ctx))
	if o == nil {
		return p, nil
	}
	k := lookupAccess{s, s.tx}
	for i, q := range o.Queries {
		if err := s.database.lookups.check(ctx, s, q.Table, q.Lookup); err != nil {
			return p, err
		}
		keys, known, err := k.owners(ctx, q)
		if err != nil {
			return p, err
		}
		if known {
			o.SetKeys(i, keys)
		}
	}
	return o.Plan(), nil
}

// writing returns a statement that may write rows.
func (s *session) writing(ctx context.Context, st *statement, p *plan.Plan, to plan.Route, args []driver.NamedValue) (writing, error) {
	w := writing{session: s, of: st, args: args, models: s.models(ctx, p, to, args)}
	if !plan.MayChangeLookups(p) {
		return w, nil
	}
	k, err := plan.LookupChangesOf(p, unwrapped(args), to)
	if err != nil || k == nil {
		return w, err
	}
	for _, kept := range k.Changes {
		if err := s.database.lookups.check(ctx, s, k.Table, kept.Lookup); err != nil {
			return w, err
		}
	}
	w.kept = &lookupWrite{of: k, session: s, args: args, had: make([][]owner.Entry, len(k.Changes))}
	return w, nil
}

// lookupAccess reads and writes lookup tables for a session, inside a transaction or without one.
type lookupAccess struct {
	session *session
	tx      *transaction
}

// owners returns the sharding keys of the rows with these values. known is false if there are too
// many, or if the values lead to no table.
func (k lookupAccess) owners(ctx context.Context, q plan.LookupQuery) (keys []any, known bool, err error) {
	pools, err := byPool(k.session.database, q.Lookup, q.Values, func(v any) any { return v })
	if err != nil {
		return nil, false, nil //nolint:nilerr // all shards are queried for such a value
	}
	for _, of := range pools {
		some, more, err := k.table(q.Table, q.Lookup, of.pool).Owners(ctx, of.items, mostOwners)
		if err != nil || more {
			return nil, false, err
		}
		keys = append(keys, some...)
	}
	return keys, len(keys) <= mostOwners, nil
}

// poolItems has the items that belong to one database with a lookup table, or with a part of it.
type poolItems[T any] struct {
	pool  *sql.DB
	at    string // the physical table
	items []T
}

// byPool groups items by the database and physical table in which the lookup table has their
// values.
func byPool[T any](d *database, l *sharding.Lookup, items []T, value func(T) any) (all []poolItems[T], err error) {
	of, sharded := d.router.Snapshot().Lookup(l.Table)
	for _, item := range items {
		at := sharding.Target{Table: l.Table}
		if sharded {
			if at, err = of.Target(value(item)); err != nil {
				return nil, err
			}
		}
		pool := d.poolOrHome(at.DB)
		i := slices.IndexFunc(all, func(p poolItems[T]) bool { return p.pool == pool && p.at == at.Table })
		if i < 0 {
			i, all = len(all), append(all, poolItems[T]{pool: pool, at: at.Table})
		}
		all[i].items = append(all[i].items, item)
	}
	return all, nil
}

// table returns the part of a lookup table that one database has.
func (k lookupAccess) table(of *sharding.Table, l *sharding.Lookup, pool *sql.DB) *owner.SQL {
	b := lookupRunner{database: k.session.database, home: k.session.home, lookupConns: k.session.lookupConns}
	if k.tx.has(pool) != nil {
		b.tx = k.tx
	}
	return &owner.SQL{
		Of: of, Now: k.session.database.router.Snapshot, Lookup: l, Dialect: k.session.database.server.Dialect, Entries: b, Locks: b.tx != nil,
		On: func(ctx context.Context, at sharding.Target, key any, f func(owner.Shard) error) error {
			if joint := b.tx != nil && k.session.database.poolOrHome(at.DB) == pool; !joint {
				if err := k.checkFreed(of, at, key); err != nil {
					return err
				}
			}
			return k.on(ctx, at, f)
		},
		Committed: func(ctx context.Context, at sharding.Target, key any, f func(owner.Runner, bool) error) error {
			freed, err := k.hasFreed(of, at, key)
			if err != nil {
				return err
			}
			conn, err := k.session.database.connect(ctx, k.session.database.poolOrHome(at.DB))
			if err != nil {
				return err
			}
			in := inner{conn: conn, kept: &kept{}}
			return joinErrors(f(shardConn{in, false}, freed), in.leave())
		},
	}
}

// checkFreed returns an error if the transaction may have taken the value from the row that is about
// to be checked, and the lookup table is in another database. A rollback would restore the row's
// value, but would not undo the change of the lookup table that relied on the check.
func (k lookupAccess) checkFreed(of *sharding.Table, at sharding.Target, key any) error {
	if has, err := k.hasFreed(of, at, key); err != nil || !has {
		return err
	}
	return &sharding.RouteError{Op: "write", Table: of.Name, Err: fmt.Errorf("%w: the transaction may have taken a value from its owner, and a rollback would give it back", sharding.ErrLookup),
		Hint: "commit before another row gets the value"}
}

// hasFreed reports whether the transaction may have taken a value from the row with a key.
func (k lookupAccess) hasFreed(of *sharding.Table, at sharding.Target, key any) (bool, error) {
	slot, err := of.Slot(key)
	pool := k.session.database.poolOrHome(at.DB)
	if err != nil || k.tx.has(pool) == nil {
		return false, err
	}
	return slices.ContainsFunc(k.tx.owners.freed, func(f freed) bool { return f.pool == pool && f.table == of.Name && (f.all || f.slot == slot) }), nil
}

// on calls f with a connection to the target's database. It uses the transaction's connection if
// there is one, which sees the transaction's own rows and does not wait for their locks.
func (k lookupAccess) on(ctx context.Context, at sharding.Target, f func(owner.Shard) error) error {
	pool := k.session.database.poolOrHome(at.DB)
	if b := k.tx.has(pool); b != nil {
		return f(shardConn{b.inner, true})
	}
	in, err := k.session.heldOrNew(ctx, nil, pool)
	if err != nil {
		return err
	}
	if in.kept != nil {
		return f(shardConn{in, false})
	}
	in.kept = &kept{}
	err = f(shardConn{in, false})
	return joinErrors(err, in.leave())
}

// shardConn is a connection to a database with shards. It is not closed.
type shardConn struct {
	inner

	own bool
}

// Own reports whether it is the transaction's connection.
func (c shardConn) Own() bool { return c.own }

// Exec executes a text with physical names.
func (c shardConn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	r, err := c.exec(ctx, nil, text, valued(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Query returns the rows of a text with physical names.
func (c shardConn) Query(ctx context.Context, text string, args ...any) ([][]driver.Value, error) {
	rows, err := returning()(c.inner, ctx, participant{text: text, args: valued(args)})
	if err != nil {
		return nil, err
	}
	return rows.rows, nil
}

func valued(args []any) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, v := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return all
}

// lookupRunner executes statements on a lookup table: in the transaction if that has begun on the
// table's database, and separately otherwise.
type lookupRunner struct {
	database    *database
	tx          *transaction
	home        inner // of the session
	lookupConns map[*sql.DB]inner
}

// session calls f with an outer connection that uses the caller's connections.
func (b lookupRunner) session(ctx context.Context, f func(context.Context, *conn) error) error {
	c := &conn{session{database: b.database, tx: b.tx, home: b.home, lookupConns: b.lookupConns}}
	err := f(sharding.Primary(sharding.AllShards(ctx)), c) // the context's hints concern the caller's statement
	if b.home.conn == nil {
		err = joinErrors(err, c.releaseHome())
	}
	return err
}

// Exec executes a text with the logical name of the table.
func (b lookupRunner) Exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	err = b.session(ctx, func(ctx context.Context, c *conn) error {
		r, err := c.exec(ctx, nil, text, valued(args))
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// Query returns the rows of a text with the logical name of the table.
func (b lookupRunner) Query(ctx context.Context, text string, args ...any) (all [][]driver.Value, err error) {
	err = b.session(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.query(ctx, nil, text, valued(args))
		if err != nil {
			return err
		}
		memory := answerMemory
		kept, err := held(rows, &memory)
		if err == nil {
			all = kept.rows
		}
		return err
	})
	return all, err
}

// lookupWrite is a write for which lookup tables are maintained.
type lookupWrite struct {
	of      *plan.LookupChanges
	session *session
	args    []driver.NamedValue
	had     [][]owner.Entry // for each element of Changes, the entries of the rows before the write
	known   bool            // had is complete
}

// recordingOldValues returns a function that records the present values of the rows, and then calls do.
func recordingOldValues[T any](k *lookupWrite, do func(inner, context.Context, participant) (T, error)) func(inner, context.Context, participant) (T, error) {
	if k == nil {
		return do
	}
	return func(in inner, ctx context.Context, l participant) (none T, err error) {
		if err := k.recordOldValues(ctx, in, l); err != nil {
			return none, err
		}
		return do(in, ctx, l)
	}
}

// recordOldValues records the values of the rows that an UPDATE or DELETE changes.
func (k *lookupWrite) recordOldValues(ctx context.Context, in inner, l participant) error {
	text, args, ok := k.of.Before(l.target, mostRows+1)
	if k.known = ok; !ok {
		return nil
	}
	if k.session.database.server.Name() == "sqlite" { // takes the write lock, so that the rows do not change after they are read
		if err := in.run(ctx, "DELETE FROM "+k.session.database.server.Quote(l.target.Table)+" WHERE 1 = 0"); err != nil {
			return err
		}
	}
	rows, err := returning()(in, ctx, participant{text: text, args: chosen(k.args, args)})
	if err != nil {
		return err
	}
	if len(rows.rows) > mostRows { // some stale entries will remain
		k.known = false
		return nil
	}
	for _, row := range rows.rows {
		for i, value := range row[1:] {
			if value != nil {
				k.had[i] = append(k.had[i], owner.Claimed(value, row[0]))
			}
		}
	}
	return nil
}

// enter inserts the entries of the new values, before the transaction commits.
func (k *lookupWrite) enter(ctx context.Context, t *transaction, participants []participant) error {
	if k == nil {
		return nil
	}
	if err := k.free(t, participants); err != nil {
		return err
	}
	for i, kept := range k.of.Changes {
		entries, err := k.entries(ctx, t, i, participants)
		if err != nil {
			return err
		}
		if err := k.reserve(ctx, t, kept.Lookup, entries); err != nil {
			return err
		}
		for _, e := range k.had[i] {
			if !kept.Sets || textOf(e.Value) != textOf(kept.Set) {
				t.owners.lost = append(t.owners.lost, staleEntry{k.of.Table, kept.Lookup, e})
			}
		}
	}
	return nil
}

// free records the slots whose rows may have lost values.
func (k *lookupWrite) free(t *transaction, participants []participant) error {
	if !k.of.Frees {
		return nil
	}
	for _, l := range participants {
		if !k.known {
			t.owners.freed = append(t.owners.freed, freed{pool: l.pool, table: k.of.Table.Name, all: true})
		}
	}
	for _, had := range k.had {
		for _, e := range had {
			slot, err := k.of.Table.Slot(e.Key)
			if err != nil {
				return err
			}
			at, err := k.of.Table.On(slot)
			if err != nil {
				return err
			}
			t.owners.freed = append(t.owners.freed, freed{pool: k.session.database.poolOrHome(at.DB), table: k.of.Table.Name, slot: slot})
		}
	}
	return nil
}

func textOf(v any) string { return plan.Text([]driver.Value{v}) }

// entries returns the entries that the rows need, without duplicates.
func (k *lookupWrite) entries(ctx context.Context, t *transaction, i int, participants []participant) (all []owner.Entry, err error) {
	kept := k.of.Changes[i]
	seen := map[string]bool{}
	add := func(value, key any) {
		if text := plan.Text([]driver.Value{value, key}); !seen[text] {
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
		if textOf(e.Value) == textOf(kept.Set) {
			seen[plan.Text([]driver.Value{kept.Set, e.Key})] = true
		}
	}
	for _, l := range participants {
		keys, err := (lookupAccess{k.session, t}).table(k.of.Table, kept.Lookup, l.pool).Keys(ctx, shardConn{t.has(l.pool).inner, true}, l.target, kept.Set, mostRows+1)
		if err != nil {
			return nil, err
		}
		if len(keys) > mostRows {
			return nil, &sharding.RouteError{Op: "update", Table: k.of.Table.Name, Column: kept.Lookup.Column,
				Err: fmt.Errorf("%w: more than %d sharding keys have rows with this value", sharding.ErrLookup, mostRows), Hint: "change fewer rows at a time"}
		}
		for _, key := range keys {
			add(kept.Set, key)
		}
	}
	return all, nil
}

// reserve inserts entries into the databases that have the lookup table.
func (k *lookupWrite) reserve(ctx context.Context, t *transaction, l *sharding.Lookup, entries []owner.Entry) error {
	pools, err := byPool(k.session.database, l, entries, func(e owner.Entry) any { return e.Value })
	if err != nil {
		return err
	}
	for _, of := range pools {
		table := lookupAccess{k.session, t}.table(k.of.Table, l, of.pool)
		if err := k.hold(ctx, t, table, of); err != nil {
			return err
		}
		if !table.Locks { // otherwise a rollback undoes it
			for _, e := range of.items {
				t.owners.got = append(t.owners.got, staleEntry{k.of.Table, l, e})
			}
		}
		var stored func(owner.Entry) (bool, error)
		if k.of.Upserts {
			stored = func(e owner.Entry) (bool, error) { return k.isStored(ctx, t, table, e) }
		}
		if err := owner.Reserve(ctx, table, of.items, stored); errors.Is(err, owner.ErrRounded) {
			return &sharding.RouteError{Op: "write", Table: k.of.Table.Name, Column: l.Column, Err: fmt.Errorf("%w: %w", sharding.ErrLookup, err)}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// isStored reports whether a row of the transaction has the value of an entry.
func (k *lookupWrite) isStored(ctx context.Context, t *transaction, table *owner.SQL, e owner.Entry) (bool, error) {
	at, err := k.of.Table.Target(e.Key)
	if err != nil {
		return false, err
	}
	keys, err := table.Keys(ctx, shardConn{t.has(k.session.database.poolOrHome(at.DB)).inner, true}, at, e.Value, 1)
	return len(keys) > 0, err
}

// hold makes other sessions that search for the rows of these entries wait for the transaction. It records which parts of
// the transaction have the entries of which others.
func (k *lookupWrite) hold(ctx context.Context, t *transaction, table *owner.SQL, entries poolItems[owner.Entry]) error {
	keys, entered := map[*begun][]any{}, t.has(entries.pool)
	for _, e := range entries.items {
		at, err := k.of.Table.Target(e.Key)
		if err != nil {
			return err
		}
		b := t.has(k.session.database.poolOrHome(at.DB))
		keys[b] = append(keys[b], e.Key)
		if entered != nil && !slices.Contains(b.entries, entered) {
			b.entries = append(b.entries, entered)
		}
	}
	for _, b := range t.begun {
		if err := table.Hold(ctx, shardConn{b.inner, true}, keys[b]); err != nil {
			return err
		}
	}
	return nil
}

// lookupChanges records what a transaction has changed in lookup tables.
type lookupChanges struct {
	got, lost []staleEntry // entries inserted outside of the transaction, and entries that the rows no longer need
	freed     []freed
}

// staleEntry is an entry that may have no row after the end of a transaction.
type staleEntry struct {
	table  *sharding.Table
	lookup *sharding.Lookup
	entry  owner.Entry
}

// freed is a slot of a table, or all slots of a database, whose rows may have lost values.
type freed struct {
	pool  *sql.DB
	table string
	slot  sharding.Slot
	all   bool
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
			_, err = owner.Release(ctx, lookupAccess{session: t.session}.table(l.table, l.lookup, pools[0].pool), l.entry)
		}
		if err != nil && ctx.Err() != nil {
			return
		}
	}
}

// lookups caches which lookup tables were found to match their columns: the descriptions of both tables
// then, by the names of the lookup tables.
type lookups struct{ checked sync.Map }

// check refuses a lookup table that compares values differently than the column does, or that does
// not keep unique values unique.
func (c *lookups) check(ctx context.Context, s *session, t *sharding.Table, l *sharding.Lookup) error {
	// Its columns are read now, because a later statement on it may hold connections that others wait for.
	tables, omitted := catalog{s, s.database.router.Snapshot()}.described(ctx, []string{t.Name, l.Table})
	if as, ok := c.checked.Load(l.Table); ok && slices.Equal(as.([]*description), tables) {
		return nil
	}
	what, err := s.database.lookupFault(ctx, s, t, l)
	if err != nil {
		return err
	}
	if what != "" {
		hint := "create it with gormplugin.Migrate, lookups.Create or shardid lookup create"
		if what == noUniqueIndex(l) {
			hint = "create one on each of them"
		}
		return &sharding.RouteError{Op: "lookup in " + l.Table + " for", Table: t.Name, Column: l.Column, Err: fmt.Errorf("%w: %s", sharding.ErrLookup, what), Hint: hint}
	}
	if omitted == nil {
		c.checked.Store(l.Table, tables)
	}
	return nil
}

// lookupFault returns the difference between a lookup table and its column, or "".
func (d *database) lookupFault(ctx context.Context, s *session, t *sharding.Table, l *sharding.Lookup) (string, error) {
	snapshot := d.router.Snapshot()
	of, first := t.Map.Targets()[0], sharding.Target{Table: l.Table}
	sharded, isSharded := snapshot.Lookup(l.Table)
	if isSharded {
		first = sharded.Map.Targets()[0]
	}
	row, entry := s.on(d.poolOrHome(of.DB)), s.on(d.poolOrHome(first.DB))
	for _, column := range []string{l.Column, t.Key} {
		is, found, err := dialect.ReadColumn(ctx, row, d.server, of.Table, column)
		if err != nil || !found {
			return "", orMissing(err, of, column)
		}
		as, found, err := dialect.ReadColumn(ctx, entry, d.server, first.Table, column)
		switch {
		case err != nil:
			return "", err
		case !found:
			return fmt.Sprintf("%s has no column %s", l.Table, column), nil
		case is != as:
			return fmt.Sprintf("column %s is %s in %s and %s in %s, or they have other collations", column, is.Type, t.Name, as.Type, l.Table), nil
		case isSharded && column == l.Column && is.Collation != "":
			return fmt.Sprintf("column %s treats texts of different bytes as equal, and %s is sharded by them", column, l.Table), nil
		}
	}
	return d.missingUniqueKey(ctx, row, entry, of, first, t, l)
}

func orMissing(err error, at sharding.Target, column string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("shardsql: %s has no column %s, or does not exist", at, column)
}

func noUniqueIndex(l *sharding.Lookup) string {
	return "column " + l.Column + " has no unique index on the shards"
}

// missingUniqueKey returns the missing unique key, or "".
func (d *database) missingUniqueKey(ctx context.Context, row, entry dialect.Querier, of, first sharding.Target, t *sharding.Table, l *sharding.Lookup) (string, error) {
	want := []string{strings.ToLower(l.Column)}
	if l.Unique {
		keys, err := columns.Unique(ctx, d.server, row, of.Table)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(keys, func(key []string) bool { return slices.Equal(key, want) }) {
			return noUniqueIndex(l), nil
		}
	} else {
		want = append(want, strings.ToLower(t.Key))
	}
	keys, err := columns.Unique(ctx, d.server, entry, first.Table)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(keys, func(key []string) bool { return slices.Equal(key, want) }) {
		return fmt.Sprintf("%s has no unique key (%s)", l.Table, strings.Join(want, ", ")), nil
	}
	return "", nil
}
