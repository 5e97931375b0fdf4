package migrate

import (
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
)

// Reference is a column of a table that holds the id of a row of another one, or
// of its own.
type Reference struct {
	// Column is the one that refers.
	Column string
	// Table is the table of the job whose primary key it holds.
	Table string
}

// reference is a column that holds the ids of rows of a table.
type reference struct {
	column   string
	to       *table
	declared bool // the database sees to it
}

// route leads from a row to its sharding key.
type route struct {
	hops   []reference // up to the table with the column; none: it is the row's own
	column string
	holder backend.Column     // what the column is
	ids    *idmap.Renumbering // of what it holds; nil: it is kept
}

// resolve finds out how the tables hang together.
func (w *openJob) resolve() error {
	for _, t := range w.tables {
		t.up, t.down = w.connect(t.Parents), w.connect(t.Children)
		if err := w.findReferences(t); err != nil {
			return err
		}
	}
	for _, t := range w.tables {
		if err := w.numberAnew(t); err != nil {
			return err
		}
	}
	for _, t := range w.tables {
		t.rewrites, t.Widened = t.rewritten(), t.idColumns()
		if err := w.findRoute(t); err != nil {
			return err
		}
	}
	return nil
}

// relation is a foreign key of a table of the job or to it.
type relation struct {
	backend.ForeignKey

	other *table // of the job, whatever it is called by now; nil: it is none of the job's
}

// connect finds the tables at the other ends of foreign keys. A switch renames
// tables, so from here on they are not told by names.
func (w *openJob) connect(keys []backend.ForeignKey) []relation {
	all := make([]relation, len(keys))
	for i, fk := range keys {
		all[i] = relation{fk, w.find(fk.Table)}
	}
	return all
}

// findReferences takes the foreign keys to primary keys of the job's tables, and
// what the configuration adds.
func (w *openJob) findReferences(t *table) error {
	t.references = nil
	for _, fk := range t.up {
		for i, column := range fk.Columns {
			if fk.other != nil && (fk.Refers[i] == "" || strings.EqualFold(fk.Refers[i], fk.other.Key)) {
				t.references = append(t.references, reference{column, fk.other, true})
			}
		}
	}
	for _, r := range t.conf.References {
		c, ok := t.Column(r.Column)
		if !ok {
			return fmt.Errorf("%w: table %s has no column %s, which is said to refer to %s", ErrUnsupported, t.conf.Name, r.Column, r.Table)
		}
		to := w.find(r.Table)
		known, there := t.reference(c.Name)
		if there && known.to != to {
			return fmt.Errorf("%w: column %s of table %s refers to both %s and %s", ErrUnsupported, c.Name, t.conf.Name, known.to.conf.Name, r.Table)
		}
		if !there {
			t.references = append(t.references, reference{c.Name, to, false})
		}
	}
	return nil
}

// find returns the table of the job that has, had or will have the name.
func (w *openJob) find(name string) *table {
	for _, t := range w.tables {
		if strings.EqualFold(name, t.conf.Name) || strings.EqualFold(name, backend.Retired(t.conf.Name)) {
			return t
		}
	}
	return nil
}

func (t *table) reference(column string) (reference, bool) {
	for _, r := range t.references {
		if strings.EqualFold(r.column, column) {
			return r, true
		}
	}
	return reference{}, false
}

// findRoute goes up to the table that has the sharding key.
func (w *openJob) findRoute(t *table) error {
	r := route{column: t.conf.Key}
	at := t
	for at.conf.Via != "" {
		up, ok := at.reference(at.conf.Via)
		switch {
		case !ok:
			return fmt.Errorf("%w: table %s: no foreign key leads from %s to the primary key of a table of the job; name it in References", ErrUnsupported, at.conf.Name, at.conf.Via)
		case !up.declared && w.source.Name() == "mysql":
			return fmt.Errorf("%w: table %s: nothing keeps a row from being inserted while the row that %s refers to moves to another shard; declare the foreign key", ErrUnsupported, at.conf.Name, at.conf.Via)
		case len(r.hops) == len(w.tables):
			return fmt.Errorf("%w: table %s: its way to the sharding key is a circle", ErrUnsupported, t.conf.Name)
		}
		r.hops = append(r.hops, up)
		at = up.to
	}
	c, ok := at.Column(t.conf.Key)
	if !ok {
		return fmt.Errorf("%w: table %s has no column %s, which is to be the sharding key of %s; a child without it says in Via which column leads to its parent",
			ErrUnsupported, at.conf.Name, t.conf.Key, t.conf.Name)
	}
	r.column, r.holder, r.ids = c.Name, c, at.renumberingOf(c.Name)
	t.route = r
	return nil
}

// routeExpression is the SQL of the sharding key in a query of the source's
// table. A row whose parent is missing has NULL for it.
func (t *table) routeExpression(d dialect.Dialect, name string) string {
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

// routeText is the sharding key as rules are given it.
func (t *table) routeText(s *backend.Database, name string) string {
	return s.KeyText(t.routeExpression(s, name), t.route.holder)
}

// nowhere is the target of a row whose parent, and with it the sharding key, is
// missing for the moment: it waits for it like one that a unique key refuses.
const nowhere = -1

// routedBelow finds the tables whose rows move when a row of t changes, and the
// columns of t on which that depends.
func (w *openJob) routedBelow(t *table) []backend.Dependent {
	var all []backend.Dependent
	for _, child := range w.tables {
		for i, up := range child.route.hops {
			if up.to != t {
				continue
			}
			d := backend.Dependent{Number: child.ord, Key: child.Key, Path: w.links(child, i+1), Watch: []string{t.Key, child.route.column}, Routed: true}
			if i+1 < len(child.route.hops) {
				d.Watch[1] = child.route.hops[i+1].column
			}
			all = append(all, d)
		}
	}
	return all
}

// links are the first n hops of a table's route.
func (w *openJob) links(t *table, n int) []backend.Link {
	path := make([]backend.Link, n)
	at := t
	for i, up := range t.route.hops[:n] {
		path[i] = backend.Link{Child: w.bodyName(at), Columns: []string{up.column}, Refers: []string{up.to.Key}}
		at = up.to
	}
	return path
}

// bodyName is how the body of a trigger names a table: MySQL looks tables up when
// the trigger runs, SQLite writes renames into it.
func (w *openJob) bodyName(t *table) string {
	if w.source.Name() == "sqlite" {
		return t.Name
	}
	return t.conf.Name
}
