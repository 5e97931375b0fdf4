// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Rows are searched for by unique keys that do not lead to their shards: see plan.Search. The search takes no locks, except for
// newer rows that a transaction is about to write: see search.owners.

// lookUp refuses a write if a row on which it depends is on another shard.
func (s *session) lookUp(ctx context.Context, p *plan.Plan, to *plan.Route, args []driver.NamedValue) error {
	table := p.Seeks()
	if table == "" {
		return nil
	}
	all, err := p.Searches(unwrapped(args), to, writehint.Of(ctx, table))
	if err != nil {
		return err
	}
	for _, l := range all {
		if err := (search{s}).seek(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func unwrapped(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	return values
}

// models returns the search for the rows that an UPDATE or DELETE of models names, nil for another
// statement.
func (s *session) models(ctx context.Context, p *plan.Plan, to *plan.Route, args []driver.NamedValue) *plan.Search {
	table := p.NamesRowsOf()
	if table == "" || !writehint.Of(ctx, table).Keyed || to.Kind != plan.One && to.Kind != plan.Several {
		return nil
	}
	return p.Named(unwrapped(args), to)
}

// search searches shards for rows. It sees the rows of the session's transaction, if there is one.
type search struct{ *session }

// missed searches for the named rows if a statement affected fewer rows than it names.
func (s search) missed(ctx context.Context, l *plan.Search, touched int64) error {
	if l == nil || touched >= int64(l.Len()) {
		return nil
	}
	return s.seek(ctx, l)
}

// owners searches all shards for the rows with the values of a condition. A transaction of MySQL or MariaDB changes also rows
// that were committed after its first read, and only a read that locks them shows them. If it is SERIALIZABLE, every read locks:
// two that shared the lock of a row before they write it would be a deadlock.
func (s search) owners(ctx context.Context, o *plan.Owners, question int) error {
	l := o.Queries[question].Search
	if err := withinLimit(s.database.router, l); err != nil {
		return err
	}
	first, locking := l.Questions(true), s.locking(o, l)
	if locking != nil && sql.IsolationLevel(s.tx.options.Isolation) == sql.LevelSerializable {
		first, locking = append(slices.DeleteFunc(first, func(q plan.Question) bool { return s.isOwn(q.Target) }), s.own(locking)...), nil
	}
	answers, err := s.answers(ctx, l.Table, first)
	if err != nil {
		return err
	}
	keys, values, err := l.Keys(answers)
	if err == nil && values < l.Len() && locking != nil {
		locked, failed := s.answers(ctx, l.Table, s.own(locking))
		if failed != nil {
			return failed
		}
		keys, _, err = l.Keys(append(answers, locked...))
	}
	if err != nil {
		return err
	}
	if o.SetKeys(question, keys); s.tx != nil {
		o.Otherwise = s.unfound(o)
	}
	return nil
}

// strangers refuses a statement that would read rows of a moving slot on a shard to which the slot does not belong. Conditions on
// the sharding key exclude such rows, but not conditions on the values by which its shard was found.
func (s search) strangers(ctx context.Context, o *plan.Owners, to *plan.Route) error {
	for _, l := range o.Strangers(to) {
		answers, err := s.answers(ctx, l.Table, l.Questions(false))
		if err == nil {
			err = l.Stays(answers)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withinLimit refuses a search of more shards than one statement may need. One query of a database searches all its shards, but
// the time that it takes depends on their number.
func withinLimit(r *sharding.Router, l *plan.Search) error {
	if err := r.Limits().Check(len(l.Table.Map.Targets())); err != nil {
		return &sharding.RouteError{Op: "look-up", Table: l.Table.Name, Err: err, Hint: "add a condition on " + l.Table.Key + ", or raise the limit with sharding.FanOut"}
	}
	return nil
}

// locking returns the search that locks the rows on the databases of the transaction, or nil.
func (s search) locking(o *plan.Owners, l *plan.Search) *plan.Search {
	if !o.Write() || !s.tx.began() || s.database.server.Name() != "mysql" {
		return nil
	}
	return l.Locking()
}

// isOwn reports whether the transaction has begun on the database of a target.
func (s search) isOwn(at sharding.Target) bool { return s.tx.has(s.database.poolOrHome(at.DB)) != nil }

// own returns the questions of a search for the databases of the transaction.
func (s search) own(l *plan.Search) []plan.Question {
	return slices.DeleteFunc(l.Questions(true), func(q plan.Question) bool { return !s.isOwn(q.Target) })
}

// unfound returns the target for a statement of a transaction if no shard has its rows: one on a database of the transaction.
// A query for no rows need not bind a transaction that has not begun to a database.
func (s search) unfound(o *plan.Owners) *sharding.Target {
	all := o.Targets()
	if at := slices.IndexFunc(all, s.isOwn); at >= 0 {
		return &all[at]
	}
	if o.Write() {
		return &all[0]
	}
	return nil
}

// seek queries the shards where the rows should be, and then all others for the rows not found.
func (s search) seek(ctx context.Context, l *plan.Search) error {
	shards := 0 // that are queried
	for _, elsewhere := range []bool{false, true} {
		questions := l.Questions(elsewhere)
		for _, q := range questions {
			shards += q.Shards
		}
		if err := s.database.router.Limits().Check(min(shards, len(l.Table.Map.Targets()))); elsewhere && err != nil {
			return &sharding.RouteError{Op: "look-up", Table: l.Table.Name, Err: err,
				Hint: "the row may be on any shard; put " + l.Table.Key + " into the unique key, or raise the limit with sharding.FanOut"}
		}
		answers, err := s.answers(ctx, l.Table, questions)
		if err != nil {
			return err
		}
		for _, rows := range answers {
			if err := l.Found(elsewhere, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// answers queries several databases at the same time, and each of them on one connection. It refuses the answers if slots of the table
// have moved meanwhile: each of the shards may have been asked when it did not have a row.
func (s search) answers(ctx context.Context, of *sharding.Table, questions []plan.Question) ([][][]driver.Value, error) {
	answers, errs := make([][][]driver.Value, len(questions)), make([]error, len(questions))
	pools := map[*sql.DB][]int{}
	for i, q := range questions {
		pool := s.database.poolOrHome(q.Target.DB)
		pools[pool] = append(pools[pool], i)
	}
	sideBySide(s.database.router.Limits().Concurrency, slices.Collect(maps.Keys(pools)), func(pool *sql.DB) {
		for _, i := range pools[pool] {
			if answers[i], errs[i] = s.answer(ctx, pool, questions[i]); errs[i] != nil {
				return
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return answers, unmoved(s.database, of)
}

// answer queries on the transaction's connection, so that it sees the transaction's own rows. On a
// database where the transaction has not begun, it uses a connection of the pool: if the
// transaction began with a read there, some databases would refuse its writes.
func (s search) answer(ctx context.Context, pool *sql.DB, q plan.Question) ([][]driver.Value, error) {
	rows, err := onUnbroken(ctx, s.session, pool, func() (*resultset.Held, error) {
		in, err := s.heldOrNew(ctx, pool)
		if err != nil {
			return nil, err
		}
		return returning()(ctx, in, participant{text: q.Text, args: named(q.Args)})
	})
	if err != nil {
		return nil, &sharding.ShardError{Target: q.Target, Err: err}
	}
	return rows.Rows, nil
}
