// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// ValueOf returns a value of a row, false for an expression that the database computes.
func ValueOf(row *sqlparse.Row, at int, args []any) (any, bool) {
	v, ok := proof.Constant(row.Values[at])
	if !ok {
		return proof.Unbound{}, false
	}
	if v.Param >= 0 {
		v.Param += row.FirstParam
	}
	return v.Value(args), true
}

// Leaves reports whether a row leaves a column to the database: by NULL or DEFAULT, and if zero is
// set, by a value that is the whole number 0.
func Leaves(row *sqlparse.Row, at int, args []any, zero bool) bool {
	if at >= len(row.Values) {
		return false
	}
	v, ok := ValueOf(row, at, args)
	if !ok {
		return IsDefault(row.Values[at])
	}
	switch v, err := proof.Plain(v); v := v.(type) {
	case nil:
		return err == nil
	case int64:
		return zero && v == 0
	}
	if !zero {
		return false
	}
	n, isNumber := NumberOf(v)
	return isNumber && math.Round(n) == 0
}

// NumberOf returns the number to which a database converts an argument, false if that is uncertain.
func NumberOf(v any) (float64, bool) {
	v, _ = proof.Plain(v)
	if text, ok := v.([]byte); ok {
		v = string(text)
	}
	written := fmt.Sprint(v)
	n, noNumber := strconv.ParseFloat(written, 64)
	return n, noNumber == nil && !strings.ContainsAny(written, "_xXnN") // 1_0, 0x1p1, Inf and NaN are numbers only in Go
}

// stored returns the value that a column of a row stores, false if it is unknown.
func (in *Insertion) stored(row *sqlparse.Row, at int, column string, args []any) (any, bool) {
	if respells(row.Values[at]) && in.Of.Schema.Columns[strings.ToLower(column)].HoldsTexts() {
		return proof.Unbound{}, false
	}
	return ValueOf(row, at, args)
}

// respells reports whether a value is cast to a type that may spell it in another way, as a column of texts stores it.
func respells(e sqlparse.Expr) bool {
	cast := sqlparse.As(sqlparse.Bare(e), sqlparse.Cast)
	return cast != nil && (cast.Respells || cast.Keeps && respells(cast.Operands[0]))
}

// whyUnknown says why the value of a column is unknown; at is -1 if the row has none.
func whyUnknown(row *sqlparse.Row, at int, column string) string {
	if at >= 0 && respells(row.Values[at]) {
		return column + " is cast to a type that may spell it in another way; leave the cast out"
	}
	return column + " is neither a value nor a parameter"
}

// Slot returns the slot of a row. All columns that lead to a slot must lead to the same one.
func (in *Insertion) Slot(row *sqlparse.Row, args []any) (sharding.Slot, error) {
	key, slot, err := in.KeySlot(row, args)
	if err != nil {
		return 0, err
	}
	for i := range in.leads {
		l := &in.leads[i]
		v, ok := key, true
		if l.at != in.Key {
			v, ok = in.stored(row, l.at, l.lead.Column, args)
		}
		if err := proof.ColumnKeeps(l.column, l.lead.Column, v, in.Input.Ignore); err != nil {
			return 0, err
		}
		if l.at == in.Key || l.lead.Column == in.Filled && in.LeavesFilled(row, args) {
			continue
		}
		if !ok {
			return 0, fmt.Errorf("%w: %s", sharding.ErrMisplaced, whyUnknown(row, l.at, l.lead.Column))
		}
		if s := l.lead.SlotOf(v); s.One && s.Only != slot {
			return 0, fmt.Errorf("%w: %s %v leads to slot %d, %s to slot %d", sharding.ErrMisplaced, l.lead.Column, v, s.Only, in.formOf(key, row, args), slot)
		}
	}
	return slot, nil
}

// constant returns the value of a column in all rows of INSERT … SELECT.
func (in *Insertion) constant(at int) (v proof.Operand, ok bool) {
	if in.Selected == nil {
		return v, false
	}
	return proof.Constant(in.Selected.Values[at])
}

// CheckApart refuses INSERT … SELECT if its columns may lead to several slots, each by itself.
func (in *Insertion) CheckApart(args []any) error {
	if !in.apart || in.Of.Slots(args).All { // without any, a sharding key is missing
		return nil
	}
	var first *insertedLead
	var slot sharding.Slot
	for i := range in.leads {
		l := &in.leads[i]
		if !l.lead.Always {
			continue
		}
		s := proof.EverySlot
		if l.own != nil {
			s = l.own.Slots(args)
		}
		switch {
		case s.Empty(): // no row is selected
		case !s.One:
			return fmt.Errorf("%w: the selected values of %s may lead to another shard than those of the other columns", sharding.ErrMisplaced, l.lead.Column)
		case first == nil:
			first, slot = l, s.Only
		case s.Only != slot:
			return fmt.Errorf("%w: %s leads to slot %d, and %s to slot %d", sharding.ErrMisplaced, first.lead.Column, slot, l.lead.Column, s.Only)
		}
	}
	return nil
}

// CheckSelected checks the values by which all rows of INSERT … SELECT lead to a slot: these must be keys, and lead to the
// slot that the conditions of the query leave.
func (in *Insertion) CheckSelected(args []any) error {
	slots := in.Of.Slots(args)
	for i := range in.leads {
		l := &in.leads[i]
		if _, isConstant := in.constant(l.at); !isConstant {
			continue
		}
		v, ok := in.stored(in.Selected, l.at, l.lead.Column, args)
		if !ok {
			return fmt.Errorf("%w: %s", sharding.ErrMisplaced, whyUnknown(in.Selected, l.at, l.lead.Column))
		}
		if l.at == in.Key {
			if _, _, err := in.KeySlot(in.Selected, args); err != nil {
				return err
			}
		}
		if err := proof.ColumnKeeps(l.column, l.lead.Column, v, in.Input.Ignore); err != nil {
			return err
		}
		if s := l.lead.SlotOf(v); l.at != in.Key && s.One && !slots.Empty() && (!slots.One || slots.Only != s.Only) {
			return fmt.Errorf("%w: %s %v leads to slot %d, and %s may lead to another one", sharding.ErrMisplaced, l.lead.Column, v, s.Only, in.Of.Table.Key)
		}
	}
	return nil
}

// formOf names the sharding key in an error, with its form if that is not the one that was given: an id that gormplugin,
// sqlxhook or [sharding.Router.NextID] has made carries the slot of the given one.
func (in *Insertion) formOf(key any, row *sqlparse.Row, args []any) string {
	name := in.Of.Table.Key
	if given, _ := ValueOf(row, in.Key, args); proof.Text([]driver.Value{given}) != proof.Text([]driver.Value{key}) {
		return fmt.Sprintf("%s, which its column returns as %v,", name, key)
	}
	return name
}

// KeySlot returns the sharding key of a row in the form in which its column returns it, and the slot to which it leads.
func (in *Insertion) KeySlot(row *sqlparse.Row, args []any) (key any, slot sharding.Slot, err error) {
	if len(row.Values) != len(in.Input.Columns) {
		return nil, 0, fmt.Errorf("%w: the row has %d values for %d columns", sharding.ErrMissingKey, len(row.Values), len(in.Input.Columns))
	}
	key, ok := in.stored(row, in.Key, in.Of.Table.Key, args)
	if !ok {
		return nil, 0, fmt.Errorf("%w: %s", sharding.ErrMissingKey, whyUnknown(row, in.Key, in.Of.Table.Key))
	}
	if key, ok = in.Of.FormedKey(key); !ok {
		column := in.Of.Table.Key
		return nil, 0, fmt.Errorf("%w: the database may read a Go %T as another value of %s, which is %s", sharding.ErrKeyType, key, column, in.Of.Schema.Columns[strings.ToLower(column)].Type)
	}
	slot, err = in.Of.Table.Slot(key)
	return key, slot, err
}

// Empty returns a column that leads to slots and that the database would number in a row.
func (in *Insertion) Empty(row *sqlparse.Row, args []any) *proof.Lead {
	for i := range in.leads {
		if l := &in.leads[i]; l.numbered && Leaves(row, l.at, args, in.Zeros) {
			return l.lead
		}
	}
	return nil
}

// Numbers reports whether MySQL or MariaDB numbers rows.
func (in *Insertion) Numbers(args []any) bool {
	for name := range in.Of.Schema.Columns {
		if !in.Zeros || !in.Of.Schema.Columns[name].Numbered || name == in.Filled {
			continue
		}
		at := in.Place(name)
		if at < 0 || slices.ContainsFunc(in.Input.Rows, func(row sqlparse.Row) bool { return Leaves(&row, at, args, true) }) {
			return true
		}
	}
	return false
}

// LeavesFilled reports whether an adapter fills the column of the planner's Plan.Filled in a row.
func (in *Insertion) LeavesFilled(row *sqlparse.Row, args []any) bool {
	return in.Filled != "" && (in.filledAt < 0 || Leaves(row, in.filledAt, args, in.Zeros))
}

// IsUnplaced reports whether only the value that an adapter fills in a row leads to its shard.
func (in *Insertion) IsUnplaced(row *sqlparse.Row, args []any) bool {
	return in.fillsKey && in.LeavesFilled(row, args)
}

// addsKey reports whether an adapter adds the sharding key, which the INSERT does not name.
func (in *Insertion) addsKey() bool {
	return in.fillsKey && in.filledAt < 0 && in.Input.Query == nil
}

// LeavesOut reports whether some rows may be skipped and so not returned.
func (in *Insertion) LeavesOut() bool { return in.skips() && len(in.Input.Returning) > 0 }

// KeepsRows reports whether the statement changes no row that exists: it skips its own, or sets columns to what they are.
func (in *Insertion) KeepsRows() bool {
	changes := func(c sqlparse.Conflict) bool {
		return slices.ContainsFunc(in.Of.Settings(c.Set), func(s Setting) bool { return !s.keeps })
	}
	return in.skips() || len(in.Input.Conflicts) > 0 && !slices.ContainsFunc(in.Input.Conflicts, changes)
}

// skips reports whether the statement inserts no row beside one with the same key, and changes none.
func (in *Insertion) skips() bool {
	return in != nil && (in.Input.Ignore || slices.ContainsFunc(in.Input.Conflicts, func(c sqlparse.Conflict) bool { return c.Nothing }))
}

// Returned returns a unique key by which an inserted row is matched, or nil.
func (in *Insertion) Returned() *Seek {
	for _, key := range in.Of.Schema.Unique {
		unknown := func(column string) bool { return column == "" || in.Place(column) < 0 && column != in.Filled }
		if s := in.seekOf(key); !slices.ContainsFunc(key, unknown) {
			return &s
		}
	}
	return nil
}

// LookedUp returns the value of a column that leads to a lookup table: NULL if the row has none, and the column no default.
func (in *Insertion) LookedUp(row *sqlparse.Row, at int, column string, args []any) (value any, known bool) {
	if (at < 0 || IsDefault(row.Values[at])) && in.Of.Schema.Columns[strings.ToLower(column)].Empty {
		return nil, true
	}
	return in.stored(row, at, column, args)
}

// Numbering is the error of a row whose column the database would number.
func Numbering(l *proof.Lead) error {
	return fmt.Errorf("%w: the database would number %s", sharding.ErrMissingKey, l.Column)
}

// NumbersLeadNowhere is the remedy: a number that the database assigns does not carry the row's slot, so the row could not be found
// by it.
const NumbersLeadNowhere = "its number would not lead to the row's shard; have a generator of package keygen make it, with the slot in it"
