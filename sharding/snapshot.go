// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Snapshot is the state of a [Router] at one moment: its tables with their maps. It is immutable
// and safe for concurrent use. A statement uses one snapshot for all its lookups.
type Snapshot struct {
	tables    []Table
	byName    map[string]*Table // by folded logical name
	broadcast map[string]string // folded name to the given name
	named     []string          // the same, in order
	physical  map[string]*Table // by folded names of targets that are not logical ones

	sharded   []Table    // the tables without a migration
	migration *Migration // nil if there is none
	routing   *routing   // of its tables; nil until they are read
	switched  *Snapshot  // see Switched
}

// newSnapshot checks the tables against each other.
func newSnapshot(tables []Table, broadcast []string, dbs DBs) (*Snapshot, error) {
	s := &Snapshot{
		tables:    slices.Clone(tables),
		byName:    make(map[string]*Table, len(tables)),
		broadcast: make(map[string]string, len(broadcast)),
		named:     broadcast,
	}
	for _, name := range broadcast {
		s.broadcast[fold(name)] = name
	}
	var errs []error
	for i := range s.tables {
		t := &s.tables[i]
		t.Also, t.Parents, t.Lookups = slices.Clone(t.Also), slices.Clone(t.Parents), slices.Clone(t.Lookups)
		t.kin = map[string]string{}
		errs = append(errs, t.validate(dbs), s.add(t))
	}
	errs = append(errs, s.checkNames(), checkLookups(s), takeParents(s))
	if errors.Join(errs...) == nil { // otherwise the same mistake would be reported twice
		errs = append(errs, s.checkGroups())
	}
	s.sharded = s.tables
	s.physical = map[string]*Table{}
	for i := range s.tables {
		for _, target := range s.tables[i].Map.targets {
			if s.byName[fold(target.Table)] == nil {
				s.physical[fold(target.Table)] = &s.tables[i]
			}
		}
	}
	return s, errors.Join(errs...)
}

func (s *Snapshot) add(t *Table) error {
	if _, twice := s.byName[fold(t.Name)]; twice {
		return fmt.Errorf("table %q: Name: occurs twice", t.Name)
	}
	s.byName[fold(t.Name)] = t
	if _, both := s.broadcast[fold(t.Name)]; both {
		return fmt.Errorf("table %q: Name: is also a broadcast table; declare it only once", t.Name)
	}
	return nil
}

// checkNames finds physical tables that belong to two tables or that have the name of another
// table.
func (s *Snapshot) checkNames() error {
	var errs []error
	owner := map[Target]string{}
	for i := range s.tables {
		t := &s.tables[i]
		for _, target := range t.Map.targets {
			errs = append(errs, s.checkName(t, target))
			if first, taken := owner[foldTarget(target)]; taken && first != fold(t.Name) {
				errs = append(errs, fmt.Errorf("table %q: Map: target %s belongs to table %q already", t.Name, target, first))
			}
			owner[foldTarget(target)] = fold(t.Name)
		}
	}
	return errors.Join(errs...)
}

// checkName refuses a target with the name of a logical table, unless it is t's own name and no
// other target of t is in that database.
func (s *Snapshot) checkName(t *Table, target Target) error {
	if name, ok := s.broadcast[fold(target.Table)]; ok {
		return fmt.Errorf("table %q: Map: target %s has the name of broadcast table %q", t.Name, target, name)
	}
	logical, ok := s.byName[fold(target.Table)]
	switch {
	case !ok:
		return nil
	case logical != t:
		return fmt.Errorf("table %q: Map: target %s has the name of logical table %q; give physical tables other names", t.Name, target, logical.Name)
	}
	for _, other := range t.Map.targets {
		if other.DB == target.DB && other != target {
			return fmt.Errorf("table %q: Map: target %s has the logical name, and %s is in the same database; only the single target of a database may have the logical name", t.Name, target, other)
		}
	}
	return nil
}

// checkLookups finds lookup tables that are used twice or that are also another kind of table.
func checkLookups(s *Snapshot) error {
	var errs []error
	owner := map[string]string{}
	for i := range s.tables {
		t := &s.tables[i]
		for _, l := range t.Lookups {
			of, sharded := s.byName[fold(l.Table)]
			switch first, taken := owner[fold(l.Table)]; {
			case taken && first != t.Name:
				errs = append(errs, fmt.Errorf("table %q: Lookups: %q belongs to table %q already", t.Name, l.Table, first))
			case s.broadcast[fold(l.Table)] != "":
				errs = append(errs, fmt.Errorf("table %q: Lookups: %q is a broadcast table; a lookup table has no copies", t.Name, l.Table))
			case sharded && (fold(of.Key) != fold(l.Column) || len(of.Lookups) > 0):
				errs = append(errs, fmt.Errorf("table %q: Lookups: %q is sharded by %s; shard it by %s, without lookups of its own", t.Name, l.Table, of.Key, l.Column))
			}
			owner[fold(l.Table)] = t.Name
		}
	}
	return errors.Join(errs...)
}

// columnOf is a column, its name folded.
type columnOf struct {
	table *Table
	name  string
}

func (c columnOf) String() string { return fold(c.table.Name) + "." + c.name }

// takeParents sets the kin of the tables.
func takeParents(s *Snapshot) error {
	var errs []error
	refers := map[columnOf]columnOf{}
	for i := range s.tables {
		t := &s.tables[i]
		for _, p := range t.Parents {
			switch parent, ok := s.byName[fold(p.Table)]; {
			case !ok:
				errs = append(errs, fmt.Errorf("table %q: Parents: %q: %w; declare it, too", t.Name, p.Table, ErrUnknownTable))
			case parent != t && (t.Group == "" || fold(t.Group) != fold(parent.Group)):
				errs = append(errs, fmt.Errorf("table %q: Parents: %q is not in its Group, so their rows may be in different databases; give both the same Group", t.Name, parent.Name))
			case fold(p.ParentID()) == fold(parent.Key):
				errs = append(errs, fmt.Errorf("table %q: Parents: %q is the Key of %q, whose Rule leads to the shard; make %q the Key, or declare it in Also with that Rule", t.Name, p.ParentID(), parent.Name, p.Column))
			default:
				refers[columnOf{t, fold(p.Column)}] = columnOf{parent, fold(p.ParentID())}
			}
		}
	}
	for from, to := range refers {
		first, ok := ancestor(to, refers)
		if !ok {
			errs = append(errs, fmt.Errorf("table %q: Parents: %q leads round in a circle; leave one of its references out", from.table.Name, from.name))
		}
		from.table.kin[from.name], to.table.kin[to.name] = first.String(), first.String()
	}
	return errors.Join(errs...)
}

// ancestor follows references until a column that refers to none. It returns false if there is no such column.
func ancestor(c columnOf, refers map[columnOf]columnOf) (columnOf, bool) {
	for range len(refers) + 1 {
		next, more := refers[c]
		if !more {
			return c, true
		}
		c = next
	}
	return c, false
}

// checkGroups compares each table with the first of its group.
func (s *Snapshot) checkGroups() error {
	var errs []error
	first := map[string]*Table{}
	for i := range s.tables {
		t := &s.tables[i]
		if t.Group == "" {
			continue
		}
		if model, ok := first[fold(t.Group)]; ok {
			errs = append(errs, t.belongsTo(model))
		} else {
			first[fold(t.Group)] = t
		}
	}
	return errors.Join(errs...)
}

// belongsTo returns why rows of one slot of t and of model may be in different databases, or nil.
func (t *Table) belongsTo(model *Table) error {
	if !reflect.DeepEqual(t.Rule, model.Rule) {
		return fmt.Errorf("table %q: Group: its Rule is not that of %q; give both the same one", t.Name, model.Name)
	}
	if t.Map.version != model.Map.version || !slices.Equal(t.Map.held, model.Map.held) || !slices.Equal(t.Map.shared, model.Map.shared) {
		return fmt.Errorf("table %q: Group: its Map has another version than that of %q; change the maps of a group together", t.Name, model.Name)
	}
	for slot := range Slot(t.Rule.Slots()) {
		mine, other := t.Map.index(slot), model.Map.index(slot)
		if mine != other {
			return fmt.Errorf("table %q: Group: its Map distributes slot %d differently than that of %q", t.Name, slot, model.Name)
		}
		if a, b := t.Map.targets[mine], model.Map.targets[other]; a.DB != b.DB {
			return fmt.Errorf("table %q: Group: slot %d is on %s, that of %q on %s; rows of a group share a database", t.Name, slot, a, model.Name, b)
		}
	}
	return nil
}

// with returns s with other maps.
func (s *Snapshot) with(maps map[string]Map, dbs DBs) (*Snapshot, error) {
	tables := slices.Clone(s.sharded)
	replaced := 0
	var errs []error
	for i := range tables {
		for name, m := range maps {
			if fold(name) != fold(tables[i].Name) {
				continue
			}
			replaced++
			if old := tables[i].Map.version; m.version < old || m.version == old && !tables[i].Map.expired() {
				errs = append(errs, fmt.Errorf("table %q: version %d is not above %d: %w; give the new map a higher one with Map.At", tables[i].Name, m.version, old, ErrStaleMap))
			}
			tables[i].Map = m
		}
	}
	if replaced != len(maps) || replaced == 0 {
		errs = append(errs, fmt.Errorf("%d maps for %d tables: %w; name each table once", len(maps), replaced, ErrUnknownTable))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	next, err := newSnapshot(tables, s.named, dbs)
	if err != nil {
		return nil, err
	}
	return next.served(s.migration, s.routing), nil
}

func unknown(table string) error {
	return &RouteError{Op: "route", Table: table, Err: ErrUnknownTable, Hint: hints[ErrUnknownTable]}
}

// refused returns the RouteError for an error of t.
func (t *Table) refused(column string, err error) error {
	return &RouteError{Op: "route", Table: t.Name, Column: column, Err: err, Hint: hintFor(err)}
}

// Target returns the location of the table's row with this sharding key. The case of the table's
// name does not matter. Errors are [RouteError]s.
func (s *Snapshot) Target(table string, key any) (Target, error) {
	t, ok := s.Lookup(table)
	if !ok {
		return Target{}, unknown(table)
	}
	target, err := t.Target(key)
	if err != nil {
		return Target{}, t.refused(t.Key, err)
	}
	return target, nil
}

// TargetBy returns the location of the table's row whose column has this value. The column is the
// sharding key or one of [Table].Also; its case does not matter. Errors are [RouteError]s; an error
// that wraps [ErrMissingKey] means that the value does not lead to a shard.
func (s *Snapshot) TargetBy(table, column string, value any) (Target, error) {
	t, ok := s.Lookup(table)
	if !ok {
		return Target{}, unknown(table)
	}
	target, err := t.TargetBy(column, value)
	if err == nil {
		return target, nil
	}
	refusal := &RouteError{Op: "route", Table: t.Name, Column: column, Err: err, Hint: hintFor(err)}
	if errors.Is(err, ErrMissingKey) {
		refusal.Hint = "add a condition on " + t.Key
	}
	return Target{}, refusal
}

// Targets returns the targets of the table without duplicates, in slot order; nil for a table that
// the router does not know.
func (s *Snapshot) Targets(table string) []Target {
	t, ok := s.Lookup(table)
	if !ok {
		return nil
	}
	return t.Map.Targets()
}

// Everywhere returns every target of the table, for a statement that goes to all of them. While
// slots of the table move, some rows are on two targets, and such a statement would read them
// twice; the error then wraps [ErrSlotMoving]. Errors are [RouteError]s.
func (s *Snapshot) Everywhere(table string) ([]Target, error) {
	t, ok := s.Lookup(table)
	if !ok {
		return nil, unknown(table)
	}
	all, err := t.Everywhere()
	if err != nil {
		return nil, t.refused("", err)
	}
	return all, nil
}

// Slots returns the number of slots of the table, 0 for a table that the router does not know.
func (s *Snapshot) Slots(table string) int {
	if t, ok := s.Lookup(table); ok {
		return t.Rule.Slots()
	}
	return 0
}

// Lookup returns the table with this logical name, in any case. Do not modify it.
func (s *Snapshot) Lookup(name string) (*Table, bool) {
	t, ok := s.byName[fold(name)]
	return t, ok
}

// Physical returns the table that has a target with this name in any database, in any case; nil if
// there is none. It returns nil for names of logical tables.
func (s *Snapshot) Physical(name string) *Table { return s.physical[fold(name)] }

// Table returns the table with this logical name, in any case.
func (s *Snapshot) Table(name string) (Table, bool) {
	t, ok := s.Lookup(name)
	if !ok {
		return Table{}, false
	}
	return *t, true
}

// Tables returns all tables in the order in which they were given.
func (s *Snapshot) Tables() []Table { return slices.Clone(s.tables) }

// IsBroadcast reports whether the table is one of [Broadcast], in any case.
func (s *Snapshot) IsBroadcast(table string) bool {
	_, ok := s.broadcast[fold(table)]
	return ok
}

// Broadcasts returns the names given with [Broadcast], in that order.
func (s *Snapshot) Broadcasts() []string { return slices.Clone(s.named) }

// SameGroup reports whether the rows of one slot of both tables are in one database; see
// [Table].Group. It is true for a table and itself, and false while the source of a [Migration] serves one of them only.
func (s *Snapshot) SameGroup(a, b string) bool {
	first, ok := s.Lookup(a)
	second, also := s.Lookup(b)
	return ok && also && first.sameGroup(second)
}

func (t *Table) sameGroup(other *Table) bool {
	return t == other || t.Group != "" && fold(t.Group) == fold(other.Group) && (t.origin == nil) == (other.origin == nil)
}

// Hinted returns the target that the hint chooses for statements on the table, and whether it
// chooses one. A hint that names another table of the group chooses the target with the same slots.
// A hint that names any other table is refused with [ErrCrossShard]. Errors are [RouteError]s.
func (s *Snapshot) Hinted(table string, h Hint) (Target, bool, error) {
	if !h.Placed() {
		return Target{}, false, nil
	}
	t, ok := s.Lookup(table)
	if !ok {
		return Target{}, false, unknown(table)
	}
	target, err := s.hinted(t, h)
	if err != nil {
		return Target{}, false, t.refused("", err)
	}
	return target, true, nil
}

func (s *Snapshot) hinted(t *Table, h Hint) (Target, error) {
	if h.Table == "" {
		return s.counterpart(t, h.On)
	}
	named, ok := s.Lookup(h.Table)
	if !ok {
		return Target{}, fmt.Errorf("hint on %q: %w", h.Table, ErrUnknownTable)
	}
	if !named.sameGroup(t) {
		return Target{}, fmt.Errorf("%w: the hint names %s, which is not in its group", ErrCrossShard, named.Name)
	}
	slot, err := named.Slot(h.Key)
	if err != nil {
		return Target{}, err
	}
	return t.On(slot)
}

// counterpart returns the target of t that has the slots of on.
func (s *Snapshot) counterpart(t *Table, on Target) (Target, error) {
	for i := range s.tables {
		other := &s.tables[i]
		if !other.sameGroup(t) {
			continue
		}
		if at := slices.Index(other.Map.targets, on); at >= 0 {
			if err := t.Map.usable(); err != nil {
				return Target{}, err
			}
			return t.Map.targets[at], nil
		}
	}
	return Target{}, fmt.Errorf("%w: %s is no target of it or of its group; Router.Targets lists the present ones", ErrCrossShard, on)
}
