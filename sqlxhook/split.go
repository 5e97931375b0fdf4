// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"database/sql/driver"
	"reflect"
	"time"
)

// cut returns behind which rows a batch of n is cut so that each statement keeps the
// limits, or nil when one statement is enough. A row that is too large by itself
// is sent alone: the server has the last word.
func (p *plan) cut(n int, a *args) []int {
	if n == 1 || len(p.group) == 0 {
		return nil
	}
	per := p.perStatement()
	if per >= n && (p.limits.bytes == 0 || p.size(a, n, p.limits.bytes) <= p.limits.bytes) {
		return nil
	}
	var cuts []int
	for from := 0; from < n; {
		from = p.fit(a, from, min(from+per, n))
		cuts = append(cuts, from)
	}
	if len(cuts) == 1 {
		return nil
	}
	return cuts
}

// perStatement is how many rows the parameters of one statement are enough for.
func (p *plan) perStatement() int {
	return max(1, (p.limits.params-len(p.head)-len(p.tail))/len(p.group))
}

// fit returns behind which row a statement ends that begins with row from and
// ends before row to.
func (p *plan) fit(a *args, from, to int) int {
	if p.limits.bytes == 0 {
		return to
	}
	left := p.limits.bytes - p.once(a)
	for i := from; i < to; i++ {
		if left -= p.rowSize(a, i); left < 0 {
			return max(i, from+1)
		}
	}
	return to
}

// size returns how many bytes a statement of so many rows takes, never less;
// beyond enough it stops counting.
func (p *plan) size(a *args, rows, enough int) int {
	n := p.once(a)
	if p.fixed >= 0 {
		return n + rows*p.fixed
	}
	for i := 0; i < rows && n <= enough; i++ {
		n += p.rowSize(a, i)
	}
	return n
}

// once is the size of what a statement has once, whatever the number of rows.
func (p *plan) once(a *args) int {
	n := p.stmt.head.size() + p.stmt.tail.size()
	if p.limits.args {
		for _, v := range a.head() {
			n += p.sizeOf(&v)
		}
		for _, v := range a.tail() {
			n += p.sizeOf(&v)
		}
	}
	return n
}

// rowSize is the size of row i with its parentheses.
func (p *plan) rowSize(a *args, i int) int {
	if p.fixed >= 0 {
		return p.fixed
	}
	n := p.stmt.group.size()
	for f := range p.group {
		if p.group[f].fixed {
			n += fixedSize
		} else {
			n += p.sizeOf(&a.group()[i*len(p.group)+f])
		}
	}
	return n
}

// fixedRow returns what every row takes, -1 if that depends on the row.
func (p *plan) fixedRow() int {
	n := p.stmt.group.size()
	for f := range p.group {
		if p.limits.args && !p.group[f].fixed {
			return -1
		}
		if p.limits.args {
			n += fixedSize
		}
	}
	return n
}

// escaped is the most that so many bytes take when the client writes them into
// the text as a literal, each with a backslash.
func escaped(length int) int { return 2*length + fixedSize }

// sizeOf returns what a value takes at most. A driver.Valuer only tells by its
// value: MySQL's drivers ask for that in any case, so it is sent in its place;
// those of PostgreSQL know types of their own.
func (p *plan) sizeOf(v *any) int {
	switch v := (*v).(type) {
	case string:
		return escaped(len(v))
	case []byte:
		return escaped(len(v))
	case nil, int64, int, bool, float64, time.Time:
		return fixedSize
	case driver.Valuer:
	default:
		return sizeOfKind(reflect.ValueOf(v))
	}
	value, err := valueOf((*v).(driver.Valuer))
	if err != nil {
		return fixedSize // the driver will say so
	}
	if p.family == mysql {
		*v = value
	}
	return sizeOfKind(reflect.ValueOf(value))
}

// valueOf spares nil pointers the call of a method that they do not have, like
// database/sql.
func valueOf(v driver.Valuer) (driver.Value, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer && rv.IsNil() && isValuer(rv.Type().Elem()) {
		return nil, nil
	}
	return v.Value()
}

func sizeOfKind(v reflect.Value) int {
	v, ok := follow(v)
	if !ok {
		return fixedSize
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array:
		return escaped(v.Len())
	}
	return fixedSize
}
