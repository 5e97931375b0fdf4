// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// proof returns the slots that the rows of one table may have, for the arguments of a statement. It
// never fails: a value that a database may read differently than the rule proves nothing, so all
// slots may have such rows.
type proof interface {
	slots(args []any) slots
}

// lead is a column of a table whose values lead to slots: the key, or one of Also.
type lead struct {
	table  *sharding.Table
	column string
	rule   sharding.Rule
	// always: every value leads to a slot. That holds for the key, and for an Also whose From is 0.
	always bool
	holds  Holding
	order  bool          // the larger of two values is in no lower slot
	unit   time.Duration // the precision of a column of times
	form   func(value any) (form any, known bool)
	apart  time.Duration
	// lookup is the lookup table of a column without a rule.
	lookup *sharding.Lookup
}

// allOf is the proof of several conditions that all hold.
type allOf []proof

func (p allOf) slots(args []any) slots {
	s := everySlot
	for _, each := range p {
		s = s.and(each.slots(args))
	}
	return s
}

// anyOf is the proof of several conditions one of which holds.
type anyOf []proof

func (p anyOf) slots(args []any) slots {
	var s slots
	for _, each := range p {
		s = s.or(each.slots(args))
	}
	return s
}

// equals is the proof of a column that has one of some values.
type equals struct {
	lead   *lead
	values []operand
}

func (p *equals) slots(args []any) slots {
	if len(p.values) == 1 {
		return p.lead.slotOf(p.values[0].value(args))
	}
	list := make([]any, len(p.values))
	for i, v := range p.values {
		list[i] = v.value(args)
	}
	return p.lead.slotsOf(list)
}

// member is the proof of a column that has one of the values of an array, which is an argument.
type member struct {
	lead  *lead
	array operand
}

func (p *member) slots(args []any) slots {
	list, ok := elements(p.array.value(args))
	if !ok {
		return everySlot
	}
	return p.lead.slotsOf(list)
}

// elements returns the values of an array argument of PostgreSQL: a slice, or a text such as {1,2}.
// It does not parse texts with quotes.
func elements(v any) (list []any, ok bool) {
	text, isText := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		text, isText = string(b), true
	}
	if !isText {
		of := reflect.ValueOf(v)
		if of.Kind() != reflect.Slice {
			return nil, false
		}
		for i := range of.Len() {
			list = append(list, of.Index(i).Interface())
		}
		return list, true
	}
	text, opens := strings.CutPrefix(text, "{")
	text, closes := strings.CutSuffix(text, "}")
	if !opens || !closes || strings.ContainsAny(text, "{}\"\\ \t\n\r\v\f") {
		return nil, false
	}
	if text == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(text, ",") {
		if strings.EqualFold(part, "null") {
			list = append(list, nil)
		} else {
			list = append(list, part)
		}
	}
	return list, true
}

// within is the proof of a column whose values are between two others, one of which may be missing.
// The lower one is included, and the upper one unless below is set.
type within struct {
	lead      *lead
	low, high *operand
	below     bool
}

func (p *within) slots(args []any) slots {
	from, to := sharding.Slot(0), sharding.Slot(p.lead.table.Rule.Slots()-1)
	for _, end := range []struct {
		at   *operand
		slot *sharding.Slot
	}{{p.low, &from}, {p.high, &to}} {
		if end.at == nil {
			continue
		}
		v := end.at.value(args)
		if _, bytes := v.([]byte); bytes && p.lead.holds == Integers {
			continue // SQLite sorts texts after all numbers, whatever digits they have
		}
		if p.below && end.at == p.high {
			v = p.lead.before(v)
		}
		v = p.lead.moved(v, end.at == p.high)
		s := p.lead.slotBy(v)
		if s.empty() {
			return s // a comparison with NULL is never true
		}
		if s.one { // otherwise its slot is unknown, and this end is unbounded
			*end.slot = s.only
		}
	}
	if to-from+1 == sharding.Slot(p.lead.table.Rule.Slots()) {
		return everySlot
	}
	var list []sharding.Slot
	for s := from; s <= to; s++ {
		list = append(list, s)
	}
	return setOf(list)
}

// before returns the largest value of the column below v, or v if that is unknown.
func (l *lead) before(v any) any {
	switch v := v.(type) {
	case int64:
		if v > math.MinInt64 {
			return v - 1
		}
	case time.Time:
		if l.unit > 0 && v.Equal(v.Truncate(l.unit)) {
			return v.Add(-l.unit)
		}
	}
	return v
}

// slotBy returns the slot that rows with larger and smaller values are beside. A time before the first
// piece of an Interval is beside the first piece, and a time after the last piece beside the last one: no row
// has such a time.
func (l *lead) slotBy(v any) slots {
	s := l.slotOf(v)
	rule, ok := l.rule.(sharding.IntervalRule)
	if !ok || !s.all {
		return s
	}
	v, err := plain(v)
	at, isTime := v.(time.Time)
	if err != nil || !isTime || !l.comparesWith(at) {
		return s
	}
	from, to := rule.Bounds()
	switch at = clock(at, rule.Zone()); {
	case at.Before(clock(from, rule.Zone()).Add(-l.unit)):
		return oneSlot(0)
	case at.After(clock(to, rule.Zone()).Add(l.unit)):
		return oneSlot(sharding.Slot(rule.Slots() - 1))
	}
	return s // it is so near to a border of the pieces that a column may round it
}

// clock returns the time at which a clock in UTC shows what one in the zone shows at a time. A column stores what it shows.
func clock(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moved returns an end of a range that has all times which may compare as if they were in it.
func (l *lead) moved(v any, later bool) any {
	as, _ := plain(v)
	at, ok := as.(time.Time)
	switch {
	case !ok || l.apart == 0:
		return v
	case later:
		return at.Add(l.apart)
	}
	return at.Add(-l.apart)
}

// slotsOf returns the slots of rows whose column equals one of some values.
func (l *lead) slotsOf(values []any) slots {
	list := make([]sharding.Slot, 0, len(values))
	for _, v := range values {
		switch s := l.slotOf(v); {
		case s.all:
			return everySlot
		case s.one:
			list = append(list, s.only)
		}
	}
	return setOf(list)
}

// slotOf returns the slots of rows whose column equals v: one slot; none for NULL, which equals
// nothing; or all if v proves nothing.
func (l *lead) slotOf(v any) slots {
	v, err := plain(v)
	if err != nil {
		return everySlot
	}
	if v == nil {
		return slots{}
	}
	if !l.comparesWith(v) {
		return everySlot
	}
	v, known := l.formed(v)
	if !known {
		return everySlot
	}
	s, err := l.table.SlotBy(l.column, v)
	if err != nil {
		return everySlot
	}
	return oneSlot(s)
}

// formed returns a value in the form in which the column returns it, false if that is unknown. It returns NULL, and an
// argument that no driver accepts, as they are.
func (l *lead) formed(v any) (form any, known bool) {
	if l.form == nil {
		return v, true
	}
	as, err := plain(v)
	if err != nil || as == nil {
		return v, true
	}
	return l.form(as)
}

// plain returns an argument in the form in which a driver gets it, without the Go types around it.
func plain(v any) (any, error) {
	switch v.(type) {
	case nil, int64, int, uint64, string, []byte, time.Time, float64, bool:
		return v, nil
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}

// comparesWith reports whether the database considers v and a value of the column equal exactly if
// the rule gives both the same slot. A number equals many texts ('5', '5abc'), and a float many
// integers.
func (l *lead) comparesWith(v any) bool {
	switch v.(type) {
	case string, []byte:
		return l.holds == Integers || l.holds == Bytes || l.holds == UUIDs
	case time.Time:
		return l.holds == Times
	case int, int64, uint64:
		return l.holds == Integers
	}
	return false
}

// operand is a value that a statement compares with: a parameter or a literal.
type operand struct {
	param   int // index of the argument, -1 for a literal
	literal any
}

func (o operand) value(args []any) any {
	if o.param < 0 {
		return o.literal
	}
	if o.param >= len(args) {
		return unbound{}
	}
	return args[o.param]
}

// unbound is an argument that the caller has not passed. No rule accepts it.
type unbound struct{}

// constant returns the operand if an expression is one.
func constant(e sqlparse.Expr) (operand, bool) {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Param:
		return operand{param: e.Index}, true
	case *sqlparse.Literal:
		switch e.Kind {
		case sqlparse.Integer:
			n, err := strconv.ParseInt(e.Value, 10, 64)
			return operand{param: -1, literal: n}, err == nil
		case sqlparse.Text:
			return operand{param: -1, literal: e.Value}, true
		case sqlparse.Null:
			return operand{param: -1}, true
		}
	case *sqlparse.Operation:
		if e.Keeps {
			return constant(e.Operands[0])
		}
	}
	return operand{}, false
}

// constants returns the operands if all expressions of a list are operands.
func constants(list []sqlparse.Expr) (all []operand, ok bool) {
	for _, e := range list {
		v, ok := constant(e)
		if !ok {
			return nil, false
		}
		all = append(all, v)
	}
	return all, len(all) > 0
}

// slots is a set of slots. The zero value is the empty set.
type slots struct {
	all  bool
	one  bool // the set has one slot, only
	only sharding.Slot
	many []sharding.Slot // sorted, without duplicates; at least two
}

var everySlot = slots{all: true}

func oneSlot(s sharding.Slot) slots { return slots{one: true, only: s} }

// setOf returns the set of the slots in list. The caller must not use list afterwards.
func setOf(list []sharding.Slot) slots {
	slices.Sort(list)
	list = slices.Compact(list)
	switch len(list) {
	case 0:
		return slots{}
	case 1:
		return oneSlot(list[0])
	}
	return slots{many: list}
}

// list returns the slots of a set that is not everySlot.
func (s slots) list() []sharding.Slot {
	if s.one {
		return []sharding.Slot{s.only}
	}
	return s.many
}

func (s slots) empty() bool { return !s.all && !s.one && len(s.many) == 0 }

func (s slots) has(slot sharding.Slot) bool {
	if s.all || s.one {
		return s.all || s.only == slot
	}
	_, found := slices.BinarySearch(s.many, slot)
	return found
}

// and returns the intersection.
func (s slots) and(other slots) slots {
	switch {
	case s.all:
		return other
	case other.all:
		return s
	}
	var both []sharding.Slot
	for _, slot := range s.list() {
		if other.has(slot) {
			both = append(both, slot)
		}
	}
	return setOf(both)
}

// or returns the union.
func (s slots) or(other slots) slots {
	switch {
	case s.all || other.all:
		return everySlot
	case s.empty():
		return other
	case other.empty() || s.one && other.one && s.only == other.only:
		return s
	}
	return setOf(slices.Concat(s.list(), other.list()))
}
