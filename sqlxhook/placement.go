package sqlxhook

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// placement says where the rows of an INSERT into a sharded table belong, so that
// none is written where nobody looks for it.
type placement struct {
	hook  *Hook
	bound *binding
	table *sharding.Table
	key   leading
	also  []leading // the columns of Table.Also that the statement stores
}

// leading is a column that leads to the shard, and where its value is.
type leading struct {
	column  string
	arg     int // among the parameters of the VALUES group
	literal any // in the statement itself; nil when it is a parameter
}

// placementOf prepares the check of the rows of a statement; nil when it inserts
// into no sharded table.
func (h *Hook) placementOf(k planKey, x *expanded, s *statement) (*placement, error) {
	if x.inserts == nil {
		return nil, nil
	}
	p := &placement{hook: h, bound: k.bound, table: x.inserts}
	if err := agree(x.text, k.family, s); err != nil {
		return nil, p.refuse("", err)
	}
	var err error
	if p.key, err = leadingOf(s, p.table.Key); err != nil {
		return nil, p.refuse(p.table.Key, err)
	}
	for _, alt := range p.table.Also {
		if numbered(p.table, alt.Column) {
			continue
		}
		l, err := leadingOf(s, alt.Column)
		switch {
		case errors.Is(err, errNotStored):
		case err != nil:
			return nil, p.refuse(alt.Column, err)
		default:
			p.also = append(p.also, l)
		}
	}
	return p, nil
}

var errReadings = fmt.Errorf("%w, and its literals can be read in more than one way; pass them as parameters", sharding.ErrRawTable)

// agree refuses a statement whose values stand elsewhere for a server in another
// sql_mode.
func agree(query string, f family, s *statement) error {
	for _, flavor := range f.guardReadings(query) {
		other, err := parseAs(query, flavor)
		if err == nil && !reflect.DeepEqual(other, s) { // an error is one for that server, too
			return errReadings
		}
	}
	return nil
}

// What leadingOf cannot find.
var (
	errNotStored = fmt.Errorf("%w: the INSERT does not store it", sharding.ErrMissingKey)
	errNoColumns = fmt.Errorf("%w: the INSERT has no list of columns, or no VALUES", sharding.ErrMissingKey)
	errNotPlain  = fmt.Errorf("%w: its value is an expression", sharding.ErrMissingKey)
	errTwice     = fmt.Errorf("%w: the INSERT names its column twice", sharding.ErrMissingKey)
	errGroups    = fmt.Errorf("%w: the INSERT has several VALUES groups", sharding.ErrMissingKey)
)

// leadingOf finds the value of a column in the VALUES group.
func leadingOf(s *statement, column string) (leading, error) {
	switch {
	case s.columns == nil || s.groups == 0:
		return leading{}, errNoColumns
	case s.groups > 1:
		return leading{}, errGroups
	}
	is := func(c string) bool { return strings.EqualFold(c, column) }
	i := slices.IndexFunc(s.columns, is)
	if i < 0 {
		return leading{}, errNotStored
	}
	if slices.ContainsFunc(s.columns[i+1:], is) {
		return leading{}, errTwice
	}
	l := leading{column: column}
	for j, v := range s.values {
		if j == i {
			l.literal = v.literal
			if v.plain || v.literal != nil {
				return l, nil
			}
			break
		}
		l.arg += len(v.params)
	}
	return leading{}, errNotPlain
}

// of returns the value of the column in row i, of width parameters.
func (l *leading) of(a *args, i, width int) any {
	if l.literal != nil {
		return l.literal
	}
	return a.group()[i*width+l.arg]
}

// check refuses rows that belong to another shard than the one p is bound to.
func (p *placement) check(n int, a *args) error {
	if p == nil {
		return nil
	}
	here := p.bound.holds(p.table)
	return p.each(p.newest(), n, a, func(i int, _ any, target sharding.Target) error {
		if target != here {
			return p.refuseRow(i, p.key.column, fmt.Errorf("%w: %s, and the handle is bound to %s", sharding.ErrMisplaced, target, here))
		}
		return nil
	})
}

// newest returns the table with the router's present map, so that no handle writes
// to where rows were before their slot moved. A handle of another place than the
// present one of a migration keeps to its own, which is closed.
func (p *placement) newest() *sharding.Table {
	t, ok := p.hook.router.Snapshot().Lookup(p.table.Name)
	if !ok {
		panic("bug: the router has lost table " + p.table.Name)
	}
	if (t.Origin() == nil) != (p.table.Origin() == nil) {
		return p.table
	}
	return t
}

// each calls f with the key and the target of each of n rows, by the map of t.
func (p *placement) each(t *sharding.Table, n int, a *args, f func(i int, key any, target sharding.Target) error) error {
	if numbered(t, t.Key) {
		for i := range n {
			if err := f(i, nil, t.Origin().Target); err != nil {
				return err
			}
		}
		return nil
	}
	width := len(a.group()) / n
	for i := range n {
		key := p.key.of(a, i, width)
		target, err := t.Target(key)
		if err != nil {
			return p.refuseRow(i, p.key.column, err)
		}
		for j := range p.also {
			if err := p.agrees(t, key, &p.also[j], p.also[j].of(a, i, width)); err != nil {
				return p.refuseRow(i, p.also[j].column, err)
			}
		}
		if err := f(i, key, target); err != nil {
			return err
		}
	}
	return nil
}

// agrees refuses a row that one of its other columns would lead elsewhere: to
// another slot, as one that shares the table today may move away tomorrow.
func (p *placement) agrees(t *sharding.Table, key any, l *leading, value any) error {
	slot, err := t.SlotBy(l.column, value)
	if errors.Is(err, sharding.ErrMissingKey) { // an id from before ids led to shards
		return nil
	}
	if err != nil {
		return err
	}
	own, err := t.Slot(key)
	if err == nil && own != slot {
		err = fmt.Errorf("%w: %s leads to slot %d, and %s to slot %d", sharding.ErrMisplaced, l.column, slot, p.key.column, own)
	}
	return err
}

// cause returns what a RouteError is about, for one that says more.
func cause(err error) error {
	var route *sharding.RouteError
	if errors.As(err, &route) {
		return route.Err
	}
	return err
}

func (p *placement) refuseRow(i int, column string, err error) error {
	return p.refuse(column, fmt.Errorf("row %d: %w", i, err))
}

func (p *placement) refuse(column string, err error) error {
	refused := &sharding.RouteError{Op: "insert into", Table: p.table.Name, Column: column, Err: err}
	switch {
	case errors.Is(err, sharding.ErrMisplaced) && column != p.key.column:
		refused.Hint = "let a generator that is a keygen.Bucketed make it, from the row's " + p.key.column
	case errors.Is(err, sharding.ErrMisplaced):
		refused.Hint = "take the handle from Hook.For, or group the rows with GroupBy"
	case errors.Is(err, sharding.ErrSlotMoving):
		refused.Hint = "nothing was sent; try again in a moment"
	case errors.Is(err, sharding.ErrMissingKey):
		refused.Hint = "give each row's key as a parameter of its own: INSERT INTO " + p.table.Name + " (…, " + column + ") VALUES (…, :" + column + ")"
	}
	return refused
}
