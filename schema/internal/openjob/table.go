// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/sharding"
)

// TableConfig is the configuration of a table.
type TableConfig struct {
	sharding.Table

	IDs        idmap.Numbering // new ids for the primary key; nil keeps the ids
	Via        string          // the column that leads to the parent with the sharding key
	References []Reference
}

// Reference is a column that holds ids of a table of the job without being a foreign key.
type Reference struct{ Column, Table string }

// Table is one table of the job, as its database describes it.
type Table struct {
	backend.Table

	Number   int // its place in the job, and its number in logs
	Conf     TableConfig
	Targets  []*Target
	IDs      *idmap.Renumbering   // of the primary key; nil keeps it
	Rewrites []*idmap.Renumbering // of the columns, in their order; nil keeps all

	index      map[sharding.Target]int
	up, down   []relation // foreign keys of the table, and to it
	references []link
	route      route
	rowError   func(table string, id int64, err error) error
}

// Target is one physical table of a table's shards.
type Target struct {
	Database *backend.Database
	Name     string // while the shards serve, and before
	Sealed   bool   // has the name that a rollback gave it
	Keyed    bool   // of a mover: it has foreign keys, or others refer to it
}

// IsRetired reports whether the table has the name that a switch gives it. The case may
// differ from the configuration's.
func (t *Table) IsRetired() bool { return strings.EqualFold(t.Name, backend.Retired(t.Conf.Name)) }

// Present is the physical name of a shard at present.
func (t *Target) Present() string {
	if t.Sealed {
		return backend.Sealed(t.Name)
	}
	return t.Name
}

// place returns the index of the target for a sharding key's value.
func (t *Table) place(key any) (int, error) {
	at, err := t.TargetOf(key)
	return t.index[at], err
}

// TargetOf returns the target for a value of the sharding key, as RouteText selects it.
func (t *Table) TargetOf(key any) (sharding.Target, error) {
	return t.Conf.Target(timeOf(t.Conf.Rule, t.route.holder.Type, key))
}

// timeOf turns a DATE or DATETIME under Interval into the time that an application's driver
// makes of it: the column stores local time in the rule's zone. Texts of other columns are
// left to the rule, which refuses them: a TIMESTAMP depends on the time_zone of the
// application's session, and SQLite's texts on its driver.
func timeOf(rule sharding.Rule, columnType string, key any) any {
	r, isInterval := rule.(sharding.IntervalRule)
	layout, isTime := map[string]string{"date": time.DateOnly, "datetime": time.DateTime}[columnType]
	text, isText := key.(string)
	if !isInterval || !isTime || !isText {
		return key
	}
	at, err := time.ParseInLocation(layout, text, r.Zone())
	if err != nil {
		return key // 0000-00-00
	}
	return at
}

// Look finds out which name the shard has. If both tables exist, it is unknown which one
// has the rows.
func (t *Target) Look(ctx context.Context, s *backend.Session) (err error) {
	if t.Sealed, err = s.Database.Exists(ctx, s, backend.Sealed(t.Name)); err != nil || !t.Sealed {
		return err
	}
	open, err := s.Database.Exists(ctx, s, t.Name)
	if err == nil && open {
		err = fmt.Errorf("%w: there is a table %s beside %s, which has the rows of the job; see who made it and what it holds, and drop it", backend.ErrNotReady, t.Name, backend.Sealed(t.Name))
	}
	return err
}

// Home is the target of a row by its sharding key as it was read; an id in it is translated
// to the new one.
func (t *Table) Home(key any, d idmap.Dictionary) (int, error) {
	if key == nil && len(t.route.hops) > 0 {
		return Nowhere, nil
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

// routeID parses a sharding key that was read as text.
func routeID(key any) (int64, bool) {
	text, ok := key.(string)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

// CheckAlso fails when the id of a row carries the slot of another shard than the row's.
func (t *Table) CheckAlso(r *backend.Row) error {
	if r.To == Nowhere || !t.Conf.Leads(t.Key) || len(t.route.hops) == 0 && t.route.column == t.Key {
		return nil
	}
	at, err := t.Conf.TargetBy(t.Key, r.Key)
	switch {
	case errors.Is(err, sharding.ErrMissingKey): // below Also.From: the id carries no slot
		return nil
	case err != nil:
		return err
	}
	if to, known := t.index[at]; known && to == r.To {
		return nil
	}
	return fmt.Errorf("%w: the id %d leads to %s, but the row belongs to another shard; raise Also.From above all ids that carry no slot", backend.ErrNotReady, r.Key, at)
}

// Nowhere is the target of a row whose parent, and with it the sharding key, is missing at
// present: it waits, like a row that a unique key refuses.
const Nowhere = -1

// AddTarget adds a physical table of the shards.
func (t *Table) AddTarget(at sharding.Target, on *backend.Database) {
	t.index[at] = len(t.Targets)
	t.Targets = append(t.Targets, &Target{Database: on, Name: at.Table})
}

// WantRoute collects the id in a sharding key, which is read as text, if a map table has to
// translate it.
func (t *Table) WantRoute(wanted idmap.Wanted, route any) {
	if id, ok := routeID(route); ok {
		wanted.Add(t.route.ids, id)
	}
}

// Outside are foreign keys to the table from tables outside of the job.
func (t *Table) Outside() (keys []backend.ForeignKey) {
	for _, fk := range t.down {
		if fk.other == nil {
			keys = append(keys, fk.ForeignKey)
		}
	}
	return keys
}

// RowError turns an error into one about a row of the table.
func (t *Table) RowError(id int64, err error) error { return t.rowError(t.Conf.Name, id, err) }

// RowErrorOn turns an error into one about a row of one of its shards.
func (t *Table) RowErrorOn(to *Target, id int64, err error) error {
	return t.rowError(to.Name, id, err)
}
