package gormplugin

import (
	"context"
	"reflect"
)

// part is one managed field of the rows of one statement, with the keys drawn
// for it.
type part struct {
	field *managed
	rows  rows
	keys  keys
	given []int // the number of the row that got a key, in the order of the keys
	omit  bool  // the statement leaves the field out on purpose
	// slotted says that the keys carry the slots of their rows.
	slotted bool
}

// reset prepares a part for a statement. It keeps its memory.
func (p *part) reset(f *managed, r rows) {
	p.field, p.rows, p.omit = f, r, false
	p.keys.reset(&f.gen)
}

// restart makes all keys unused again.
func (p *part) restart() {
	p.given = p.given[:0]
}

// forget drops all that is the user's.
func (p *part) forget() {
	p.restart()
	p.rows = rows{}
}

// empty counts the rows that have no key.
func (p *part) empty() (n int) {
	for i := range p.rows.len() {
		if p.rows.empty(i, p.field) {
			n++
		}
	}
	return n
}

// emptyRows returns the numbers of the rows that have no key.
func (p *part) emptyRows() (numbers []int) {
	for i := range p.rows.len() {
		if p.rows.empty(i, p.field) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// used is how many of the keys rows have been given.
func (p *part) used() int { return len(p.given) }

// assign gives keys to the rows without, as far as the keys last. missing is
// how many rows it could not give one.
func (p *part) assign(ctx context.Context) (missing int, err error) {
	for i := range p.rows.len() {
		switch {
		case !p.rows.empty(i, p.field):
		case len(p.given) == p.keys.len():
			missing++
		default:
			if err := p.rows.set(ctx, i, p.field, &p.keys, len(p.given)); err != nil {
				return 0, p.field.fail(err)
			}
			p.given = append(p.given, i)
		}
	}
	return missing, nil
}

// takeBack empties the fields that were given a key, except those for which keep
// is true; nil keeps none.
func (p *part) takeBack(ctx context.Context, keep func(k int) bool) (taken int) {
	for k := range p.used() {
		if keep == nil || !keep(k) {
			p.clear(ctx, k)
			taken++
		}
	}
	return taken
}

// clear empties the field of the k-th row that was given a key.
func (p *part) clear(ctx context.Context, k int) {
	p.rows.clear(ctx, p.given[k], p.field)
}

// isLast reports whether the k-th row that was given a key is the last one of
// the statement.
func (p *part) isLast(k int) bool { return p.given[k] == p.rows.len()-1 }

// value returns what the k-th row that was given a key has in the field now.
func (p *part) value(ctx context.Context, k int) any {
	return p.rows.get(ctx, p.given[k], p.field)
}

// values returns what the rows that were given a key have in the field now.
func (p *part) values(ctx context.Context) []any {
	values := make([]any, p.used())
	for k := range values {
		values[k] = p.value(ctx, k)
	}
	return values
}

// isOwn reports whether the k-th row still has the key it was given.
func (p *part) isOwn(ctx context.Context, k int) bool {
	scratch := reflect.New(p.field.FieldType).Elem()
	if err := p.keys.put(k, &p.field.kind, scratch); err != nil {
		return false
	}
	return plain(p.value(ctx, k)) == plain(scratch.Interface())
}

// plain returns a key in a form in which equal keys are equal, whether they
// stand in a field or in a map.
func plain(value any) any {
	v := behind(value)
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.Kind() == reflect.String:
		return v.String()
	case v.IsValid() && v.Comparable():
		return v.Interface()
	}
	return nil
}
