package sqlxhook

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// aim is what a handle was asked for, so that it can be found again when the
// table moves from a migration's source to its shards, or back.
type aim struct {
	table  string
	column string // that leads to the shard; "" for the sharding key
	value  any
	fixed  bool // it was asked for by its target: there is nothing to find again
}

// find returns the shard of an aim that is not fixed.
func (h *Hook) find(l *layout, a aim) (*Shard, error) {
	var target sharding.Target
	var err error
	if a.column == "" {
		target, err = l.snapshot.Target(a.table, a.value)
	} else {
		target, err = l.snapshot.TargetBy(a.table, a.column, a.value)
	}
	if err != nil {
		return nil, err
	}
	return h.shard(l, a, target), nil
}

// onSource reports whether the source of a migration serves the table.
func (l *layout) onSource(table string) bool {
	t, ok := l.snapshot.Lookup(table)
	return ok && t.Origin() != nil
}

// present returns s, or what takes its place when a switch was seen since s was
// made.
func (s *Shard) present(ctx context.Context) (*Shard, error) {
	l := s.hook.layout()
	if l == s.bound.layout || !s.mayMove(ctx) || l.onSource(s.aim.table) == s.bound.layout.onSource(s.aim.table) {
		return s, nil
	}
	return s.hook.find(l, s.aim)
}

// mayMove reports whether a statement of s may be sent to another place: a
// transaction cannot leave its database, and physical names are what they are.
func (s *Shard) mayMove(ctx context.Context) bool {
	return s.conn == sqlx.ExtContext(s.db) && !s.aim.fixed && !sharding.HintOf(ctx).Unsharded
}

// next returns the shard to send a statement to once more that failed with err on
// s and did nothing there. When there is none, it returns the error for the
// caller, nil if err is nil.
func (s *Shard) next(ctx context.Context, err error) (*Shard, error) {
	if err == nil {
		return nil, nil
	}
	err = sharding.SlotMoving(err)
	switch planned := s.bound.layout.snapshot; {
	case s.mayMove(ctx):
		if _, err = s.hook.router.Moved(ctx, planned, err); err != nil {
			return nil, err
		}
	case sharding.HintOf(ctx).Unsharded:
		return nil, err
	default:
		return nil, s.hook.router.Closed(planned, err)
	}
	return s.hook.find(s.hook.layout(), s.aim)
}

// undone reports whether err proves that the statement did nothing.
func undone(err error) bool { return dialect.FaultOf(err) == dialect.NoTable }
