package sqlxhook

import (
	"fmt"
	"reflect"
)

// args are the values of all rows, taken before anything is sent.
type args struct {
	head, group, tail []any
}

// collect reads the arguments out of the rows.
func (p *plan) collect(a *args, r *rows) (err error) {
	if len(p.head)+len(p.tail) > 0 {
		if a.head, err = once(p.head, r); err != nil {
			return err
		}
		if a.tail, err = once(p.tail, r); err != nil {
			return err
		}
	}
	if len(p.group) == 0 {
		return nil
	}
	a.group = make([]any, len(p.group)*r.n)
	n := 0
	for i := range r.n {
		row := r.at(i)
		for f := range p.group {
			if a.group[n], err = p.group[f].value(row); err != nil {
				return &RowError{Row: i, Field: p.group[f].name, Err: err}
			}
			n++
		}
	}
	return nil
}

// once reads parameters that occur once per statement, outside the VALUES
// group. In a batch all rows must agree on them: no row's value is better than
// another's.
func once(fields []field, r *rows) ([]any, error) {
	out := make([]any, len(fields))
	for f := range fields {
		first, err := fields[f].valueIn(r, 0)
		if err != nil {
			return nil, err
		}
		for i := 1; i < r.n; i++ {
			v, err := fields[f].valueIn(r, i)
			if err != nil {
				return nil, err
			}
			if !reflect.DeepEqual(v, first) {
				return nil, &RowError{Row: i, Field: fields[f].name, Err: fmt.Errorf(
					"%w: outside VALUES a parameter has one value for the whole batch, and row 0 has another; use excluded.column or VALUES(column)", ErrStatement)}
			}
		}
		out[f] = first
	}
	return out, nil
}

// all returns the arguments of all n rows.
func (a *args) all(p *plan, n int) []any {
	if len(p.group) == 0 && len(a.tail) == 0 { // a statement without VALUES is all head
		return a.head
	}
	return a.of(0, n, len(p.group))
}

// pick returns the arguments of some of the rows, of width parameters each.
func (a *args) pick(some []int, width int) args {
	picked := args{a.head, make([]any, 0, len(some)*width), a.tail}
	for _, i := range some {
		picked.group = append(picked.group, a.group[i*width:(i+1)*width]...)
	}
	return picked
}

// of returns the arguments for rows from to to, of width parameters each.
func (a *args) of(from, to, width int) []any {
	if len(a.head) == 0 && len(a.tail) == 0 {
		return a.group[from*width : to*width : to*width]
	}
	out := make([]any, 0, len(a.head)+(to-from)*width+len(a.tail))
	out = append(out, a.head...)
	out = append(out, a.group[from*width:to*width]...)
	return append(out, a.tail...)
}
