package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/shardid/shardid/sharding"
)

// hole is an id in a record that is another one on the other side.
type hole struct {
	at  int // which of the values
	id  int64
	ids *renumbering
}

// digAll leaves holes for the values that are ids.
func (r *record) digAll(t *table) error {
	for i, ids := range t.rewrites {
		if ids == nil {
			continue
		}
		if err := r.dig(i, ids); err != nil {
			return fmt.Errorf("column %s: %w", t.columns[i].name, err)
		}
	}
	return nil
}

// dig leaves a hole for a value that is an id; NULL needs none.
func (r *record) dig(at int, ids *renumbering) error {
	text, ok := r.value(at)
	if !ok || text == "NULL" { // as SQLite writes it down
		return nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40s is no id", ErrUnsupported, text)
	}
	r.holes = append(r.holes, hole{at, id, ids})
	return nil
}

// fill puts the ids of the other side into the holes.
func (r *record) fill(d dictionary) error {
	if len(r.holes) == 0 {
		return nil
	}
	full := make([]byte, 0, len(r.text)+20*len(r.holes))
	ends := make([]int, len(r.ends))
	for i := range ends {
		text, ok := r.value(i)
		full = append(full, text...)
		if len(r.holes) > 0 && r.holes[0].at == i {
			id, err := d.turn(r.holes[0].ids, r.holes[0].id)
			if err != nil {
				return err
			}
			full, r.holes = strconv.AppendInt(full[:len(full)-len(text)], id, 10), r.holes[1:]
		}
		ends[i] = len(full)
		if !ok {
			ends[i] = ^ends[i]
		}
	}
	r.text, r.ends, r.holes = string(full), ends, nil
	return nil
}

// convert makes rows that were read those that are to be written: with the ids
// of the other side, and on the way to the shards with a target.
func (l *lead) convert(ctx context.Context, t *table, rows []record, way direction) error {
	wanted := drawnIDs{}
	for i := range rows {
		t.want(wanted, &rows[i])
	}
	d, err := l.dictionary(ctx, wanted, way)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := t.convert(&rows[i], d); err != nil {
			return &RowError{t.conf.Name, rows[i].id, err}
		}
	}
	return nil
}

// want collects the ids of a record that map tables have.
func (t *table) want(wanted drawnIDs, r *record) {
	wanted.add(t.ids, r.id)
	for _, h := range r.holes {
		wanted.add(h.ids, h.id)
	}
	if id, ok := routeID(r.route); ok {
		wanted.add(t.route.ids, id)
	}
}

func (t *table) convert(r *record, d dictionary) error {
	var err error
	if r.key, err = d.turn(t.ids, r.id); err != nil {
		return t.stranded(err, d.way)
	}
	if err := r.fill(d); err != nil {
		return t.stranded(err, d.way)
	}
	if d.way == toSource {
		return nil
	}
	if r.to, err = t.home(r.route, d); err != nil {
		return err
	}
	return t.checkAlso(r)
}

// stranded explains why a row of the shards cannot go back.
func (t *table) stranded(err error, way direction) error {
	if way == toSource {
		err = fmt.Errorf("%w: %w; it was not made by the job or with IDs.New, and the source has no id for it", ErrNotReady, err)
	}
	return err
}

// home is the target of a row with the sharding key as it was read; an id in it is
// turned into the new one.
func (t *table) home(key any, d dictionary) (int, error) {
	if key == nil && len(t.route.hops) > 0 {
		return nowhere, nil
	}
	if id, ok := routeID(key); ok && t.route.ids != nil {
		becomes, err := d.turn(t.route.ids, id)
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
func (t *table) checkAlso(r *record) error {
	if r.to == nowhere || !t.conf.Leads(t.key) || len(t.route.hops) == 0 && t.route.column == t.key {
		return nil
	}
	at, err := t.conf.TargetBy(t.key, r.key)
	switch {
	case errors.Is(err, sharding.ErrMissingKey): // below Alt.From: it says nothing
		return nil
	case err != nil:
		return err
	}
	if to, known := t.index[at]; known && to == r.to {
		return nil
	}
	return fmt.Errorf("%w: the id %d would lead to %s, where the row is not to be; raise Also.From above all ids that carry no slot", ErrNotReady, r.key, at)
}

// keysOf are the ids on the other side of those that have one. What has none was
// never written there.
func (l *lead) keysOf(ctx context.Context, t *table, ids []int64, way direction) ([]int64, error) {
	if t.ids == nil {
		return ids, nil
	}
	wanted := drawnIDs{}
	for _, id := range ids {
		wanted.add(t.ids, id)
	}
	d, err := l.lookUp(ctx, l.from(l.source), wanted, way)
	if err != nil {
		return nil, err
	}
	keys := make([]int64, 0, len(ids))
	for _, id := range ids {
		if key, err := d.turn(t.ids, id); err == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
