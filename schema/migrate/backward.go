package migrate

import (
	"context"
	"fmt"
)

// backward are the streams from the shards to the retired tables, one for each
// database. They are used by one goroutine, as a row can be noted on several.
func (l *lead) backward() []*stream {
	all := make([]*stream, len(l.sides))
	for i, side := range l.sides {
		all[i] = &stream{lead: l, from: side, log: l.backTable(), fetch: l.fetchFromShards, put: l.putOnSource}
	}
	return all
}

// fetchFromShards reads the rows wherever they lie. A row that moves from one
// shard to another may be seen on both, or on none; the entries of the move
// bring it here again.
func (l *lead) fetchFromShards(ctx context.Context, _ *stream, t *table, ids []int64) ([]record, error) {
	var all []record
	seen := map[int64]bool{}
	for i, to := range t.targets {
		homes, err := t.homes(ids)
		if err != nil {
			return nil, err
		}
		if len(homes[i]) == 0 {
			continue
		}
		name := to.present()
		var rows []record
		err = l.from(to.side).do(ctx, func(s *session) error {
			rows, err = s.read(ctx, reading{t, name, columnOf(s.side, name, t.key) + " IN (" + idList(homes[i]) + ")", nil})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if seen[r.id] {
				return nil, &RowError{t.conf.Name, r.id, fmt.Errorf("%w: two shards have a row with this key", ErrNotReady)}
			}
			seen[r.id] = true
			all = append(all, r)
		}
	}
	return all, nil
}

// from returns the side itself, or the connection that holds its lock.
func (l *lead) from(side *side) interface {
	do(ctx context.Context, f func(*session) error) error
} {
	if s := l.held[side]; s != nil {
		return heldSession{s}
	}
	return side
}

// heldSession is a connection with the lock of its database.
type heldSession struct{ s *session }

func (h heldSession) do(_ context.Context, f func(*session) error) error { return f(h.s) }

// putOnSource writes the rows into the retired table.
func (l *lead) putOnSource(ctx context.Context, t *table, ids []int64, rows []record) (refused []int64, err error) {
	err = l.on(ctx, l.source, func(s *session) error {
		if err := s.side.passBarrier(ctx, s, true); err != nil {
			return err
		}
		if err := s.remove(ctx, t, t.name, ids); err != nil {
			return err
		}
		if refused, err = s.store(ctx, t, t.name, rows); err != nil {
			return err
		}
		return s.side.passBarrier(ctx, s, false)
	})
	return refused, err
}
