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
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Lookup tables say which sharding keys own the values of a column: see
// [sharding.Lookup], and package owner for the order in which they are kept. They are
// asked and written with statements of their own, which are routed as all others are.

const (
	mostOwners = 1000   // keys of some values: a query for more goes to all shards
	mostRows   = 10_000 // rows of one write whose values are read before or after it
	// tidying is how long those that have committed work on entries that nobody needs
	// any more: they do no harm.
	tidying = time.Second
)

// bound returns the plan with what lookup tables say, and where it leads.
func (s *session) bound(ctx context.Context, p *plan.Plan, query string, args []driver.NamedValue) (*plan.Plan, plan.Route, error) {
	led, err := s.led(ctx, p, args)
	if err != nil {
		return p, plan.Route{}, err
	}
	to, err := s.route(ctx, led, query, args)
	return led, to, err
}

// led returns the plan with what lookup tables say of the values in its conditions.
func (s *session) led(ctx context.Context, p *plan.Plan, args []driver.NamedValue) (*plan.Plan, error) {
	if !plan.Owned(p) {
		return p, nil
	}
	o := plan.OwnersOf(p, unwrapped(args), sharding.HintOf(ctx))
	if o == nil {
		return p, nil
	}
	k := keeper{s, s.tx}
	for i, q := range o.Asked {
		if err := s.database.lookups.check(ctx, s, q.Table, q.Lookup); err != nil {
			return p, err
		}
		keys, known, err := k.owners(ctx, q)
		if err != nil {
			return p, err
		}
		if known {
			o.Own(i, keys)
		}
	}
	return o.Plan(), nil
}

// writing returns a statement that may write rows.
func (s *session) writing(ctx context.Context, st *statement, p *plan.Plan, to plan.Route, args []driver.NamedValue) (writing, error) {
	w := writing{session: s, of: st, args: args, models: s.models(ctx, p, to, args)}
	if !plan.Keeps(p) {
		return w, nil
	}
	k, err := plan.KeepingOf(p, unwrapped(args), to)
	if err != nil || k == nil {
		return w, err
	}
	for _, kept := range k.Kept {
		if err := s.database.lookups.check(ctx, s, k.Table, kept.Lookup); err != nil {
			return w, err
		}
	}
	w.kept = &keeping{of: k, session: s, args: args, had: make([][]owner.Entry, len(k.Kept))}
	return w, nil
}

// keeper is who asks and writes lookup tables: a session, in a transaction or in none.
type keeper struct {
	session *session
	tx      *transaction
}

// owners returns the keys that own some values; known is false where there are too many, or
// where nobody knows where to ask.
func (k keeper) owners(ctx context.Context, q plan.Asked) (keys []any, known bool, err error) {
	pools, err := byPool(k.session.database, q.Lookup, q.Values, func(v any) any { return v })
	if err != nil {
		return nil, false, nil //nolint:nilerr // such a value is looked for everywhere
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

// ofPool is what concerns one database with a lookup table, or a part of it.
type ofPool[T any] struct {
	pool  *sql.DB
	at    string // the physical table
	items []T
}

// byPool groups items by where the lookup table has their values.
func byPool[T any](d *database, l *sharding.Lookup, items []T, value func(T) any) (all []ofPool[T], err error) {
	of, sharded := d.router.Snapshot().Lookup(l.Table)
	for _, item := range items {
		at := sharding.Target{Table: l.Table}
		if sharded {
			if at, err = of.Target(value(item)); err != nil {
				return nil, err
			}
		}
		pool := d.poolOrHome(at.DB)
		i := slices.IndexFunc(all, func(p ofPool[T]) bool { return p.pool == pool && p.at == at.Table })
		if i < 0 {
			i, all = len(all), append(all, ofPool[T]{pool: pool, at: at.Table})
		}
		all[i].items = append(all[i].items, item)
	}
	return all, nil
}

// table returns a lookup table as far as one database has it.
func (k keeper) table(of *sharding.Table, l *sharding.Lookup, pool *sql.DB) *owner.SQL {
	b := lookupRunner{database: k.session.database, home: k.session.home, aside: k.session.aside}
	if k.tx.has(pool) != nil {
		b.tx = k.tx
	}
	return &owner.SQL{
		Of: of, Now: k.session.database.router.Snapshot, Lookup: l, Dialect: k.session.database.server.Dialect, Entries: b, Locks: b.tx != nil,
		On: func(ctx context.Context, at sharding.Target, key any, f func(owner.Shard) error) error {
			if joint := b.tx != nil && k.session.database.poolOrHome(at.DB) == pool; !joint {
				if err := k.foreign(of, at, key); err != nil {
					return err
				}
			}
			return k.on(ctx, at, f)
		},
	}
}

// foreign refuses to ask whether a row has its value still, where the transaction may have
// taken it from that row: a rollback would give it back, and not undo what is done on the
// strength of the answer, as the lookup table is in another database.
func (k keeper) foreign(of *sharding.Table, at sharding.Target, key any) error {
	slot, err := of.Slot(key)
	pool := k.session.database.poolOrHome(at.DB)
	if err != nil || k.tx.has(pool) == nil {
		return err
	}
	if !slices.ContainsFunc(k.tx.owners.freed, func(f freed) bool { return f.pool == pool && f.table == of.Name && (f.all || f.slot == slot) }) {
		return nil
	}
	return &sharding.RouteError{Op: "write", Table: of.Name, Err: fmt.Errorf("%w: the transaction may have taken a value from its owner, which has it again after a rollback", sharding.ErrLookup),
		Hint: "commit before another row gets the value"}
}

// on calls f with a connection to the database of a target: that of the transaction, so that
// its own rows are seen and not waited for.
func (k keeper) on(ctx context.Context, at sharding.Target, f func(owner.Shard) error) error {
	pool := k.session.database.poolOrHome(at.DB)
	if b := k.tx.has(pool); b != nil {
		return f(shardConn{b.inner, true})
	}
	in, err := k.session.beside(ctx, nil, pool)
	if err != nil {
		return err
	}
	if in.kept != nil {
		return f(shardConn{in, false})
	}
	in.kept = &kept{}
	err = f(shardConn{in, false})
	return both(err, in.leave())
}

// shardConn is a connection to a database with shards, which stays open.
type shardConn struct {
	inner

	own bool
}

// Own says that it is the transaction's.
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

// lookupRunner sends statements about a lookup table: in the transaction, if it has begun on the
// database of the table, and by themselves otherwise.
type lookupRunner struct {
	database *database
	tx       *transaction
	home     inner // that a session holds
	aside    map[*sql.DB]inner
}

// session calls f with a connection of the database that is as the caller's.
func (b lookupRunner) session(ctx context.Context, f func(context.Context, *conn) error) error {
	c := &conn{session{database: b.database, tx: b.tx, home: b.home, aside: b.aside}}
	err := f(sharding.Primary(sharding.AllShards(ctx)), c) // whatever the context says of the statement
	if b.home.conn == nil {
		err = both(err, c.leaveHome())
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

// keeping is a write on its way, for which lookup tables are kept.
type keeping struct {
	of      *plan.Keeping
	session *session
	args    []driver.NamedValue
	had     [][]owner.Entry // of each of Kept: what rows had before
	known   bool            // had is complete
}

// after returns what notes the values that rows have, and then does what is to be done.
func after[T any](k *keeping, do func(inner, context.Context, participant) (T, error)) func(inner, context.Context, participant) (T, error) {
	if k == nil {
		return do
	}
	return func(in inner, ctx context.Context, l participant) (none T, err error) {
		if err := k.before(ctx, in, l); err != nil {
			return none, err
		}
		return do(in, ctx, l)
	}
}

// before notes the values that rows have which an UPDATE or DELETE changes.
func (k *keeping) before(ctx context.Context, in inner, l participant) error {
	text, args, ok := k.of.Before(l.target, mostRows+1)
	if k.known = ok; !ok {
		return nil
	}
	if k.session.database.server.Name() == "sqlite" { // so that it reads what nobody may change any more
		if err := in.run(ctx, "DELETE FROM "+k.session.database.server.Quote(l.target.Table)+" WHERE 1 = 0"); err != nil {
			return err
		}
	}
	rows, err := returning()(in, ctx, participant{text: text, args: chosen(k.args, args)})
	if err != nil {
		return err
	}
	if len(rows.rows) > mostRows { // some entries are left over
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

// enter enters the values that rows have got, before the transaction commits.
func (k *keeping) enter(ctx context.Context, t *transaction, participants []participant) error {
	if k == nil {
		return nil
	}
	if err := k.free(t, participants); err != nil {
		return err
	}
	for i, kept := range k.of.Kept {
		entries, err := k.entries(ctx, t, i, participants)
		if err != nil {
			return err
		}
		if err := k.reserve(ctx, t, kept.Lookup, entries); err != nil {
			return err
		}
		for _, e := range k.had[i] {
			if !kept.Sets || textOf(e.Value) != textOf(kept.Set) {
				t.owners.lost = append(t.owners.lost, leftover{k.of.Table, kept.Lookup, e})
			}
		}
	}
	return nil
}

// free notes of which slots rows may have lost values.
func (k *keeping) free(t *transaction, participants []participant) error {
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

// entries returns the entries that rows need, each once.
func (k *keeping) entries(ctx context.Context, t *transaction, i int, participants []participant) (all []owner.Entry, err error) {
	kept := k.of.Kept[i]
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
	for _, e := range k.had[i] { // whose value stays
		if textOf(e.Value) == textOf(kept.Set) {
			seen[plan.Text([]driver.Value{kept.Set, e.Key})] = true
		}
	}
	for _, l := range participants {
		keys, err := (keeper{k.session, t}).table(k.of.Table, kept.Lookup, l.pool).Keys(ctx, shardConn{t.has(l.pool).inner, true}, l.target, kept.Set, mostRows+1)
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

// reserve enters entries where the lookup table has them.
func (k *keeping) reserve(ctx context.Context, t *transaction, l *sharding.Lookup, entries []owner.Entry) error {
	pools, err := byPool(k.session.database, l, entries, func(e owner.Entry) any { return e.Value })
	if err != nil {
		return err
	}
	for _, of := range pools {
		table := keeper{k.session, t}.table(k.of.Table, l, of.pool)
		if err := k.hold(ctx, t, table, of.items); err != nil {
			return err
		}
		if !table.Locks { // else a rollback undoes it
			for _, e := range of.items {
				t.owners.got = append(t.owners.got, leftover{k.of.Table, l, e})
			}
		}
		if err := owner.Reserve(ctx, table, of.items); errors.Is(err, owner.ErrRounded) {
			return &sharding.RouteError{Op: "write", Table: k.of.Table.Name, Column: l.Column, Err: fmt.Errorf("%w: %w", sharding.ErrLookup, err)}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// hold has those who look for the rows of these entries wait for the transaction.
func (k *keeping) hold(ctx context.Context, t *transaction, table *owner.SQL, entries []owner.Entry) error {
	keys := map[*begun][]any{}
	for _, e := range entries {
		at, err := k.of.Table.Target(e.Key)
		if err != nil {
			return err
		}
		b := t.has(k.session.database.poolOrHome(at.DB))
		keys[b] = append(keys[b], e.Key)
	}
	for _, b := range t.begun {
		if err := table.Hold(ctx, shardConn{b.inner, true}, keys[b]); err != nil {
			return err
		}
	}
	return nil
}

// ownership is what a transaction has done about lookup tables.
type ownership struct {
	got, lost []leftover // what its rows got, by themselves, and what they had
	freed     []freed
}

// leftover is an entry that may be without a row when a transaction has ended.
type leftover struct {
	table  *sharding.Table
	lookup *sharding.Lookup
	entry  owner.Entry
}

// freed is a slot of a table, or all slots that a database has, of which rows may have lost
// values.
type freed struct {
	pool  *sql.DB
	table string
	slot  sharding.Slot
	all   bool
}

// tidy removes entries that nobody needs, behind the end of the transaction. What is not
// done in time, or fails, is left over: readers find no row by it, and writers replace it.
func (t *transaction) tidy(committed bool) {
	all := t.owners.lost
	if !committed {
		all = append(all, t.owners.got...)
	}
	t.owners = ownership{}
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), tidying)
	defer cancel()
	for _, l := range all {
		pools, err := byPool(t.session.database, l.lookup, []owner.Entry{l.entry}, func(e owner.Entry) any { return e.Value })
		if err == nil {
			_, err = owner.Release(ctx, keeper{session: t.session}.table(l.table, l.lookup, pools[0].pool), l.entry)
		}
		if err != nil && ctx.Err() != nil {
			return
		}
	}
}

// lookups are the lookup tables that were found to be made as their columns are.
type lookups struct{ checked sync.Map } // of their names

// check refuses a lookup table that would not tell the same values for equal as the column
// does, or would not keep them unique.
func (c *lookups) check(ctx context.Context, s *session, t *sharding.Table, l *sharding.Lookup) error {
	if _, done := c.checked.Load(l.Table); done {
		return nil
	}
	what, err := s.database.unlike(ctx, s, t, l)
	if err != nil {
		return err
	}
	if what != "" {
		return &sharding.RouteError{Op: "lookup in " + l.Table + " for", Table: t.Name, Column: l.Column, Err: fmt.Errorf("%w: %s", sharding.ErrLookup, what),
			Hint: "make it by gormplugin.Migrate, lookups.Create or shardid lookup create"}
	}
	// Its columns are read now: a statement about it may hold connections that others wait for.
	s.database.schema(ctx, s.database.server, s.database.router.Snapshot(), []string{l.Table}, s.on)
	c.checked.Store(l.Table, true)
	return nil
}

// unlike returns what is wrong with a lookup table, or "".
func (d *database) unlike(ctx context.Context, s *session, t *sharding.Table, l *sharding.Lookup) (string, error) {
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
			return fmt.Sprintf("column %s takes texts of different bytes for equal, and %s is sharded by them", column, l.Table), nil
		}
	}
	return d.unkept(ctx, row, entry, of, first, t, l)
}

func orMissing(err error, at sharding.Target, column string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("shardsql: %s has no column %s, or does not exist", at, column)
}

// unkept returns which unique key is missing, or "".
func (d *database) unkept(ctx context.Context, row, entry dialect.Querier, of, first sharding.Target, t *sharding.Table, l *sharding.Lookup) (string, error) {
	want := []string{strings.ToLower(l.Column)}
	if l.Unique {
		keys, err := unique(ctx, d.server, row, of.Table)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(keys, func(key []string) bool { return slices.Equal(key, want) }) {
			return fmt.Sprintf("column %s is unique on no shard; make a unique index on it in each", l.Column), nil
		}
	} else {
		want = append(want, strings.ToLower(t.Key))
	}
	keys, err := unique(ctx, d.server, entry, first.Table)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(keys, func(key []string) bool { return slices.Equal(key, want) }) {
		return fmt.Sprintf("%s has no unique key (%s)", l.Table, strings.Join(want, ", ")), nil
	}
	return "", nil
}
