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

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/resultset"
	"github.com/shardid/shardid/sharding/internal/server"
)

// Lookup tables map the values of a column to the sharding keys of their rows: see
// [sharding.Lookup]. Package owner documents the order in which their entries are written. The
// statements that read and write lookup tables are routed like all others.

// mostOwners is the largest number of sharding keys of the values of a query; a query with more goes to all shards.
const mostOwners = 1000

// withLookups returns the plan with the results of lookup tables, or of searches, for the values in its conditions. o is nil if
// there are none.
func (s *session) withLookups(ctx context.Context, p *plan.Plan, args []driver.NamedValue) (found *plan.Plan, o *plan.Owners, err error) {
	inOne := s.tx.staysInOne()
	if !p.Owned && !(inOne && p.Sought) {
		return p, nil, nil
	}
	o = plan.OwnersOf(p, unwrapped(args), sharding.HintOf(ctx), inOne)
	if o == nil {
		return p, nil, nil
	}
	k := lookupAccess{s}
	for i, q := range o.Queries {
		if q.Search != nil {
			if err := (search{s}).owners(ctx, o, i); err != nil {
				return p, nil, err
			}
			continue
		}
		if err := s.database.lookups.check(ctx, s, q.Table, q.Lookup); err != nil {
			return p, nil, err
		}
		keys, known, err := k.owners(ctx, q, inOne || o.Write())
		if err != nil {
			return p, nil, err
		}
		if known {
			o.SetKeys(i, keys)
		}
	}
	return o.Plan(), o, nil
}

// lookupAccess reads and writes lookup tables for a session, inside a transaction or without one.
type lookupAccess struct{ *session }

// owners returns the sharding keys of the rows with these values. known is false if there are too
// many, or if the values lead to no table. A statement that needs them is refused while the table cannot be read.
func (k lookupAccess) owners(ctx context.Context, q plan.LookupQuery, needed bool) (keys []any, known bool, err error) {
	pools, err := byPool(k.database, q.Lookup, q.Values, func(v any) any { return v })
	if needed && isOutdated(err) {
		return nil, false, err
	}
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
	now := d.router.Snapshot()
	_, sharded := now.Lookup(l.Table)
	for _, item := range items {
		at := sharding.Target{Table: l.Table}
		if sharded {
			if at, err = now.Target(l.Table, d.lookups.formed(l, value(item))); err != nil {
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
	b := lookupRunner{caller: k.session}
	if k.tx.has(pool) != nil {
		b.tx = k.tx
	}
	return &owner.SQL{
		Of: of, Now: k.database.router.Snapshot, Lookup: l, Dialect: k.database.server.Dialect, Entries: b, Locks: b.tx != nil,
		On: k.on,
		Absent: func(at sharding.Target, key any) error {
			if joint := b.tx != nil && k.database.poolOrHome(at.DB) == pool; joint {
				return nil
			}
			return k.checkFreed(of, at, key)
		},
		Committed: func(ctx context.Context, at sharding.Target, key any, f func(owner.Runner, bool) error) error {
			freed, err := k.hasFreed(of, at, key)
			if err != nil {
				return err
			}
			return k.onOther(ctx, k.database.poolOrHome(at.DB), func(c shardConn) error { return f(c, freed) })
		},
	}
}

// checkFreed returns an error if the transaction may have taken the value from a row that it does not find, and the lookup
// table is in another database. A rollback would restore the row's value, but would not undo the change of the lookup
// table that relied on the search.
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
	pool := k.database.poolOrHome(at.DB)
	if err != nil || k.tx.has(pool) == nil {
		return false, err
	}
	return slices.ContainsFunc(k.tx.owners.freed, func(f freed) bool { return f.table == of.Name && (f.pool == pool || f.pool == nil && f.slot == slot) }), nil
}

// on calls f with a connection to the target's database. It uses the transaction's connection if
// there is one, which sees the transaction's own rows and does not wait for their locks.
func (k lookupAccess) on(ctx context.Context, at sharding.Target, f func(on owner.Runner, own bool) error) error {
	pool := k.database.poolOrHome(at.DB)
	if in, ok := k.held(pool); ok {
		return f(shardConn{in}, k.tx.has(pool) != nil)
	}
	return k.onOther(ctx, pool, func(c shardConn) error { return f(c, false) })
}

// onOther calls f with another connection than those of the session.
func (k lookupAccess) onOther(ctx context.Context, pool *sql.DB, f func(shardConn) error) error {
	conn, err := k.database.connect(ctx, pool)
	if err != nil {
		return err
	}
	in := inner.Conn{SQL: conn, Kept: &inner.Kept{}}
	return dialect.JoinErrors(f(shardConn{in}), in.Leave())
}

// shardConn is a connection to a database with shards. It is not closed.
type shardConn struct{ inner.Conn }

// Exec executes a text with physical names.
func (c shardConn) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	r, err := c.Conn.Exec(ctx, nil, text, named(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Query returns the rows of a text with physical names.
func (c shardConn) Query(ctx context.Context, text string, args ...any) ([][]driver.Value, error) {
	rows, err := returning()(ctx, c.Conn, participant{text: text, args: named(args)})
	if err != nil {
		return nil, err
	}
	return rows.Rows, nil
}

// lookupRunner executes statements on a lookup table: in the transaction if that has begun on the
// table's database, and separately otherwise.
type lookupRunner struct {
	caller *session
	tx     *transaction
}

// session calls f with an outer connection that uses the caller's connections.
func (b lookupRunner) session(ctx context.Context, f func(context.Context, *conn) error) error {
	c := &conn{session{database: b.caller.database, tx: b.tx, inside: true, home: b.caller.home, lookupConns: b.caller.lookupConns}}
	err := f(sharding.Primary(sharding.AllShards(ctx)), c) // the context's hints concern the caller's statement
	if b.caller.home.SQL == nil {
		err = dialect.JoinErrors(err, c.releaseHome())
	}
	return err
}

// Exec executes a text with the logical name of the table.
func (b lookupRunner) Exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	err = b.session(ctx, func(ctx context.Context, c *conn) error {
		r, err := c.exec(ctx, nil, text, named(args))
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
		rows, err := c.query(ctx, nil, text, named(args))
		if err != nil {
			return err
		}
		kept, err := resultset.Hold(rows, merge.NewMemory(resultset.MostMemory))
		if err == nil {
			all = kept.Rows
		}
		return err
	})
	return all, err
}

// lookups caches which lookup tables were found to match their columns, by their names.
type lookups struct {
	checked sync.Map // of *checkedLookup
	columns sync.Map // the columns of values by the names of the lookup tables, of those that are sharded
}

// checkedLookup is a lookup table that matched its column. That is checked again when one of the tables is altered, and once
// a minute: a description does not have the unique keys of a table of the home database.
type checkedLookup struct {
	tables []*description // of both tables
	age    freshness
}

// formed returns a value in the form in which its column in a lookup table returns it.
func (c *lookups) formed(l *sharding.Lookup, v any) any {
	as, ok := c.columns.Load(l.Table)
	plain, err := proof.Plain(v)
	if !ok || err != nil || plain == nil {
		return v
	}
	form, _ := as.(dialect.Column).Form(plain)
	return form
}

// check refuses a lookup table that compares values differently than the column does, or that does
// not keep unique values unique.
func (c *lookups) check(ctx context.Context, s *session, t *sharding.Table, l *sharding.Lookup) error {
	// Its columns are read now, because a later statement on it may hold connections that others wait for.
	tables, omitted := schemaReader{s, s.database.router.Snapshot()}.described(ctx, []string{t.Name, l.Table})
	as, known := c.checked.Load(l.Table)
	if known = known && slices.Equal(as.(*checkedLookup).tables, tables); known {
		if s.tx.began() || !as.(*checkedLookup).age.claims(maxAge) {
			return nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, renewTimeout)
		defer cancel()
	}
	err := s.lookupFault(ctx, t, l)
	switch {
	case isRefusal(err):
		c.checked.Delete(l.Table)
		return err
	case err != nil && known: // the program may itself hold all connections of a pool
		return nil
	case err == nil && omitted == nil:
		checked := &checkedLookup{tables: tables}
		checked.age.renew()
		c.checked.Store(l.Table, checked)
	}
	return err
}

// createIt is the remedy for a lookup table that does not fit its column.
const createIt = "create it with gormplugin.Migrate, lookups.Create or shardid lookup create"

// opened makes sure that the columns of a table can be read in a transaction. MariaDB leaves a table out of information_schema while
// a statement changes it, such as CREATE TRIGGER, if the reader's transaction has used another table. It waits for the statement
// when the transaction uses the table itself.
func opened(ctx context.Context, s *server.Server, on dialect.Querier, table string) error {
	if s.Name() != "mysql" {
		return nil
	}
	var none int
	err := on.QueryRowContext(ctx, "SELECT 1 FROM "+s.Quote(table)+" LIMIT 0").Scan(&none)
	if errors.Is(err, sql.ErrNoRows) || dialect.FaultOf(err) != dialect.NoFault { // a table that does not exist is reported later
		return nil
	}
	return err
}

// lookupFault returns the refusal of a column that can have no lookup, or not in this lookup table.
func (s *session) lookupFault(ctx context.Context, t *sharding.Table, l *sharding.Lookup) error {
	refused := func(remedy string, why error) error {
		return &sharding.RouteError{Op: "lookup in " + l.Table + " for", Table: t.Name, Column: l.Column, Err: why, Hint: remedy}
	}
	fault := func(remedy, why string, about ...any) error {
		return refused(remedy, fmt.Errorf("%w: %s", sharding.ErrLookup, fmt.Sprintf(why, about...)))
	}
	d := s.database
	of, first := t.Map.Targets()[0], sharding.Target{Table: l.Table}
	sharded, isSharded := d.router.Snapshot().Lookup(l.Table)
	if isSharded {
		first = sharded.Map.Targets()[0]
	}
	row, entry := s.on(d.poolOrHome(of.DB)), s.on(d.poolOrHome(first.DB))
	if err := dialect.JoinErrors(opened(ctx, d.server, row, of.Table), opened(ctx, d.server, entry, first.Table)); err != nil {
		return err
	}
	if err := owner.Sought(ctx, d.server, row, of.Table, l.Column); errors.Is(err, sharding.ErrLookup) {
		return refused("look another column up", err)
	} else if err != nil {
		return err
	}
	unsharded := "declare no sharded table " + l.Table + ", so that it is in the home database"
	for _, column := range []string{l.Column, t.Key} {
		is, found, err := dialect.ReadColumn(ctx, row, d.server, of.Table, column)
		if err == nil && !found {
			err = fmt.Errorf("shardsql: %s has no column %s, or does not exist; create it with gormplugin.Migrate or shardid ddl", of, column)
		}
		if err != nil {
			return err
		}
		as, found, err := dialect.ReadColumn(ctx, entry, d.server, first.Table, column)
		switch {
		case err != nil:
			return err
		case !found:
			return fault(createIt, "%s has no column %s", l.Table, column)
		case is != as:
			return fault(createIt, "column %s is %s in %s and %s in %s, or they have other collations", column, is.Type, t.Name, as.Type, l.Table)
		case isSharded && column == l.Column && is.Collation != "":
			return fault(unsharded, "column %s treats texts of different bytes as equal, and %s is sharded by them", column, l.Table)
		case isSharded && column == l.Column && !columns.Leads(as, sharded.Rule):
			return fault(unsharded, "column %s is %s, whose values do not each lead to one shard of %s", column, is.Type, l.Table)
		case isSharded && column == l.Column:
			d.lookups.columns.Store(l.Table, as)
		}
	}
	key := []string{l.Column, t.Key}
	if l.Unique {
		key = key[:1]
		if has, err := dialect.HasUniqueKey(ctx, row, d.server, of.Table, key...); err != nil {
			return err
		} else if !has {
			return fault("create one on each of them", "column %s has no unique index on the shards", l.Column)
		}
	}
	has, err := dialect.HasUniqueKey(ctx, entry, d.server, first.Table, key...)
	if err == nil && !has {
		err = fault(createIt, "%s has no unique key (%s)", l.Table, strings.ToLower(strings.Join(key, ", ")))
	}
	return err
}
