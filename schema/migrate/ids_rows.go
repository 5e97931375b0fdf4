package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/sharding"
)

// findSlots notes which values of a row are ids of rows that get others.
func (t *table) findSlots(r *backend.Row) error {
	for i, ids := range t.rewrites {
		if ids == nil {
			continue
		}
		if err := findSlot(r, i); err != nil {
			return fmt.Errorf("column %s: %w", t.Columns[i].Name, err)
		}
	}
	return nil
}

// findSlot notes a value that is an id; NULL is none.
func findSlot(r *backend.Row, at int) error {
	text, ok := r.Value(at)
	if !ok || text == "NULL" { // as SQLite writes it down
		return nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40s is no id", ErrUnsupported, text)
	}
	r.Slots = append(r.Slots, backend.IDSlot{At: at, ID: id})
	return nil
}

// fillSlots puts the ids of the other side where those that were read are.
func (t *table) fillSlots(r *backend.Row, d idmap.Dictionary) error {
	if len(r.Slots) == 0 {
		return nil
	}
	full := make([]byte, 0, len(r.Text)+20*len(r.Slots))
	ends := make([]int, len(r.Ends))
	for i := range ends {
		text, ok := r.Value(i)
		full = append(full, text...)
		if len(r.Slots) > 0 && r.Slots[0].At == i {
			id, err := d.Turn(t.rewrites[i], r.Slots[0].ID)
			if err != nil {
				return err
			}
			full, r.Slots = strconv.AppendInt(full[:len(full)-len(text)], id, 10), r.Slots[1:]
		}
		ends[i] = len(full)
		if !ok {
			ends[i] = ^ends[i]
		}
	}
	r.Text, r.Ends, r.Slots = string(full), ends, nil
	return nil
}

// convert makes rows that were read those that are to be written: with the ids
// of the other side, and on the way to the shards with a target.
func (l *leader) convert(ctx context.Context, t *table, rows []backend.Row, way idmap.Direction) error {
	wanted := idmap.Wanted{}
	for i := range rows {
		t.want(wanted, &rows[i])
	}
	d, err := l.idWriter().Dictionary(ctx, wanted, way)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := t.convert(&rows[i], d); err != nil {
			return &RowError{t.conf.Name, rows[i].ID, err}
		}
	}
	return nil
}

// want collects the ids of a record that map tables have.
func (t *table) want(wanted idmap.Wanted, r *backend.Row) {
	wanted.Add(t.ids, r.ID)
	for _, s := range r.Slots {
		wanted.Add(t.rewrites[s.At], s.ID)
	}
	if id, ok := routeID(r.Route); ok {
		wanted.Add(t.route.ids, id)
	}
}

func (t *table) convert(r *backend.Row, d idmap.Dictionary) error {
	var err error
	if r.Key, err = d.Turn(t.ids, r.ID); err != nil {
		return t.stranded(err, d.Way)
	}
	if err := t.fillSlots(r, d); err != nil {
		return t.stranded(err, d.Way)
	}
	if d.Way == idmap.ToSource {
		return nil
	}
	if r.To, err = t.home(r.Route, d); err != nil {
		return err
	}
	return t.checkAlso(r)
}

// stranded explains why a row of the shards cannot go back.
func (t *table) stranded(err error, way idmap.Direction) error {
	if way == idmap.ToSource {
		err = fmt.Errorf("%w: %w; it was not made by the job or with IDs.New, and the source has no id for it", ErrNotReady, err)
	}
	return err
}

// home is the target of a row with the sharding key as it was read; an id in it is
// turned into the new one.
func (t *table) home(key any, d idmap.Dictionary) (int, error) {
	if key == nil && len(t.route.hops) > 0 {
		return nowhere, nil
	}
	if id, ok := routeID(key); ok && t.route.ids != nil {
		becomes, err := d.Turn(t.route.ids, id)
		if err != nil {
			return 0, err
		}
		key = becomes
	}
	return t.place(key)
}

// routeID is a sharding key that was read as text, as a number.
func routeID(key any) (int64, bool) {
	text, ok := key.(string)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

// checkAlso: a row whose id says by itself where it lies must lie there.
func (t *table) checkAlso(r *backend.Row) error {
	if r.To == nowhere || !t.conf.Leads(t.Key) || len(t.route.hops) == 0 && t.route.column == t.Key {
		return nil
	}
	at, err := t.conf.TargetBy(t.Key, r.Key)
	switch {
	case errors.Is(err, sharding.ErrMissingKey): // below Alt.From: it says nothing
		return nil
	case err != nil:
		return err
	}
	if to, known := t.index[at]; known && to == r.To {
		return nil
	}
	return fmt.Errorf("%w: the id %d would lead to %s, where the row is not to be; raise Also.From above all ids that carry no slot", ErrNotReady, r.Key, at)
}

// keysOf are the ids on the other side of those that have one. What has none was
// never written there.
func (l *leader) keysOf(ctx context.Context, t *table, ids []int64, way idmap.Direction) ([]int64, error) {
	if t.ids == nil {
		return ids, nil
	}
	wanted := idmap.Wanted{}
	for _, id := range ids {
		wanted.Add(t.ids, id)
	}
	d, err := l.mapTable().LookUp(ctx, l.from(l.source), wanted, way)
	if err != nil {
		return nil, err
	}
	keys := make([]int64, 0, len(ids))
	for _, id := range ids {
		if key, err := d.Turn(t.ids, id); err == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
