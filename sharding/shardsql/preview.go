// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// While the source of a migration serves a table, each statement on the table is also planned as it
// will be executed after the switch, for Migration.Preview and Migration.Strict.

// previewing returns the migration whose statements are previewed, or nil.
func previewing(r *sharding.Router) *sharding.Migration {
	if m := r.Migration(); m != nil && (m.Preview != nil || m.Strict) {
		return m
	}
	return nil
}

// preview reports how a statement will be executed after the switch. Its error is the refusal by a
// strict migration.
func (s *session) preview(ctx context.Context, p *plan.Plan, to *plan.Route, args []any, hint sharding.Hint) error {
	m := s.database.migration
	if m == nil || hint.Unsharded || s.database.router.Snapshot().Switched() == nil {
		return nil
	}
	next := p.AfterSwitch()
	if next == nil && !s.tx.begins(to) {
		return nil
	}
	collects := m.Preview != nil && m.Preview.Count(p.Fingerprint())
	// Even a known statement may decide on which database a transaction begins.
	if !collects && !m.Strict && !s.tx.staysInOne() {
		return nil
	}
	change, err := s.afterSwitch(ctx, next, to, args, hint)
	if collects {
		m.Preview.Add(p.Fingerprint(), change, err)
	}
	if !m.Strict || err == nil || errors.Is(err, sharding.ErrNotNumbered) {
		return nil
	}
	return strictRefusal(err)
}

// strictRefusal marks a refusal that the source would not have returned.
func strictRefusal(err error) error {
	var refusal *sharding.RouteError
	if !errors.As(err, &refusal) {
		return err
	}
	early := *refusal
	early.Hint = strings.TrimSuffix("the shards will refuse it, and Migration.Strict does so now; "+early.Hint, "; ")
	return &early
}

// afterSwitch returns how a statement will be executed after the switch, or why it will be refused. next
// is its plan; it is nil for a statement in a transaction that is about other tables.
func (s *session) afterSwitch(ctx context.Context, next *plan.Plan, to *plan.Route, args []any, hint sharding.Hint) (sharding.Change, error) {
	if next == nil {
		return changeTo(to, s.checkTargets(ctx, to))
	}
	told := writehint.Of(ctx, to.Target.Table)
	if told.Refusal != nil {
		return sharding.WillBeRefused, told.Refusal
	}
	hint.On = s.tx.onAfterSwitch(hint.On, to.Target, next)
	original := args
	next, args = plan.Sampled(next, original, hint)
	searched := plan.OwnersOf(next, args, hint, s.tx.staysInOne())
	if searched != nil {
		if told.Completes {
			return sharding.Unchanged, nil
		}
		if next = (search{s}).foundAt(ctx, to.Target, searched); next == nil {
			return sharding.LooksFirst, nil
		}
	}
	to, err := next.Bind(args, hint)
	// An INSERT that leaves the ids to the source is checked with ids. Without an adapter that fills
	// them it is refused in any case, but perhaps for a reason that remains when it has ids.
	var unfilled error
	if errors.Is(err, sharding.ErrNotNumbered) {
		if !told.Fills {
			unfilled = err
		}
		next, args = plan.Sampled(next.Filled(), original, hint)
		to, err = next.Bind(args, hint)
	}
	// From the switch on, the adapter adds a condition that leads to one shard.
	if told.Completes && (err == nil && to.Kind == plan.Scatter || errors.Is(err, sharding.ErrMissingKey)) {
		return sharding.Unchanged, nil
	}
	if err == nil {
		err = s.checkTargets(ctx, to)
	}
	var searches []*plan.Search
	if err == nil {
		searches, err = next.Searches(args, to, writehint.Of(ctx, next.Seeks()))
	}
	if err = cmp.Or(err, unfilled); err == nil && (len(searches) > 0 || searched != nil) {
		return sharding.LooksFirst, nil
	}
	return changeTo(to, err)
}

// foundAt returns a plan with the rows that the source has now and that the shards will be searched for. It returns nil if the
// source does not answer; the statement will not be answered, either.
func (s search) foundAt(ctx context.Context, source sharding.Target, o *plan.Owners) *plan.Plan {
	for i := range o.Queries {
		if q := &o.Queries[i]; q.Search == nil || q.Search.SearchAt(source) != nil || s.owners(ctx, o, i) != nil {
			return nil
		}
	}
	return o.Plan()
}

// changeTo returns the change of a statement with a route or a refusal after the switch.
func changeTo(to *plan.Route, refusal error) (sharding.Change, error) {
	switch {
	case refusal != nil:
		return sharding.WillBeRefused, refusal
	case to.Kind == plan.Scatter || to.Kind == plan.Several || to.Unplaced.Several():
		return sharding.SeveralShards, nil
	}
	return sharding.Unchanged, nil
}

// checkTargets refuses a statement for more shards or databases than one statement may use.
func (s *session) checkTargets(ctx context.Context, to *plan.Route) error {
	if to.Unplaced != nil {
		return s.checkUnplaced(ctx, to)
	}
	if to.Kind != plan.Scatter && to.Kind != plan.Several {
		return s.tx.admitAfterSwitch(s.database.poolOrHome(to.Target.DB))
	}
	if err := admitFanOut(s.database.router, to); err != nil {
		return err
	}
	t := s.transactionFor(ctx, to)
	if err := spanning(t, to); err != nil {
		return err
	}
	return t.admitAfterSwitch(s.database.only(to))
}

// begins reports whether a statement begins a transaction on a database and so excludes all others.
func (t *transaction) begins(to *plan.Route) bool {
	return t.staysInOne() && !to.Anywhere && (to.Kind == plan.Home || to.Kind == plan.One)
}

// admitAfterSwitch refuses a statement for another database than the one on which the transaction will
// have begun after the switch.
func (t *transaction) admitAfterSwitch(pool *sql.DB) error {
	switch {
	case !t.staysInOne():
		return nil
	case t.afterSwitch == nil:
		t.afterSwitch = pool
	case t.afterSwitch != pool:
		return t.crossing(t.afterSwitch, pool)
	}
	return nil
}

// onAfterSwitch returns the target that the program will give to [sharding.On] instead of on. Until the switch, a program that
// sends a statement to each of a table's targets has one target, the source's table; afterwards it has each of the shards' in
// turn. One of them is checked: in a transaction one of the database on which it will have begun.
func (t *transaction) onAfterSwitch(on, source sharding.Target, next *plan.Plan) sharding.Target {
	if on != source {
		return on
	}
	for i, at := range next.Snapshot.Targets(next.Table()) {
		if i == 0 || t != nil && t.afterSwitch != nil && t.session.database.poolOrHome(at.DB) == t.afterSwitch {
			on = at
		}
	}
	return on
}

// checkUnplaced refuses rows whose ids will lead to any database, if they would have to be in the
// database of others.
func (s *session) checkUnplaced(ctx context.Context, to *plan.Route) error {
	alone := *s
	alone.tx = s.transactionFor(ctx, to)
	unplaced := to.Unplaced
	if !unplaced.All {
		placed := *to
		placed.Unplaced = nil
		if err := alone.checkTargets(ctx, &placed); err != nil {
			return err
		}
	}
	for range unplaced.Rows {
		if err := s.database.admitUnplaced(alone.tx, unplaced.Targets); err != nil {
			return err
		}
	}
	return nil
}

// admitUnplaced refuses a row that will be in the database of any of the targets, if the transaction
// has already another row or statement. A later statement may follow the row: its key may be the row's id.
func (d *database) admitUnplaced(t *transaction, targets []sharding.Target) error {
	if t.spans {
		return nil
	}
	first := t.afterSwitch
	if first == nil {
		first = d.poolOrHome(targets[0].DB)
	}
	at := slices.IndexFunc(targets, func(to sharding.Target) bool { return d.poolOrHome(to.DB) != first })
	switch {
	case at < 0:
		return t.admitAfterSwitch(first)
	case t.afterSwitch == nil && !t.unplaced:
		t.unplaced = true
		return nil
	}
	return &sharding.RouteError{Op: "insert", Err: fmt.Errorf("%w: the ids that generators will make lead to %s, %s or others, and not all to the database of the transaction", sharding.ErrCrossDatabase, d.nameOf(first), targets[at].DB),
		Hint: "insert each row in a transaction of its own, or " + plan.LetSpan}
}
