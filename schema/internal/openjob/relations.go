// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/sharding"
)

// Tables are the tables of a job, in its order: parents first.
type Tables []*Table

// link is a column that holds the ids of rows of a table.
type link struct {
	column   string
	to       *Table
	declared bool // a foreign key enforces it
}

// route leads from a row to its sharding key.
type route struct {
	hops   []link // up to the table with the column; none: the row has the key itself
	column string
	holder backend.Column     // the column
	ids    *idmap.Renumbering // of its values; nil: they are kept
}

// resolve finds the relations between the tables.
func (all Tables) resolve(source *backend.Database) error {
	for _, t := range all {
		t.up, t.down = all.connect(t.Parents), all.connect(t.Children)
		if err := all.findReferences(t); err != nil {
			return err
		}
	}
	for _, t := range all {
		if err := all.numberAnew(t); err != nil {
			return err
		}
	}
	for _, t := range all {
		t.Rewrites, t.Widened = t.rewritten(), t.idColumns()
		if err := all.findRoute(t, source); err != nil {
			return err
		}
	}
	return nil
}

// relation is a foreign key of a table of the job or to it.
type relation struct {
	backend.ForeignKey

	other *Table // the other table, if it is in the job; otherwise nil
}

// connect finds the tables at the other ends of foreign keys. A switch renames tables, so
// from here on they are compared by pointer, not by name.
func (all Tables) connect(keys []backend.ForeignKey) []relation {
	relations := make([]relation, len(keys))
	for i, fk := range keys {
		relations[i] = relation{fk, all.Find(fk.Table)}
	}
	return relations
}

// findReferences collects the foreign keys to primary keys of the job's tables, and the
// References of the configuration.
func (all Tables) findReferences(t *Table) error {
	t.references = nil
	for _, fk := range t.up {
		for i, column := range fk.Columns {
			if fk.other != nil && (fk.Refers[i] == "" || strings.EqualFold(fk.Refers[i], fk.other.Key)) {
				t.references = append(t.references, link{column, fk.other, true})
			}
		}
	}
	for _, r := range t.Conf.References {
		c, ok := t.Column(r.Column)
		if !ok {
			return fmt.Errorf("%w: table %s has no column %s, which References names as one that refers to %s", backend.ErrUnsupported, t.Conf.Name, r.Column, r.Table)
		}
		to := all.Find(r.Table)
		known, there := t.reference(c.Name)
		if there && known.to != to {
			return fmt.Errorf("%w: column %s of table %s refers to both %s and %s", backend.ErrUnsupported, c.Name, t.Conf.Name, known.to.Conf.Name, r.Table)
		}
		if !there {
			t.references = append(t.references, link{c.Name, to, false})
		}
	}
	return nil
}

// CarriedInto reports whether foreign keys to tables outside of the job change rows of one of
// its tables by themselves.
func (all Tables) CarriedInto(t *Table) bool {
	return slices.ContainsFunc(t.up, func(fk relation) bool { return fk.other == nil && fk.Cascades() })
}

// MayReturn fails when rows could not be written back to the source past foreign keys.
func (all Tables) MayReturn(ctx context.Context, s *backend.Session) error {
	if !slices.ContainsFunc(all, func(t *Table) bool { return t.HasKeys() }) {
		return nil
	}
	if err := s.Database.IgnoreKeys(ctx, s, true); err != nil {
		return err
	}
	return s.Database.IgnoreKeys(ctx, s, false)
}

// Find returns the table of the job that has, had or will have the name.
func (all Tables) Find(name string) *Table {
	for _, t := range all {
		if strings.EqualFold(name, t.Conf.Name) || strings.EqualFold(name, backend.Retired(t.Conf.Name)) {
			return t
		}
	}
	return nil
}

func (t *Table) reference(column string) (link, bool) {
	for _, r := range t.references {
		if strings.EqualFold(r.column, column) {
			return r, true
		}
	}
	return link{}, false
}

// findRoute follows Via up to the table that has the sharding key.
func (all Tables) findRoute(t *Table, source *backend.Database) error {
	r := route{column: t.Conf.Key}
	at := t
	for at.Conf.Via != "" {
		up, ok := at.reference(at.Conf.Via)
		switch {
		case !ok:
			return fmt.Errorf("%w: table %s: no foreign key leads from %s to the primary key of a table of the job; name it in References", backend.ErrUnsupported, at.Conf.Name, at.Conf.Via)
		case !up.declared && source.Name() != "sqlite":
			return fmt.Errorf("%w: table %s: nothing keeps a row from being inserted while the row that %s refers to moves to another shard; declare the foreign key", backend.ErrUnsupported, at.Conf.Name, at.Conf.Via)
		case len(r.hops) == len(all):
			return fmt.Errorf("%w: table %s: its Via columns lead in a circle and not to a sharding key", backend.ErrUnsupported, t.Conf.Name)
		}
		r.hops = append(r.hops, up)
		at = up.to
	}
	c, ok := at.Column(t.Conf.Key)
	if !ok {
		return fmt.Errorf("%w: table %s has no column %s, which is to be the sharding key of %s; a child without it says in Via which column leads to its parent",
			backend.ErrUnsupported, at.Conf.Name, t.Conf.Key, t.Conf.Name)
	}
	r.column, r.holder, r.ids = c.Name, c, at.RenumberingOf(c.Name)
	t.route = r
	return nil
}

// routeExpression is the SQL of the sharding key in a query of the source's
// table. A row whose parent is missing has NULL for it.
func (t *Table) routeExpression(d dialect.Dialect, name string) string {
	above := make([]string, 0, len(t.route.hops)+1) // the tables from the row's own up
	above = append(above, name)
	for _, up := range t.route.hops {
		above = append(above, up.to.Name)
	}
	last := len(above) - 1
	text := backend.ColumnOf(d, above[last], t.route.column)
	for i := last; i > 0; i-- {
		up := t.route.hops[i-1]
		text = fmt.Sprintf("(SELECT %s FROM %s WHERE %s = %s)", text, d.Quote(above[i]), backend.ColumnOf(d, above[i], up.to.Key), backend.ColumnOf(d, above[i-1], up.column))
	}
	return text
}

// RouteText is the SQL of the sharding key, as text in the form that rules take.
func (t *Table) RouteText(s *backend.Database, name string) string {
	return s.KeyText(t.routeExpression(s, name), t.route.holder)
}

// Above are the tables that lead from a row to its sharding key: its parent, the parent's
// parent and so on; none when the row has the key itself.
func (t *Table) Above() []*Table {
	all := make([]*Table, len(t.route.hops))
	for i, up := range t.route.hops {
		all[i] = up.to
	}
	return all
}

// KeyColumn is the column of the last of those tables, or of its own, that holds the
// sharding key.
func (t *Table) KeyColumn() string { return t.route.column }

// RoutesItself reports whether a row of the table determines its shard, by its own sharding
// key or by the id of its parent.
func (t *Table) RoutesItself() bool {
	if c, own := t.Column(t.Conf.Key); own && !strings.EqualFold(c.Name, t.Key) {
		return true
	}
	parent := t.route.hops[0].to
	if len(t.route.hops) == 1 && strings.EqualFold(t.route.column, parent.Key) {
		return true
	}
	return slices.ContainsFunc(parent.Conf.Also, func(a sharding.Alt) bool {
		return strings.EqualFold(a.Column, parent.Key) && a.From <= 0 // ids below From carry no slot
	})
}
