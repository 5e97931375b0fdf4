package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"sync"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// plan returns what each target is sent and how their answers are merged. When
// it succeeds, nothing but a database can refuse the statement any more.
func (s *step) plan(ctx context.Context) ([]leg, *merge, error) {
	m, err := s.merging()
	if err != nil {
		return nil, nil, err
	}
	legs, err := s.legs(m)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range legs {
		if err := s.routing.guard.routed(s.op, l.query, s.table, s.joined); err != nil {
			return nil, nil, err
		}
	}
	if err := s.proveUpsert(ctx); err != nil {
		return nil, nil, err
	}
	s.show(legs)
	return legs, m, nil
}

// rehearse plans a statement of a dry run, in which gorm sends nothing.
func (s *step) rehearse() error {
	m, err := s.merging()
	if err != nil {
		return err
	}
	legs, err := s.legs(m)
	if err == nil {
		s.show(legs)
	}
	return err
}

// admitted asks the connection whether it takes statements for all databases.
func (s *step) admitted(ctx context.Context, legs []leg) error {
	dbs := make([]*sql.DB, len(legs))
	for i, l := range legs {
		dbs[i] = s.routing.router.DB(l.target.DB)
	}
	err := s.next.admit(ctx, dbs, s.isWrite())
	var refused *sharding.RouteError
	if errors.As(err, &refused) {
		return s.refuse(refused.Err, refused.Hint)
	}
	return err
}

// execMany runs a statement without rows on all targets.
func (s *step) execMany(ctx context.Context) (sql.Result, error) {
	legs, _, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	return s.execLegs(ctx, legs)
}

func (s *step) execLegs(ctx context.Context, legs []leg) (sql.Result, error) {
	results := make([]sql.Result, len(legs))
	err := s.together(ctx, legs, func(ctx context.Context, c gorm.ConnPool, i int) (err error) {
		results[i], err = c.ExecContext(ctx, legs[i].query, legs[i].vars...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.sum(legs, results)
}

// queryMany runs a query on all targets and merges what they return.
func (s *step) queryMany(ctx context.Context) (*resultSet, error) {
	legs, m, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	sets := make([]*resultSet, len(legs))
	err = s.together(ctx, legs, func(ctx context.Context, c gorm.ConnPool, i int) error {
		rows, err := c.QueryContext(ctx, legs[i].query, legs[i].vars...)
		if err == nil {
			sets[i], err = readAll(rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.op == "create" {
		return inRowOrder(legs, sets), nil
	}
	return m.merge(sets)
}

// inRowOrder puts what the INSERTs returned into the order of the rows. Where
// some were skipped nobody knows which: filling then goes by their keys.
func inRowOrder(legs []leg, sets []*resultSet) *resultSet {
	all := concat(sets)
	ordered := make([][]any, len(all.rows))
	for i, l := range legs {
		if len(l.rows) != len(sets[i].rows) {
			return all
		}
		for j, row := range l.rows {
			ordered[row] = sets[i].rows[j]
		}
	}
	all.rows = ordered
	return all
}

// together runs the statement of each target. Writes without a transaction get
// one, so that they happen in all tables or in none.
func (s *step) together(ctx context.Context, legs []leg, do func(context.Context, gorm.ConnPool, int) error) error {
	if err := s.admitted(ctx, legs); err != nil {
		return err
	}
	p := poolOf(s.next)
	if p == nil || !s.isWrite() {
		return s.dispatch(ctx, s.next, legs, do)
	}
	tx := newLazyTx(ctx, p, nil)
	if err := s.dispatch(ctx, tx, legs, do); err != nil {
		_ = tx.Rollback() // the statement's error is the one that matters
		return err
	}
	return tx.Commit()
}

// dispatch runs the statements in lanes that work at the same time: in a
// transaction one for each database, which has a single connection, otherwise
// one for each target. The error is the one that came first: what a driver says
// of queries that were stopped for it, nobody knows.
func (s *step) dispatch(ctx context.Context, on conn, legs []leg, do func(context.Context, gorm.ConnPool, int) error) error {
	bound := txOf(on) != nil
	stop := context.CancelFunc(func() {})
	if !bound { // a query: the first error makes the other answers useless
		ctx, stop = context.WithCancel(ctx)
	}
	defer stop()
	var once sync.Once
	var first error
	each(s.routing.limits().Concurrency, lanes(legs, bound), func(lane []int) {
		for _, i := range lane {
			err := s.send(ctx, on, legs[i].target, func(c gorm.ConnPool) error { return do(ctx, c, i) })
			if err == nil {
				continue
			}
			once.Do(func() { first = s.inShard(legs[i].target, err) })
			stop()
			return
		}
	})
	return first
}

// poolOf returns the pool of a statement that is in no transaction.
func poolOf(c conn) *pool {
	switch c := unprepared(c).(type) {
	case *pool:
		return c
	case *elsewhere:
		return c.pool
	}
	return nil
}

func (s *step) send(ctx context.Context, on conn, target sharding.Target, do func(gorm.ConnPool) error) error {
	c, err := on.on(ctx, s.database(s.spot(target)))
	if err != nil {
		return err
	}
	return do(c)
}

func lanes(legs []leg, byDatabase bool) [][]int {
	var all [][]int
	lane := map[string]int{}
	for i, l := range legs {
		at, known := lane[l.target.DB]
		if !known || !byDatabase {
			at = len(all)
			lane[l.target.DB] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], i)
	}
	return all
}

// each calls do for all lanes, at most limit at a time, and returns when all are
// done.
func each(limit int, lanes [][]int, do func([]int)) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, max(limit, 1))
	for _, lane := range lanes {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			do(lane)
		})
	}
	wg.Wait()
}

// added is the result of statements on several targets.
type added int64

func (added) LastInsertId() (int64, error)   { return 0, nil }
func (n added) RowsAffected() (int64, error) { return int64(n), nil }

// sum adds the affected rows up. Keys that the databases gave to new rows are
// put into them here, as gorm would count them on from the first.
func (s *step) sum(legs []leg, results []sql.Result) (sql.Result, error) {
	var n added
	for i, r := range results {
		affected, err := r.RowsAffected()
		if err != nil {
			return nil, err
		}
		n += added(affected)
		if s.op == "create" {
			if err := s.number(legs[i], r); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// number does what gorm does with the LastInsertId of an INSERT, for the rows of
// one target. It is the first row's.
func (s *step) number(l leg, r sql.Result) error {
	if s.stmt.Schema == nil || !s.routing.mysql || s.stmt.ReflectValue.Kind() != reflect.Slice {
		return nil
	}
	f := s.stmt.Schema.PrioritizedPrimaryField
	id, err := r.LastInsertId()
	if f == nil || !f.HasDefaultValue || err != nil || id == 0 {
		return nil //nolint:nilerr // a driver that knows no such id
	}
	for _, i := range l.rows {
		row := reflect.Indirect(s.stmt.ReflectValue.Index(i))
		if row.Kind() != reflect.Struct {
			return nil
		}
		if _, zero := f.ValueOf(s.stmt.Context, row); !zero {
			continue
		}
		if err := f.Set(s.stmt.Context, row, id); err != nil {
			return err
		}
		id += f.AutoIncrementIncrement
	}
	return nil
}
