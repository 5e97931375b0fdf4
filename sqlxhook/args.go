package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"
)

// args are the values of all rows, taken before anything is sent: those of head,
// then of the VALUES groups, then of tail.
type args struct {
	all          []any
	heads, tails int
}

func (a *args) head() []any  { return a.all[:a.heads] }
func (a *args) group() []any { return a.all[a.heads : len(a.all)-a.tails] }
func (a *args) tail() []any  { return a.all[len(a.all)-a.tails:] }

// collect reads the arguments out of the rows.
func (p *plan) collect(a *args, r *rows) error {
	params := len(p.head) + r.n*len(p.group) + len(p.tail)
	copies := p.memory != nil && r.places.first != nil
	*a = args{heads: len(p.head), tails: len(p.tail)}
	if copies {
		a.all = p.memory.take(r, params)
	} else {
		a.all = make([]any, params)
	}
	group, fields := a.all, p.fields
	if r.n > 1 {
		if err := p.collectOnce(a, r); err != nil {
			return err
		}
		group, fields = a.group(), p.group
	}
	if copies && len(p.memory.slots) == len(p.fields) {
		return nil
	}
	for i := range r.n {
		if err := read(group[i*len(fields):], fields, r, i, copies); err != nil {
			return err
		}
	}
	return nil
}

// read reads fields of row i, but for those that are copied.
func read(out []any, fields []field, r *rows, i int, copies bool) (err error) {
	for f := range fields {
		if copies && fields[f].slot.form != reflected {
			continue
		}
		if out[f], err = fields[f].valueIn(r, i); err != nil {
			return err
		}
	}
	return nil
}

// collectOnce reads what a batch has once.
func (p *plan) collectOnce(a *args, r *rows) error {
	if err := once(a.head(), p.head, r); err != nil {
		return err
	}
	return once(a.tail(), p.tail, r)
}

// once reads parameters that occur once per statement, outside the VALUES
// group. In a batch all rows must agree on them: no row's value is better than
// another's.
func once(out []any, fields []field, r *rows) error {
	for f := range fields {
		first, err := fields[f].valueIn(r, 0)
		if err != nil {
			return err
		}
		for i := 1; i < r.n; i++ {
			v, err := fields[f].valueIn(r, i)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(v, first) {
				return &RowError{Row: i, Field: fields[f].name, Err: fmt.Errorf(
					"%w: outside VALUES a parameter has one value for the whole batch, and row 0 has another; use excluded.column or VALUES(column)", ErrStatement)}
			}
		}
		out[f] = first
	}
	return nil
}

// pick returns the arguments of some of the rows, of width parameters each.
func (a *args) pick(some []int, width int) args {
	group := make([]any, 0, len(some)*width)
	for _, i := range some {
		group = append(group, a.group()[i*width:(i+1)*width]...)
	}
	return args{a.around(group), a.heads, a.tails}
}

// of returns the arguments for rows from to to, of width parameters each.
func (a *args) of(from, to, width int) []any {
	return a.around(a.group()[from*width : to*width : to*width])
}

// around returns a group of arguments with those of head and tail around it.
func (a *args) around(group []any) []any {
	if a.heads+a.tails == 0 {
		return group
	}
	return slices.Concat(a.head(), group, a.tail())
}
