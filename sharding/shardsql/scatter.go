// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// reading is a query that is sent to its databases, or to their copies.
type reading struct {
	execution

	from replicas   // queried instead of the databases that they copy; nil for none
	each *statement // once if every text must be prepared
}

// rows sends the query to its databases, or to their copies. If a copy is down, does not have a table yet
// that a migration has switched, or refuses what a function of the query writes, the query is repeated on the databases.
func (r reading) rows(ctx context.Context) (driver.Rows, error) {
	rows, err := r.sent(ctx)
	if err == nil || r.from == nil {
		return rows, err
	}
	isDown := dialect.Unavailable(err) && !dialect.Interrupted(err) && ctx.Err() == nil
	if isDown || dialect.FaultOf(err) == dialect.NoTable || dialect.ServerReadOnly(err) {
		r.from = nil
		return r.sent(ctx)
	}
	return nil, err
}

func (r reading) sent(ctx context.Context) (driver.Rows, error) {
	to := r.to
	if to.Kind == plan.Scatter {
		return r.scatter(ctx)
	}
	pool, args := r.pool(ctx, to.Target.DB), textArgs(to, r.args)
	switch st, err := r.statement.in(ctx, pool, r.plan, to); {
	case err != nil:
		return nil, err
	case st != nil:
		rows, err := queryPrepared(ctx, st, args)
		if err == nil {
			return inTime(r.execution, rows) // its pool may have made it wait for a connection, too
		}
		return nil, err
	}
	in, err := r.session.connFor(ctx, to, pool)
	if err != nil {
		return nil, err
	}
	of := r.statement
	if of == nil {
		if of, _, err = r.part(ctx, in, args); err != nil {
			return nil, dialect.JoinErrors(err, in.Release())
		}
	}
	if err := refusedBefore(ctx, r.execution); err != nil {
		return nil, dialect.JoinErrors(err, in.Release())
	}
	rows, err := in.Query(ctx, of.sent(), to.Text, args)
	if err != nil {
		return nil, err
	}
	if r.session.tx != nil {
		rows.Failing = r.session.tx
	}
	if !r.plan.Statement.ReadsOnly() {
		return rows, nil
	}
	return inTime(r.execution, rows)
}

// part returns once if a text with these arguments, which replaces the statement on a connection, must be prepared,
// and otherwise whether its values must be converted to those of the binary protocol. If a text of MySQL or MariaDB
// gets none of the arguments, only a prepared one returns all digits of a FLOAT.
func (r reading) part(ctx context.Context, on inner.Conn, args []driver.NamedValue) (as *statement, binary bool, err error) {
	s := r.session.database.server
	switch {
	case r.each != nil || s.Name() != "mysql":
		return r.each, false, nil
	case len(args) > 0:
		return asPart(s, r.statement, args), false, nil
	}
	binary, err = isBinary(ctx, s, on.SQL, r.statement, r.args)
	if binary && r.plan.Singles {
		return once, false, err
	}
	return nil, binary, err
}

// pool returns the pool from which a database's rows are read. A session at home continues on its
// own connection.
func (r reading) pool(ctx context.Context, name string) *sql.DB {
	own := r.session.database.poolOrHome(name)
	if r.from == nil || r.session.home.SQL != nil && own == r.session.database.home {
		return own
	}
	return cmp.Or(r.session.database.copyOf(ctx, name, own, plan.First(r.plan)), own)
}

func (r reading) drain(ctx context.Context) (driver.Result, error) {
	rows, err := r.scatter(ctx)
	if err != nil {
		return nil, err
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	return driver.ResultNoRows, nil
}

// scatter queries several shards and returns the rows that one table would have returned.
func (r reading) scatter(ctx context.Context) (driver.Rows, error) {
	s := r.to.Shards
	if err := r.session.transactionFor(ctx, r.to).admit(r.to); err != nil {
		return nil, err
	}
	conns, err := r.reserveAll(ctx, s)
	if err != nil {
		return nil, err
	}
	memory := merge.NewMemory(resultset.MostMemory)
	sources, types, end, err := r.queryAll(ctx, conns, s, memory)
	if err != nil {
		end()
		return nil, resultset.Refused(err)
	}
	if sources, err = r.ranked(ctx, s, sources, memory); err != nil {
		end()
		return nil, resultset.Refused(err)
	}
	if s.Counted != "" {
		types = resultset.TypesOfCount(r.session.database.server.Name())
	}
	return resultset.NewAnswer(s.Rows(r.session.database.server.Arithmetic, sources, memory), types, end), nil
}

// admitFanOut refuses a statement for more shards than one may need.
func admitFanOut(r *sharding.Router, to *plan.Route) error {
	op, hint := "query", "add a condition on the sharding key"
	switch to.Kind {
	case plan.Scatter:
	case plan.Several:
		op, hint = "write", "write fewer keys at a time"
	default:
		return nil
	}
	if err := r.Limits().Check(len(to.Targets())); err != nil {
		return &sharding.RouteError{Op: op, Err: err, Hint: hint + ", or raise the limit with sharding.FanOut"}
	}
	return nil
}

// textArgs returns the arguments of a text that goes to one database.
func textArgs(to *plan.Route, args []driver.NamedValue) []driver.NamedValue {
	if to.Args == nil {
		return args
	}
	return chosen(args, to.Args)
}

// chosen returns the arguments that a shard gets: a selection of the statement's arguments,
// some of which may be repeated.
func chosen(args []driver.NamedValue, which []int) []driver.NamedValue {
	each := 0
	for each < len(which) && which[each] == each {
		each++
	}
	if each == len(which) && each == len(args) {
		return args
	}
	few := make([]driver.NamedValue, 0, len(which))
	for _, i := range which {
		a := args[i]
		a.Ordinal = len(few) + 1
		few = append(few, a)
	}
	return few
}

// reserved is a connection and the shards that are queried on it, one after another.
type reserved struct {
	inner   inner.Conn
	targets []int // indexes in plan.Shards.Targets
}

const (
	// fewRows is the largest number of rows of a target for which a query waits for a connection
	// instead of opening one that its pool will not keep.
	fewRows = 1000
	// mostConns is how many connections a query takes of a pool that may open any number: a server accepts a hundred or so, and a
	// router may have a thousand tables.
	mostConns = 32
)

// reserveAll reserves the connections of a query: of each pool one for each of its targets. It reserves fewer
//
//   - if the pool may not have so many;
//   - for groups and for few rows: as many as targets are queried at a time, because the rows that must wait in memory are few;
//   - for few rows, if the pool keeps fewer;
//   - in a transaction: the one that the transaction has.
//
// It reserves the connections of a pool together, and pools in the order of compare, like writes: two statements that each hold a
// part of what they need would otherwise wait for each other.
func (r reading) reserveAll(ctx context.Context, s *combine.Shards) (all []reserved, err error) {
	pools := map[string][]int{}
	for i, t := range s.Targets {
		pools[t.Target.DB] = append(pools[t.Target.DB], i)
	}
	defer func() {
		if err != nil {
			err = dialect.JoinErrors(err, releaseAll(all))
		}
	}()
	for _, pool := range slices.SortedFunc(maps.Keys(pools), r.session.database.compare) {
		targets := pools[pool]
		some, err := r.reserve(ctx, s, pool, targets)
		all = append(all, some...)
		if err != nil {
			return all, &sharding.ShardError{Target: s.Targets[targets[0]].Target, Err: err}
		}
	}
	return all, nil
}

func releaseAll(all []reserved) error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.inner.Release())
	}
	return errors.Join(errs...)
}

// reserve takes connections of one pool for the targets with these indexes.
func (r reading) reserve(ctx context.Context, s *combine.Shards, pool string, targets []int) (all []reserved, err error) {
	db := r.pool(ctx, pool)
	if _, holds := r.session.held(db); holds || r.session.tx != nil { // the pool may have no other connection
		in, err := r.session.inner(ctx, db)
		if err != nil {
			return nil, err
		}
		return []reserved{{in, targets}}, nil
	}
	turn := r.session.database.stateOf(db)
	if err := turn.lock(ctx); err != nil {
		return nil, err
	}
	defer turn.unlock()
	stats := db.Stats()
	n, isFew := min(len(targets), cmp.Or(stats.MaxOpenConnections, mostConns)), s.Most >= 0 && s.Most <= fewRows
	if isFew || s.Group != nil {
		n = min(n, r.session.database.router.Limits().Concurrency)
	}
	if isFew {
		n = turn.keeps(stats, n)
	}
	connect := r.session.database.connect
	for len(all) < n {
		conn, err := connect(ctx, db)
		if err != nil {
			return all, err
		}
		if conn == nil {
			break
		}
		all = append(all, reserved{inner: inner.Conn{SQL: conn}})
		connect = r.session.database.connectSoon
	}
	for i, target := range targets {
		l := &all[i%len(all)]
		l.targets = append(l.targets, target)
	}
	return all, nil
}

// queryAll sends the query on the reserved connections, on several at the same time. It returns the rows of each
// target, the column types of the first, and a function that ends the context of the rows. It returns the first
// error, and stops the others then, whose errors depend on the driver. After an error nothing is left open.
func (r reading) queryAll(ctx context.Context, conns []reserved, s *combine.Shards, memory *merge.Memory) (_ []merge.Rows, _ resultset.Types, stop func(), _ error) {
	stoppable, stop := context.WithCancel(ctx) // after the first error the other results are not needed
	types := resultset.NewTypes(len(s.Targets), r.session.database.server.Name() == "sqlite")
	sources := make([]merge.Rows, len(s.Targets))
	var first error
	var failed sync.Once
	atOnce := r.session.database.router.Limits().Concurrency
	if s.Locks {
		atOnce = 1
	}
	r.beside = len(conns) > 1
	sideBySide(atOnce, conns, func(l reserved) {
		on := stoppable
		if l.inner.Kept != nil { // the end of the context would close a connection that is held
			if on = ctx; stoppable.Err() != nil && ctx.Err() == nil {
				return
			}
		}
		if err := l.query(on, s, r, memory, sources, &types); err != nil {
			failed.Do(func() { first = err })
			stop()
		}
	})
	if first == nil {
		return sources, types, stop, nil
	}
	for _, rows := range sources {
		if rows != nil {
			_ = rows.Close() // the first error is returned
		}
	}
	return nil, types, stop, first
}

// query reads the rows of all targets but the last into memory, because the next target needs the
// connection. The rows of the last target hold the connection until they are closed.
func (l reserved) query(ctx context.Context, s *combine.Shards, of reading, memory *merge.Memory, sources []merge.Rows, types *resultset.Types) error {
	for i, at := range l.targets {
		last := i == len(l.targets)-1
		in := l.inner
		if !last && in.Kept == nil {
			in.Kept = &inner.Kept{}
		}
		to := s.Targets[at]
		args := slices.Clone(chosen(of.args, to.Args))
		as, binary, err := of.part(ctx, l.inner, args)
		if err != nil {
			return &sharding.ShardError{Target: to.Target, Err: dialect.JoinErrors(err, l.inner.Release())}
		}
		if err := refusedBefore(ctx, of.execution); err != nil {
			return dialect.JoinErrors(err, l.inner.Release())
		}
		rows, err := in.Query(ctx, as.sent(), to.Text, args)
		if err != nil {
			if !last {
				err = dialect.JoinErrors(err, l.inner.Release())
			}
			return &sharding.ShardError{Target: to.Target, Err: err}
		}
		types.Read(at, rows)
		var source merge.Rows = &shardRows{Rows: rows, target: to.Target, binary: binary}
		if !last || l.inner.Kept != nil {
			if source, err = resultset.Hold(source, memory); err != nil {
				if !last {
					err = dialect.JoinErrors(err, l.inner.Release())
				}
				return err
			}
		}
		sources[at] = source
	}
	return nil
}

// shardRows add the shard's name to the errors of its rows.
type shardRows struct {
	driver.Rows
	target sharding.Target
	binary bool // one table would have returned values in the binary protocol
}

func (r *shardRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == nil && r.binary {
		resultset.AsBinary(dest)
	}
	if err == nil || resultset.IsEOF(err) {
		return err
	}
	return &sharding.ShardError{Target: r.target, Err: err}
}
