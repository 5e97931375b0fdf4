// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/nilness"
)

// Table is a sharded table, which the application knows by one logical name. It is an [Option] of
// [New].
type Table struct {
	// Name is the logical name, which models and statements use. A physical table may have this
	// name if it is the table's only one in its database, as in Vitess and Citus. Otherwise no
	// physical table may have it, so that SQL that bypasses the router fails instead of reading a
	// forgotten table. Names are compared without regard to case.
	Name string
	// Key is the column that holds the sharding key. It is written as in the database; statements may write it otherwise. Statements are
	// refused with [ErrKeyType] if two columns of the table have names that differ only in case, as PostgreSQL allows ("userId" and userid).
	Key string
	// Rule turns a key into a slot. There is no default.
	Rule Rule
	// Map turns a slot into a target.
	Map Map
	// Also are other columns that lead to the same slot as Key: for example, the id of an order
	// that contains the slot of its user (gene ids, 基因法). Defaults to none.
	Also []Alt
	// Parents are columns that hold ids of rows in whose slots this table's rows are, such as order_id
	// in an order's items. A join or a subquery by such a column stays on one shard, as one by Key does,
	// also while the ids do not carry the slot. Defaults to none.
	Parents []Parent
	// Lookups are columns that do not lead to the slot, but by which rows are found through a
	// lookup table. It maps a value, such as a user's e-mail address, to the sharding keys of its
	// rows. Package shardsql maintains and reads it. Defaults to none.
	Lookups []Lookup
	// Group names the tables whose rows belong together, such as orders and their items (binding
	// tables, 绑定表). They have the same rule, and maps of the same shape over the same databases, so
	// that a join of rows of one slot stays in one database. Defaults to "": the table has its own
	// group. Names are compared without regard to case.
	Group string
	// OnMissing says how a read without a sharding key is executed. The zero value is [Default].
	OnMissing Policy

	origin     *Origin           // while the source of a Migration serves the table
	unnumbered string            // see Unnumbered
	kin        map[string]string // see Kin
}

// Origin returns the location of a table that a [Migration] is still moving, nil when its shards
// serve. The origin is then the table's only target: statements use the same name, need no sharding
// key, and the database numbers the rows. Do not modify it.
func (t *Table) Origin() *Origin { return t.origin }

// Unnumbered returns the column that the source of a [Migration] numbered until its first switch,
// and "" before the switch and if there is no such column. Each inserted row needs a value for it:
// two shards would assign the same number, and a source that serves again after a rollback would
// assign numbers that generators have assigned.
func (t *Table) Unnumbered() string { return t.unnumbered }

// Alt is a column other than the sharding key that leads to the same slot.
type Alt struct {
	// Column is its name. In a row that has NULL in it, only Key says where the row is.
	Column string
	// Rule turns its value into the slot; it has as many slots as the table's.
	Rule Rule
	// From is the first value that carries the slot. Integers below it, which were made before ids
	// carried slots, do not lead to a slot. Defaults to 0, so negative integers never lead to one.
	From int64
}

// Parent is a column that refers to rows of a table: its own, or one of its Group. It is a promise about the data, on which
// the router relies: no two shards have parents with one ID, and all rows with one value of the column are in the slot of the
// parent with this ID. A foreign key from Column to ID on each shard keeps the second half. Rows without a parent must have
// NULL, not 0. The router does not check it; schema.Doctor reports the rows whose parents are not on their shard.
type Parent struct {
	// Column is the referring column. It holds integers, bytes, UUIDs, or texts that are compared by their bytes;
	// for other columns nothing is promised.
	Column string
	// Table is the logical name of the parent.
	Table string
	// ID is the column of the parent whose value Column has. Defaults to "id".
	ID string
}

// ParentID returns ID, or its default.
func (p Parent) ParentID() string { return cmp.Or(p.ID, "id") }

// Lookup is a column whose values lead to the shard through a lookup table (Vitess: a consistent
// lookup vindex). A row of the lookup table has a value of the column, the sharding key of the rows
// that have it, and a number that distinguishes one claim of the value from the next. Package
// lookups creates, fills and checks such tables. Package shardsql documents the statements that use
// them.
type Lookup struct {
	// Column is the column of the table. On each shard it has an index that begins with it; a
	// unique index if Unique is set.
	Column string
	// Table is the lookup table. It is in the home database, unless the router has a sharded table
	// of this name with the key Column: then it is sharded by the value.
	Table string
	// Unique says that a value has one owner on all shards together. A second owner is refused with
	// the database's duplicate-key error.
	Unique bool
	// Building says that the lookup table does not have all rows yet: writes maintain it, reads do
	// not use it, and Unique is not enforced. It is for the time until lookups.Build has filled it.
	Building bool
}

// ClaimColumn is the column of a lookup table that holds the claim.
const ClaimColumn = "claim"

// Policy says how a read without a sharding key is executed.
type Policy int

const (
	// Default is FanOutReads.
	Default Policy = iota
	// Refuse refuses it with [ErrMissingKey], and also a write that would need a search.
	Refuse
	// FanOutReads sends it to every target, within the limits of [FanOut]. A write that names its rows by values of a
	// primary or unique key of one column, or of a column of Parents, is sent to the shards that have them, after a
	// search of all. Other writes are refused; [AllShards] allows them.
	FanOutReads
)

// validate returns all errors of t by itself.
func (t *Table) validate(dbs DBs) error {
	var errs []error
	add := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("table %q: %s: %w", t.Name, field, err))
		}
	}
	add("Name", dialect.CheckIdent(t.Name))
	add("Key", dialect.CheckIdent(t.Key))
	add("Rule", checkRule(t.Rule))
	if n := slotsOf(t.Rule); n > 0 {
		add("Map", t.Map.fits(n))
	}
	add("Map", t.checkDatabases(dbs))
	add("Also", t.checkAlso())
	add("Parents", t.checkParents())
	add("Lookups", t.checkLookups())
	if t.OnMissing < Default || t.OnMissing > FanOutReads {
		add("OnMissing", fmt.Errorf("is %d; leave it out, or set Refuse or FanOutReads", t.OnMissing))
	}
	return errors.Join(errs...)
}

func (t *Table) checkDatabases(dbs DBs) error {
	var errs []error
	seen := map[string]bool{}
	for _, target := range t.Map.targets {
		if dbs[target.DB] == nil && !seen[target.DB] {
			errs = append(errs, fmt.Errorf("target %s: the router has no database %q", target, target.DB))
		}
		seen[target.DB] = true
	}
	return errors.Join(errs...)
}

func (t *Table) checkAlso() error {
	var errs []error
	seen := map[string]bool{fold(t.Key): true}
	for _, alt := range t.Also {
		errs = append(errs, dialect.CheckIdent(alt.Column))
		if seen[fold(alt.Column)] {
			errs = append(errs, fmt.Errorf("column %q occurs twice", alt.Column))
		}
		seen[fold(alt.Column)] = true
		if err := checkRule(alt.Rule); err != nil {
			errs = append(errs, fmt.Errorf("column %q: Rule %w", alt.Column, err))
		} else if n := slotsOf(t.Rule); n > 0 && alt.Rule.Slots() != n {
			errs = append(errs, fmt.Errorf("column %q: Rule has %d slots, that of %q %d; both must lead to the same slots", alt.Column, alt.Rule.Slots(), t.Key, n))
		}
	}
	return errors.Join(errs...)
}

func (t *Table) checkParents() error {
	var errs []error
	for i, p := range t.Parents {
		errs = append(errs, dialect.CheckIdent(p.Column), dialect.CheckIdent(p.ParentID()))
		switch {
		case fold(p.Column) == fold(t.Key):
			errs = append(errs, fmt.Errorf("column %q is the Key, which leads to the shard by itself; remove it from Parents", p.Column))
		case slices.ContainsFunc(t.Parents[:i], func(other Parent) bool { return fold(other.Column) == fold(p.Column) }):
			errs = append(errs, fmt.Errorf("column %q occurs twice", p.Column))
		}
	}
	return errors.Join(errs...)
}

// Kin returns the columns, in lower case, by whose values the rows of t share their slots with other rows: those that refer to
// parents by Parents, and those to which the Parents of tables refer. Columns with one name in the map have ids of one parent.
// Do not modify it.
func (t *Table) Kin() map[string]string { return t.kin }

func (t *Table) checkLookups() error {
	var errs []error
	for i, l := range t.Lookups {
		errs = append(errs, dialect.CheckIdent(l.Column), dialect.CheckIdent(l.Table))
		switch {
		case t.Leads(l.Column):
			errs = append(errs, fmt.Errorf("column %q leads to the shard by itself; remove its lookup", l.Column))
		case fold(l.Column) == ClaimColumn || fold(t.Key) == ClaimColumn:
			errs = append(errs, fmt.Errorf("column %q: a lookup table has a column of its own called %q", l.Column, ClaimColumn))
		}
		for _, other := range t.Lookups[:i] {
			if fold(other.Column) == fold(l.Column) || fold(other.Table) == fold(l.Table) {
				errs = append(errs, fmt.Errorf("column %q in %q: another lookup has this column or this table", l.Column, l.Table))
			}
		}
	}
	return errors.Join(errs...)
}

// checked is the additional method of rules of this package.
type checked interface {
	check() error
}

// slotsOf returns the number of slots, 0 for a nil rule, a nil pointer included.
func slotsOf(r Rule) int {
	if nilness.Is(r) {
		return 0
	}
	return r.Slots()
}

func checkRule(r Rule) error {
	if nilness.Is(r) {
		return errors.New("is nil; set Low, Mod, Hash or another rule")
	}
	if c, ok := r.(checked); ok {
		if err := c.check(); err != nil {
			return err
		}
	}
	if n := r.Slots(); n < 1 || n > MaxSlots {
		return fmt.Errorf("has %d slots; from 1 to %d are possible", n, MaxSlots)
	}
	return nil
}

// Slot returns the slot of the row with this sharding key. Its errors wrap
// [ErrKeyType] or [ErrNoSlot]; t must be one that [New] accepted.
func (t *Table) Slot(key any) (Slot, error) { return within(t.Rule, key) }

// within returns the slot of key, and checks that it is a slot of the rule.
func within(r Rule, key any) (Slot, error) {
	s, err := r.Slot(key)
	if err == nil && (s < 0 || int(s) >= r.Slots()) {
		err = fmt.Errorf("slot %d: %w", s, ErrNoSlot)
	}
	if err != nil {
		return 0, err
	}
	return s, nil
}

// Target returns the location of the row with this sharding key. Its errors wrap [ErrKeyType],
// [ErrNoSlot], [ErrSlotMoving], [ErrStaleMap] or [ErrRouteUnread]. t must be one that [New]
// accepted.
func (t *Table) Target(key any) (Target, error) {
	s, err := t.Slot(key)
	if err != nil {
		return Target{}, err
	}
	return t.On(s)
}

// On returns the target of a slot, one of the table's. Its errors wrap
// [ErrSlotMoving], [ErrStaleMap] or [ErrRouteUnread].
func (t *Table) On(s Slot) (Target, error) {
	if err := t.Map.usable(); err != nil {
		return Target{}, err
	}
	i := t.Map.index(s)
	if i < 0 {
		return Target{}, fmt.Errorf("slot %d: %w", s, ErrNoSlot)
	}
	if t.Map.isHeld(s) {
		return Target{}, fmt.Errorf("slot %d: %w", s, ErrSlotMoving)
	}
	return t.Map.targets[i], nil
}

// Everywhere returns every target of the table, in slot order, for a statement that goes to all of
// them. Its errors are those of [Snapshot.Everywhere], without the RouteError.
func (t *Table) Everywhere() ([]Target, error) {
	if err := t.Map.everywhere(); err != nil {
		return nil, err
	}
	return t.Map.Targets(), nil
}

// SlotBy returns the slot of the row whose column has this value. The column is Key or one of Also.
// If it is neither, or if the value is below Alt.From, the value does not lead to a slot and the
// error wraps [ErrMissingKey].
func (t *Table) SlotBy(column string, value any) (Slot, error) {
	if strings.EqualFold(column, t.Key) {
		return t.Slot(value)
	}
	for i := range t.Also {
		if alt := &t.Also[i]; strings.EqualFold(column, alt.Column) {
			return alt.slot(value)
		}
	}
	return 0, fmt.Errorf("%w: column %q does not lead to a shard", ErrMissingKey, column)
}

// TargetBy returns the location of the row whose column has this value: the target of
// [Table.SlotBy]. Its errors are those of SlotBy and Target.
func (t *Table) TargetBy(column string, value any) (Target, error) {
	s, err := t.SlotBy(column, value)
	if err != nil {
		return Target{}, err
	}
	return t.On(s)
}

// slot returns the slot that the value carries.
func (a *Alt) slot(value any) (Slot, error) {
	switch id, err := toInteger(value); {
	case err == nil && id.less(a.From):
		return 0, fmt.Errorf("%w: %v is below %d; smaller ids carry no slot", ErrMissingKey, value, a.From)
	case err != nil && a.From != 0:
		return 0, err
	}
	return within(a.Rule, value)
}

// Leads reports whether the column is Key or one of Also.
func (t *Table) Leads(column string) bool {
	return strings.EqualFold(column, t.Key) || slices.ContainsFunc(t.Also, func(alt Alt) bool { return strings.EqualFold(column, alt.Column) })
}

// foldTarget returns t in the form in which databases that ignore case compare it.
func foldTarget(t Target) Target { return Target{t.DB, fold(t.Table)} }

func fold(name string) string { return strings.ToLower(name) }
