package migrate

import (
	"context"
)

// forward is the stream from the source to the shards.
func (l *lead) forward() *stream {
	return &stream{
		lead: l, from: l.source, log: l.logTable(), bounds: l.spans,
		fetch: func(ctx context.Context, st *stream, t *table, ids []int64) (rows []record, err error) {
			err = st.do(ctx, func(s *session) error {
				rows, err = s.read(ctx, reading{t, t.name, columnOf(s.side, t.name, t.key) + " IN (" + idList(ids) + ")", t.place})
				return err
			})
			return rows, err
		},
		put: l.putOnShards,
	}
}

// putOnShards writes each row to its shard and deletes it from all others: a
// row moves when its sharding key changes. One transaction for each database.
func (l *lead) putOnShards(ctx context.Context, t *table, ids []int64, rows []record) (refused []int64, err error) {
	parts := byTarget(t, rows)
	homes, err := t.homes(ids)
	if err != nil {
		return nil, err
	}
	for _, side := range l.sides {
		var here []int64
		err := l.on(ctx, side, func(s *session) error {
			here = nil
			for i, to := range t.targets {
				if to.side != side {
					continue
				}
				if err := s.remove(ctx, t, to.present(), homes[i]); err != nil {
					return err
				}
				some, err := s.store(ctx, t, to.present(), parts[i])
				if err != nil {
					return err
				}
				here = append(here, some...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		refused = append(refused, here...)
	}
	return refused, nil
}

// homes are the ids that each target may have.
func (t *table) homes(ids []int64) ([][]int64, error) {
	homes := make([][]int64, len(t.targets))
	for i := range homes {
		if !t.sticky() {
			homes[i] = ids
		}
	}
	if !t.sticky() {
		return homes, nil
	}
	for _, id := range ids {
		to, err := t.place(id)
		if err != nil {
			return nil, &RowError{t.conf.Name, id, err}
		}
		homes[to] = append(homes[to], id)
	}
	return homes, nil
}
