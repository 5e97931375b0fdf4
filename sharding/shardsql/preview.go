// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
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
func (s *session) preview(ctx context.Context, p *plan.Plan, to plan.Route, args []any, hint sharding.Hint) error {
	m := s.database.migration
	if m == nil || hint.Unsharded || s.database.router.Snapshot().Switched() == nil {
		return nil
	}
	next := p.AfterSwitch()
	if next == nil && !s.tx.begins(to) {
		return nil
	}
	collected := m.Preview != nil
	if collected && !m.Preview.Count(p.Fingerprint()) && !m.Strict {
		return nil
	}
	change, err := s.afterSwitch(ctx, next, to, args, hint)
	if collected {
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
func (s *session) afterSwitch(ctx context.Context, next *plan.Plan, to plan.Route, args []any, hint sharding.Hint) (sharding.Change, error) {
	var err error
	completes := next != nil && writehint.Of(ctx, to.Target.Table).Completes
	if next != nil {
		to, err = next.Bind(args, hint)
	}
	// From the switch on, the adapter adds a condition that leads to one shard.
	if completes && (to.Kind == plan.Scatter || errors.Is(err, sharding.ErrNotNumbered) || errors.Is(err, sharding.ErrMissingKey)) {
		return sharding.Unchanged, nil
	}
	if err == nil {
		err = s.checkTargets(ctx, to)
	}
	var lookups []*plan.Lookup
	if err == nil && next != nil {
		lookups, err = next.Lookups(args, to, writehint.Of(ctx, next.Seeks()))
	}
	switch {
	case err != nil:
		return sharding.WillBeRefused, err
	case len(lookups) > 0:
		return sharding.LooksFirst, nil
	case to.Kind == plan.Scatter || to.Kind == plan.Several:
		return sharding.SeveralShards, nil
	}
	return sharding.Unchanged, nil
}

// checkTargets refuses a statement for more shards or databases than one statement may use.
func (s *session) checkTargets(ctx context.Context, to plan.Route) error {
	if to.Kind != plan.Scatter && to.Kind != plan.Several {
		return s.tx.admitAfterSwitch(s.database.poolOrHome(to.Target.DB))
	}
	var participants []participant
	for _, at := range s.database.targets(to) {
		participants = append(participants, participant{pool: s.database.poolOrHome(at.DB)})
	}
	if err := s.database.router.Limits().Check(len(participants)); err != nil {
		return &sharding.RouteError{Op: "statement", Err: err, Hint: "add a condition on the sharding key, or raise the limit with sharding.FanOut"}
	}
	if to.Kind == plan.Scatter {
		if err := s.database.locks(to.Shards); err != nil || s.tx == nil {
			return err
		}
	}
	t := s.tx
	if t == nil {
		t = s.newTransaction(ctx, driver.TxOptions{})
	}
	for _, l := range participants[1:] {
		if !t.spans && l.pool != participants[0].pool {
			return t.admit(participants)
		}
	}
	return t.admitAfterSwitch(participants[0].pool)
}

// begins reports whether a statement begins a transaction on a database and so excludes all others.
func (t *transaction) begins(to plan.Route) bool {
	return t != nil && !t.spans && !to.Anywhere && (to.Kind == plan.Home || to.Kind == plan.One)
}

// admitAfterSwitch refuses a statement for another database than the one on which the transaction will
// have begun after the switch.
func (t *transaction) admitAfterSwitch(pool *sql.DB) error {
	switch {
	case t == nil || t.spans:
		return nil
	case t.afterSwitch == nil:
		t.afterSwitch = pool
	case t.afterSwitch != pool:
		return t.crossing(t.afterSwitch, pool)
	}
	return nil
}
