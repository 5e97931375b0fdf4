// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// args are the values of the parameters of all rows, in this order: those of head, of the
// VALUES groups of all rows, and of tail. They are read before the first statement is sent.
type args struct {
	all          []any
	heads, tails int
}

func (a *args) head() []any  { return a.all[:a.heads] }
func (a *args) group() []any { return a.all[a.heads : len(a.all)-a.tails] }
func (a *args) tail() []any  { return a.all[len(a.all)-a.tails:] }

// collect reads the arguments from the rows.
func (p *plan) collect(a *args, r *rows) error {
	*a = args{make([]any, len(p.head)+r.n*len(p.group)+len(p.tail)), len(p.head), len(p.tail)}
	out, fields := a.all, p.fields
	if r.n > 1 {
		if err := cmp.Or(once(a.head(), p.head, r), once(a.tail(), p.tail, r)); err != nil {
			return err
		}
		out, fields = a.group(), p.group
	}
	return p.eachRow(r, func(i int, row reflect.Value) (err error) {
		values := out[i*len(fields) : (i+1)*len(fields)]
		for f := range values {
			if fields[f].own >= 0 && fields[f].numbered == nil { // the most frequent case
				values[f] = row.Field(fields[f].own).Interface()
			} else if values[f], err = fields[f].value(row); err != nil {
				return fields[f].fail(i, err)
			}
		}
		return nil
	})
}

// once reads parameters that occur once per statement, outside the VALUES group. All rows of
// a batch must have the same value for them, because the statement has room for one value
// only.
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
				return fields[f].fail(i, fmt.Errorf(
					"%w: outside VALUES a parameter has one value for the whole batch, and row 0 has another; use excluded.column or VALUES(column)", ErrStatement))
			}
		}
		out[f] = first
	}
	return nil
}

// of returns the arguments for rows[from:to], each of which has width parameters.
func (a *args) of(from, to, width int) []any {
	group := a.group()[from*width : to*width : to*width]
	if a.heads+a.tails == 0 {
		return group
	}
	return slices.Concat(a.head(), group, a.tail())
}
