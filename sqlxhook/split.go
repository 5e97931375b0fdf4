// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"database/sql/driver"
	"reflect"
	"slices"
	"time"
)

// cut returns the row numbers at which a batch of n rows is cut so that no statement exceeds
// the limits. It returns nil if one statement is enough. A row that exceeds the limits alone
// is sent alone, and the server decides.
func (p *plan) cut(n int, a *args) []int {
	if n == 1 || len(p.group) == 0 {
		return nil
	}
	per := max(1, (p.limits.params-len(p.head)-len(p.tail))/len(p.group)) // rows, by the number of parameters
	end := p.fit(a, 0, min(per, n))
	if end == n {
		return nil
	}
	cuts := []int{end}
	for end < n {
		end = p.fit(a, end, min(end+per, n))
		cuts = append(cuts, end)
	}
	return cuts
}

// fit returns the row number at which a statement must end that begins with row from and may
// have the rows before to.
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

// once returns the size of those parts of a statement that do not repeat with the rows.
func (p *plan) once(a *args) int {
	n := p.stmt.head.size() + p.stmt.tail.size()
	if p.limits.args {
		for _, v := range slices.Concat(a.head(), a.tail()) {
			n += p.sizeOf(&v)
		}
	}
	return n
}

// rowSize returns the size of row i with its parentheses.
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

// fixedRow returns the size of a row if all rows have the same size, and -1 otherwise.
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

// escapedSize returns the largest size of a literal of so many bytes, in which the client
// may escape each byte with a backslash.
func escapedSize(length int) int { return 2*length + fixedSize }

// sizeOf returns the largest size of a value. The size of a driver.Valuer is known only by a
// call of Value. MySQL's drivers would call it again, so its result replaces the argument.
// PostgreSQL's drivers know more types than database/sql, so the argument stays.
func (p *plan) sizeOf(v *any) int {
	switch v := (*v).(type) {
	case string:
		return escapedSize(len(v))
	case []byte:
		return escapedSize(len(v))
	case nil, int64, int, bool, float64, time.Time:
		return fixedSize
	case driver.Valuer:
	default:
		return sizeOfKind(reflect.ValueOf(v))
	}
	value, err := valueOf((*v).(driver.Valuer))
	if err != nil {
		return fixedSize // the driver will report the error
	}
	if p.key.database == mysql {
		*v = value
	}
	return sizeOfKind(reflect.ValueOf(value))
}

// valueOf calls Value, except on a nil pointer whose type inherits the method from its
// element: like database/sql, it returns nil then.
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
		return escapedSize(v.Len())
	}
	return fixedSize
}
