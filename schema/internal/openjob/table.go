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

// TableConfig is what the configuration says of a table.
type TableConfig struct {
	sharding.Table

	IDs        idmap.Numbering // of the primary key; nil keeps them
	Via        string          // the column that leads to the parent with the sharding key
	References []Reference
}

// Reference is a column that holds ids of a table of the job without a foreign
// key that says so.
type Reference struct{ Column, Table string }

// Table is one table of the job, as its database describes it.
type Table struct {
	backend.Table

	Number   int // its place in the job, and its number in logs
	Conf     TableConfig
	Targets  []*Target
	IDs      *idmap.Renumbering   // of the primary key; nil: it is kept
	Rewrites []*idmap.Renumbering // of the columns, in their order; nil: all are kept

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
	Sealed   bool   // bears the name that a rollback gave it
}

// IsRetired reports whether the table has the name of after the switch. The database may
// spell it in another case than the configuration.
func (t *Table) IsRetired() bool { return strings.EqualFold(t.Name, backend.Retired(t.Conf.Name)) }

// Present is the physical name of a shard at present.
func (t *Target) Present() string {
	if t.Sealed {
		return backend.Sealed(t.Name)
	}
	return t.Name
}

// place returns the target of a sharding key's value.
func (t *Table) place(key any) (int, error) {
	at, err := t.TargetOf(key)
	return t.index[at], err
}

// TargetOf is where rows with a value of the sharding key lie, as RouteText selects it.
func (t *Table) TargetOf(key any) (sharding.Target, error) {
	return t.Conf.Target(timeOf(t.Conf.Rule, t.route.holder.Type, key))
}

// timeOf is the time that an application's driver makes of a DATE or DATETIME under
// Interval: the column keeps what the clock of the rule's zone showed. It leaves to the
// rule, which refuses them, texts of other columns: what a TIMESTAMP shows depends on the
// time_zone of the application's session, and SQLite's texts on its driver.
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

// Look finds out which name the shard bears. Of two tables nobody knows which one
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

// Home is the target of a row with the sharding key as it was read; an id in it is
// turned into the new one.
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

// routeID is a sharding key that was read as text, as a number.
func routeID(key any) (int64, bool) {
	text, ok := key.(string)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

// CheckAlso fails when the id of a row says by itself where the row lies, and that is
// not where it is to lie.
func (t *Table) CheckAlso(r *backend.Row) error {
	if r.To == Nowhere || !t.Conf.Leads(t.Key) || len(t.route.hops) == 0 && t.route.column == t.Key {
		return nil
	}
	at, err := t.Conf.TargetBy(t.Key, r.Key)
	switch {
	case errors.Is(err, sharding.ErrMissingKey): // below Alt.From: it says nothing
		return nil
	case err != nil:
		return err
	}
	if to, known := t.index[at]; known && to == r.To {
		return nil
	}
	return fmt.Errorf("%w: the id %d would lead to %s, where the row is not to be; raise Also.From above all ids that carry no slot", backend.ErrNotReady, r.Key, at)
}

// Nowhere is the target of a row whose parent, and with it the sharding key, is
// missing for the moment: it waits for it like one that a unique key refuses.
const Nowhere = -1

// AddTarget adds a physical table of the shards.
func (t *Table) AddTarget(at sharding.Target, on *backend.Database) {
	t.index[at] = len(t.Targets)
	t.Targets = append(t.Targets, &Target{Database: on, Name: at.Table})
}

// WantRoute collects the id in a sharding key, which is read as text, if map tables
// have it.
func (t *Table) WantRoute(wanted idmap.Wanted, route any) {
	if id, ok := routeID(route); ok {
		wanted.Add(t.route.ids, id)
	}
}

// Outside are the foreign keys to the table that are of no table of the job.
func (t *Table) Outside() (keys []backend.ForeignKey) {
	for _, fk := range t.down {
		if fk.other == nil {
			keys = append(keys, fk.ForeignKey)
		}
	}
	return keys
}

// RowError makes an error of one about a row of the table.
func (t *Table) RowError(id int64, err error) error { return t.rowError(t.Conf.Name, id, err) }

// RowErrorOn makes an error of one about a row of one of its shards.
func (t *Table) RowErrorOn(to *Target, id int64, err error) error {
	return t.rowError(to.Name, id, err)
}
