// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/server"
)

// schemas caches the columns of tables, by logical names in lower case. Each statement that names an
// unknown table reads its columns itself. A statement that waits for a connection to read them must
// not block a transaction that holds the connection.
type schemas struct{ tables sync.Map } // of *description

// description is what was read about the columns of a table. Tables are altered while programs run,
// so it is read again when it is older than maxAge. If it then differs, a new description replaces it,
// and all plans that depend on the old one are made again.
type description struct {
	located

	table catalog.Table
	read  freshness // altered after another description has replaced this one
}

// located is a table whose columns are read, and where.
type located struct {
	name string // in lower case
	// written is the name in a statement. MySQL and MariaDB may find a table only by its capital letters, and PostgreSQL one whose
	// name was quoted.
	written string
	at      sharding.Target
}

const (
	maxAge       = time.Minute
	refusedAge   = 10 * time.Second // before a statement is refused
	renewTimeout = time.Second
	altered      = math.MinInt64 // of freshness
)

var epoch = time.Now() // for monotonic times

// freshness is the time of the last reading of something, since the epoch, or altered.
type freshness struct{ atomic.Int64 }

func (f *freshness) renew() { f.Store(int64(time.Since(epoch))) }

// claims reports whether the caller must read it again; other callers then use it for another while.
func (f *freshness) claims(age time.Duration) bool {
	read, now := f.Load(), int64(time.Since(epoch))
	return read != altered && now-read >= int64(age) && f.CompareAndSwap(read, now)
}

// schemaReader reads, for a session, the columns of the tables of a snapshot.
type schemaReader struct {
	*session

	snapshot *sharding.Snapshot
}

// described returns the descriptions of some tables. It omits a table that does not exist or cannot be
// read, and returns the reason. The table may be created later.
func (c schemaReader) described(ctx context.Context, names []string) (found []*description, omitted error) {
	for _, written := range names {
		name := strings.ToLower(written)
		t, at := c.database.schemas.of(name), c.physical(name)
		switch moved := t != nil && t.at != at && at != (sharding.Target{}); {
		case t == nil || moved:
			var err error
			if t, err = c.lookAnywhere(ctx, located{name, written, at}); err != nil {
				omitted = dialect.JoinErrors(omitted, err)
				continue
			}
			_ = c.compareShards(ctx, t) // again after a minute, with databases that do not answer now
			c.database.schemas.keep(t)
		case c.altered(ctx, []*description{t}, maxAge):
			t = c.database.schemas.of(name)
		}
		found = append(found, t)
	}
	return found, omitted
}

// physical returns the table whose columns are read: for a sharded table the first one, because
// all have the same columns. It is zero while no route of the table is known.
func (c schemaReader) physical(name string) sharding.Target {
	t, sharded := c.snapshot.Lookup(name)
	if !sharded {
		return sharding.Target{Table: name}
	}
	if targets := t.Map.Targets(); len(targets) > 0 {
		return targets[0]
	}
	return sharding.Target{}
}

// altered reports whether one of the tables is no longer as described. It reads a table again whose
// description has an age. It reads nothing in a transaction, which may hold the connections that
// others need.
func (c schemaReader) altered(ctx context.Context, tables []*description, age time.Duration) (is bool) {
	for _, t := range tables {
		if !c.tx.began() && t.read.claims(age) {
			c.renew(ctx, t)
		}
		is = is || t.read.Load() == altered
	}
	return is
}

// renew replaces a description if the table is different now. It keeps one that cannot be read again in
// time: the program may itself hold all connections of the pool, for rows that it reads.
func (c schemaReader) renew(ctx context.Context, t *description) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	now, err := c.look(ctx, t.located)
	if err == nil {
		err = c.compareShards(ctx, now)
	}
	if err == nil && !reflect.DeepEqual(now.table, t.table) {
		c.database.schemas.keep(now)
		t.read.Store(altered)
	}
}

func schemaOf(tables []*description) catalog.Schema {
	s := make(catalog.Schema, len(tables))
	for _, t := range tables {
		s[t.name] = t.table
	}
	return s
}

// of returns the description of a table, nil if there is none.
func (s *schemas) of(table string) *description {
	known, _ := s.tables.Load(table)
	t, _ := known.(*description)
	return t
}

func (s *schemas) keep(t *description) { s.tables.Store(t.name, t) }

// lookAnywhere is look, but while the database of the table does not answer it reads the columns in another database:
// an outage of one does not prevent statements for the others. It asks the next one when the last one cannot be reached, or has not
// answered for a while, and takes the first answer: a database may only be slow.
func (c schemaReader) lookAnywhere(ctx context.Context, of located) (*description, error) {
	t, sharded := c.snapshot.Lookup(of.name)
	if !sharded {
		return c.look(ctx, of)
	}
	all := []sharding.Target{of.at}
	for _, at := range t.Map.Targets() {
		if !slices.ContainsFunc(all, func(other sharding.Target) bool { return other.DB == at.DB }) {
			all = append(all, at)
		}
	}
	stoppable, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer stop()
	type answer struct {
		*description

		err error
		at  sharding.Target
	}
	answers := make(chan answer, len(all))
	ask := func(at sharding.Target) {
		on := stoppable
		if _, holds := c.held(c.database.poolOrHome(at.DB)); holds { // the end of the context would close a connection that is held
			on = ctx
		}
		asked.Go(func() {
			d, err := c.look(on, located{of.name, of.written, at})
			answers <- answer{d, err, at}
		})
	}
	var failed error // the first one
	for waits, next := 0, 0; ; {
		if next < len(all) {
			ask(all[next])
			waits, next = waits+1, next+1
		}
		soon := time.NewTimer(renewTimeout)
		select {
		case <-soon.C:
			continue
		case a := <-answers:
			soon.Stop()
			switch waits--; {
			case a.err == nil:
				a.description.at = of.at
				return a.description, nil
			case a.at == of.at && !dialect.Unavailable(a.err):
				return nil, a.err
			}
			if failed = cmp.Or(failed, a.err); waits == 0 && next == len(all) {
				return nil, failed
			}
		}
	}
}

// compareShards adds to the description of a table what its shards or copies say together: which columns are not comparable, and which
// stored map assigns its slots. Orders are compared on MySQL and MariaDB only: elsewhere no collation depends on the version of the server
// that creates a table, and types of PostgreSQL are compared when a database sorts for a query. The error is that of databases that did
// not answer soon.
func (c schemaReader) compareShards(ctx context.Context, d *description) error {
	t, sharded := c.snapshot.Lookup(d.name)
	asked := shardCheck{server: c.database.server, isUnleased: sharded && !t.Map.Leased()}
	if asked.server.Name() == "mysql" {
		asked.orders = columns.Compared(d.table)
	}
	if len(asked.orders) == 0 && !asked.isUnleased {
		return nil
	}
	pools, tables := c.database.copies(), map[*sql.DB][]string{}
	if sharded {
		for _, at := range t.Map.Targets() {
			pool := c.database.poolOrHome(at.DB)
			tables[pool] = append(tables[pool], at.Table)
		}
	} else if c.snapshot.IsBroadcast(d.name) {
		for _, pool := range pools {
			tables[pool] = []string{d.written}
		}
	}
	pools = slices.DeleteFunc(pools, func(pool *sql.DB) bool { return tables[pool] == nil })
	soon, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	answers, failed := make([]shardFindings, len(pools)), make([]error, len(pools))
	var wg sync.WaitGroup
	for i, pool := range pools {
		on := soon
		if _, holds := c.held(pool); holds { // the end of the context would close the connection
			on = ctx
		}
		wg.Go(func() { answers[i], failed[i] = asked.ask(on, c.on(pool), tables[pool]) })
	}
	wg.Wait()
	for i, pool := range pools {
		answers[i].addTo(&d.table, c.database.nameOf(pool))
	}
	if known := c.database.schemas.of(d.name); known != nil && slices.ContainsFunc(answers, func(a shardFindings) bool { return a.unread }) {
		d.table.Unfollowed = cmp.Or(d.table.Unfollowed, known.table.Unfollowed)
	}
	return errors.Join(failed...)
}

// shardCheck is what is asked of each database about its shards or copies of a table.
type shardCheck struct {
	server     *server.Server
	orders     map[string]columns.Order // of the columns whose orders are compared
	isUnleased bool                     // the map of the table has no lease, so the database is asked for a stored one
}

type shardFindings struct {
	differing map[string]columns.Difference
	storedMap string
	unread    bool // it is not known whether there is one
}

// ask asks a database. An error that concerns the stored map alone is none: programs without one need no answer.
func (q shardCheck) ask(ctx context.Context, db dialect.Querier, tables []string) (a shardFindings, err error) {
	a.unread = q.isUnleased
	if len(q.orders) > 0 {
		if a.differing, err = columns.Differing(ctx, db, tables, q.orders); err != nil {
			return a, err
		}
	}
	if q.isUnleased {
		a.storedMap, err = columns.StoredMap(ctx, q.server, db, tables)
		a.unread = err != nil
	}
	return a, nil
}

// addTo adds what a database has answered: the stored map, and which columns are not comparable, because their collations or the members
// of an ENUM or a SET differ, so that each shard sorts and groups in its own way.
func (a shardFindings) addTo(t *catalog.Table, database string) {
	if a.storedMap != "" && t.Unfollowed == "" {
		t.Unfollowed = fmt.Sprintf("the stored map %s (shard_fence_table of %s names it)", a.storedMap, database)
	}
	for name, found := range a.differing {
		column := t.Columns[name]
		column.Unsorted = fmt.Sprintf("its %s is %s in one shard and %s in %s of %s; give it one %[1]s in all shards", found.What, found.Own, found.Is, found.Table, database)
		if column.Least, column.Collation = (catalog.Value{}), ""; column.Members == "" || found.What == columns.OfType {
			column.Value = catalog.Value{} // others of an ENUM are sorted by the positions of members
		}
		t.Columns[name] = column
	}
}

func (c schemaReader) look(ctx context.Context, of located) (d *description, err error) {
	if of.at == (sharding.Target{}) {
		return nil, sharding.ErrRouteUnread
	}
	d = &description{located: of}
	names := []string{of.at.Table}
	if _, sharded := c.snapshot.Lookup(of.name); !sharded {
		names = append(names, of.written)
	}
	joined := c.database.homeName != "" // with shards
	d.table, err = readColumns(ctx, c.database.server, c.on(c.database.poolOrHome(of.at.DB)), c.snapshot, of.name, joined, names...)
	if err != nil {
		return nil, err
	}
	d.read.renew()
	return d, nil
}

// readColumns reads the columns of a table from the first one of some physical names that exists. joined says whether a
// statement may join a home table with shards.
func readColumns(ctx context.Context, srv *server.Server, db dialect.Querier, of *sharding.Snapshot, name string, joined bool, physical ...string) (found catalog.Table, err error) {
	t, sharded := of.Lookup(name)
	for _, table := range slices.Compact(physical) {
		if sharded || of.IsBroadcast(name) {
			found, err = columns.ReadRouted(ctx, srv, db, table, t)
		} else {
			found, err = columns.Read(ctx, srv, db, table, joined)
		}
		if dialect.FaultOf(err) != dialect.NoTable {
			break
		}
	}
	return found, err
}
