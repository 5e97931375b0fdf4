package gormplugin

import (
	"context"
	"reflect"
)

// part is one managed field of the rows of one statement, with the keys drawn
// for it. given and places say, in order of the keys, which rows got one: where
// the field is a word its places, and otherwise the rows' numbers.
type part struct {
	field  *managed
	rows   rows
	keys   keys
	places []*int64
	given  []int
	omit   bool // the statement leaves the field out on purpose
	// slotted says that the keys carry the slots of their rows.
	slotted bool
	isWord  bool // the places are those of words; texts of ids never are
}

// reset prepares a part for a statement. It keeps its memory.
func (p *part) reset(f *managed, r rows) {
	p.field, p.rows, p.omit = f, r, false
	p.isWord = f.word && r.structs.IsValid() && (r.structs.Kind() == reflect.Slice || r.structs.CanAddr())
	p.keys.reset(&f.gen)
}

// restart makes all keys unused again.
func (p *part) restart() {
	clear(p.places)
	p.places, p.given = p.places[:0], p.given[:0]
}

// forget drops all that is the user's.
func (p *part) forget() {
	p.restart()
	p.rows = rows{}
}

// empty counts the rows that have no key.
func (p *part) empty() (n int) {
	if p.isWord {
		w := wordsOf(p.rows.structs, p.field.offset)
		for i := range w.n {
			if at := w.at(i); at != nil && *at == 0 {
				n++
			}
		}
		return n
	}
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
func (p *part) used() int { return len(p.places) + len(p.given) }

// assign gives keys to the rows without, as far as the keys last. missing is
// how many rows it could not give one.
func (p *part) assign(ctx context.Context) (missing int, err error) {
	if p.isWord {
		return p.assignWords(), nil
	}
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

func (p *part) assignWords() (missing int) {
	w := wordsOf(p.rows.structs, p.field.offset)
	ids, places := p.keys.ints, p.places
	for i := range w.n {
		at := w.at(i)
		if at == nil || *at != 0 {
			continue
		}
		if len(places) == len(ids) {
			missing++
			continue
		}
		*at = ids[len(places)]
		places = append(places, at)
	}
	p.places = places
	return missing
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
	if len(p.places) > 0 {
		*p.places[k] = 0
		return
	}
	p.rows.clear(ctx, p.given[k], p.field)
}

// isLast reports whether the k-th row that was given a key is the last one of
// the statement.
func (p *part) isLast(k int) bool {
	if len(p.places) == 0 {
		return p.given[k] == p.rows.len()-1
	}
	w := wordsOf(p.rows.structs, p.field.offset)
	return w.at(w.n-1) == p.places[k]
}

// numbers returns the rows that were given a key, by key.
func (p *part) numbers() []int {
	if len(p.places) == 0 {
		return p.given
	}
	w := wordsOf(p.rows.structs, p.field.offset)
	numbers := make([]int, 0, len(p.places))
	for i := 0; i < w.n && len(numbers) < len(p.places); i++ {
		if w.at(i) == p.places[len(numbers)] {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// value returns what the k-th row that was given a key has in the field now.
func (p *part) value(ctx context.Context, k int) any {
	if len(p.places) == 0 {
		return p.rows.get(ctx, p.given[k], p.field)
	}
	return reflect.NewAt(p.field.FieldType, reflect.ValueOf(p.places[k]).UnsafePointer()).Elem().Interface()
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
	if len(p.places) > 0 {
		return *p.places[k] == p.keys.ints[k]
	}
	scratch := reflect.New(p.field.FieldType).Elem()
	if err := p.keys.put(k, &p.field.kind, scratch); err != nil {
		return false
	}
	return plain(p.value(ctx, k)) == plain(scratch.Interface())
}

// plain returns a key in a form in which equal keys are equal, whether they
// stand in a field or in a map.
func plain(value any) any {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
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
