// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"fmt"
	"strconv"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Convert translates the ids of rows that were read to those of the other side. For rows
// that go to the shards it also finds the target.
func Convert(ctx context.Context, ids idmap.Writer, t *openjob.Table, rows []backend.Row, way idmap.Direction) error {
	wanted := idmap.Wanted{}
	for i := range rows {
		want(wanted, t, &rows[i])
	}
	d, err := ids.Dictionary(ctx, wanted, way)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := convertRow(t, &rows[i], d); err != nil {
			return t.RowError(rows[i].ID, err)
		}
	}
	return nil
}

// want collects the ids of a row that map tables have to translate.
func want(wanted idmap.Wanted, t *openjob.Table, r *backend.Row) {
	wanted.Add(t.IDs, r.ID)
	for _, s := range r.Slots {
		wanted.Add(t.Rewrites[s.At], s.ID)
	}
	t.WantRoute(wanted, r.Route)
}

func convertRow(t *openjob.Table, r *backend.Row, d idmap.Dictionary) error {
	var err error
	if r.Key, err = d.Turn(t.IDs, r.ID); err != nil {
		return stranded(err, d.Way)
	}
	if err := fillSlots(t, r, d); err != nil {
		return stranded(err, d.Way)
	}
	if d.Way == idmap.ToSource {
		return nil
	}
	if r.To, err = t.Home(r.Route, d); err != nil {
		return err
	}
	return t.CheckAlso(r)
}

// stranded explains why a row of the shards cannot be written to the source.
func stranded(err error, way idmap.Direction) error {
	if way == idmap.ToSource {
		err = fmt.Errorf("%w: %w; it was not made by the job or with IDs.New, and the source has no id for it", backend.ErrNotReady, err)
	}
	return err
}

// findSlots notes which values of a row are ids that get new ones.
func findSlots(t *openjob.Table, r *backend.Row) error {
	for i, ids := range t.Rewrites {
		if ids == nil {
			continue
		}
		if err := findSlot(r, i); err != nil {
			return fmt.Errorf("column %s: %w", t.Columns[i].Name, err)
		}
	}
	return nil
}

// findSlot notes a value that is an id; NULL is skipped.
func findSlot(r *backend.Row, at int) error {
	text, ok := r.Value(at)
	if !ok || text == "NULL" { // SQLite's literal for NULL
		return nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40s is no id", backend.ErrUnsupported, text)
	}
	r.Slots = append(r.Slots, backend.IDSlot{At: at, ID: id})
	return nil
}

// fillSlots replaces the ids that were read by those of the other side.
func fillSlots(t *openjob.Table, r *backend.Row, d idmap.Dictionary) error {
	if len(r.Slots) == 0 {
		return nil
	}
	full := make([]byte, 0, len(r.Text)+20*len(r.Slots))
	ends := make([]int, len(r.Ends))
	for i := range ends {
		text, ok := r.Value(i)
		full = append(full, text...)
		if len(r.Slots) > 0 && r.Slots[0].At == i {
			id, err := d.Turn(t.Rewrites[i], r.Slots[0].ID)
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
