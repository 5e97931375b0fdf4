package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/proto"
)

// numberAnew gives a table its renumbering. One whose primary key refers to
// another table shares that one's.
func (w *openJob) numberAnew(t *table) error {
	owner := t
	for range w.tables {
		up, refers := owner.reference(owner.Key)
		if !refers || up.to == owner {
			break
		}
		owner = up.to
	}
	if owner != t && !t.conf.IDs.keeps() && t.conf.IDs.String() != owner.conf.IDs.String() {
		return fmt.Errorf("%w: table %s: its primary key refers to %s, so its ids become what those become (%s); leave out IDs", ErrUnsupported, t.conf.Name, owner.conf.Name, owner.conf.IDs)
	}
	if owner.conf.IDs.keeps() {
		return nil
	}
	if owner.ids == nil {
		owner.ids = &idmap.Renumbering{By: owner.conf.IDs.by, Of: &owner.Table, Number: owner.ord}
	}
	t.ids = owner.ids
	return nil
}

// numbering says what becomes of the table's ids.
func (t *table) numbering() string {
	if t.ids == nil {
		return KeepIDs().String()
	}
	return t.ids.Text()
}

// renumberingOf is what becomes of the values of a column.
func (t *table) renumberingOf(column string) *idmap.Renumbering {
	if strings.EqualFold(column, t.Key) {
		return t.ids
	}
	if r, ok := t.reference(column); ok {
		return r.to.ids
	}
	return nil
}

// rewritten are the renumberings of the table's columns, in their order; nil when
// none is rewritten.
func (t *table) rewritten() []*idmap.Renumbering {
	all := make([]*idmap.Renumbering, len(t.Columns))
	some := false
	for i, c := range t.Columns {
		all[i] = t.renumberingOf(c.Name)
		some = some || all[i] != nil
	}
	if !some {
		return nil
	}
	return all
}

// idColumns are the columns that hold ids of the job, which may become long ones.
func (t *table) idColumns() []string {
	all := []string{t.Key}
	for _, r := range t.references {
		if !strings.EqualFold(r.column, t.Key) {
			all = append(all, r.column)
		}
	}
	return all
}

// checkIDs fails when an id that exists has no counterpart on the shards.
func (w *openJob) checkIDs(ctx context.Context, s *backend.Session) error {
	for _, t := range w.tables {
		if err := t.checkIDs(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// checkIDs looks at both ends of each column: what they can be turned into, all
// between them can.
func (t *table) checkIDs(ctx context.Context, s *backend.Session) error {
	for i, r := range t.rewrites {
		if r == nil {
			continue
		}
		column := t.Columns[i].Name
		for _, end := range []string{"MIN", "MAX"} {
			id, err := s.Number(ctx, fmt.Sprintf("SELECT %s(%s) FROM %s", end, s.Database.Quote(column), s.Database.Quote(t.Name)))
			if err != nil {
				return fmt.Errorf("table %s, column %s: %w", t.conf.Name, column, err)
			}
			if err := r.Accepts(id); err != nil {
				return fmt.Errorf("%w: table %s, column %s: %w", ErrUnsupported, t.conf.Name, column, err)
			}
		}
	}
	return nil
}

// pruneRenumbered removes rows of a chunk from the shards, where they lie in
// another order. A row without counterpart is none that was copied.
func (l *leader) pruneRenumbered(ctx context.Context, t *table, c proto.Chunk) error {
	for _, to := range t.targets {
		err := l.eachKey(ctx, t, to, func(keys []int64) error {
			doomed, err := l.among(ctx, t, keys, c)
			if err != nil || len(doomed) == 0 {
				return err
			}
			return l.on(ctx, to.side, func(s *backend.Session) error { return removeRows(ctx, s, t, to.present(), doomed) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachKey calls out with the ids of a target's rows, some thousands at a time.
func (w *openJob) eachKey(ctx context.Context, t *table, to *target, out func(keys []int64) error) error {
	after := proto.Bound{}
	for {
		var keys []int64
		err := to.side.Do(ctx, func(s *backend.Session) (err error) {
			key := s.Database.Quote(t.Key)
			keys, err = s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT %[4]d", key, s.Database.Quote(to.present()), above(key, after), pruneRows))
			return err
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := out(keys); err != nil {
			return err
		}
		after = proto.At(keys[len(keys)-1])
	}
}

func above(key string, after proto.Bound) string {
	if !after.Set {
		return ""
	}
	return fmt.Sprintf(" WHERE %s > %d", key, after.ID)
}

// among are the ids of shards whose rows are those of a chunk.
func (l *leader) among(ctx context.Context, t *table, keys []int64, c proto.Chunk) ([]int64, error) {
	wanted := idmap.Wanted{}
	for _, key := range keys {
		wanted.Add(t.ids, key)
	}
	d, err := l.mapTable().LookUp(ctx, l.source, wanted, idmap.ToSource)
	if err != nil {
		return nil, err
	}
	var found []int64
	for _, key := range keys {
		old, err := d.Turn(t.ids, key)
		if err == nil && !c.After.Covers(old) && c.To.Covers(old) {
			found = append(found, key)
		}
	}
	return found, nil
}
