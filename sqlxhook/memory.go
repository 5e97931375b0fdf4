package sqlxhook

import (
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// An argument is an interface value, and making one of a number or a text takes
// memory of its own each time, and reflection's time. So the values of all rows
// are copied into one piece of memory, which the arguments point into. Pointing
// into the rows would be cheaper still, but an argument may not change when its
// row does: a tracer or a mock may have it for longer. This file, and no other,
// computes addresses and makes interface values by hand.

// form is how a value is copied.
type form uint8

const (
	reflected form = iota // by reflection, into memory of its own
	word                  // 64 bits without a pointer
	number                // of other sizes
	chars
	octets
	moment
)

// formOf returns the form of a type's values.
func formOf(t reflect.Type) form {
	k := t.Kind()
	switch {
	case t == timeType:
		return moment
	case k == reflect.String:
		return chars
	case k == reflect.Slice:
		return octets
	case k < reflect.Bool || k > reflect.Float64:
		return reflected
	case t.Size() == unsafe.Sizeof(uint64(0)):
		return word
	}
	return number
}

// slot is where a field lies in its row, and its copy among the copies of a row.
type slot struct {
	form     form
	size     uintptr
	typ      unsafe.Pointer // what an interface value of the field's type begins with
	from, to uintptr
}

// face is the layout of an interface value without methods.
type face struct{ typ, data unsafe.Pointer }

// slotOf returns the slot of a field, whose copy has no place yet. Behind a
// pointer there is none.
func slotOf(row reflect.Type, index []int) slot {
	var s slot
	for i, n := range index {
		if i > 0 && row.Kind() != reflect.Struct {
			return slot{}
		}
		f := row.Field(n)
		s.from += f.Offset
		row = f.Type
	}
	if s.form = formOf(row); s.form != reflected {
		zero := reflect.Zero(row).Interface()
		s.typ, s.size = (*face)(unsafe.Pointer(&zero)).typ, row.Size() // values_test.go compares with what reflection makes, for every kind of field
	}
	return s
}

// take copies the field of a row and returns the copy as an argument. Both are
// addresses in memory of the types that the slot was made for.
func (s *slot) take(row, copies unsafe.Pointer) (v any) {
	from, to := unsafe.Add(row, s.from), unsafe.Add(copies, s.to)
	switch s.form {
	case word:
		*(*uint64)(to) = *(*uint64)(from)
	case chars:
		*(*string)(to) = *(*string)(from)
	case octets:
		*(*[]byte)(to) = *(*[]byte)(from)
	case moment:
		*(*time.Time)(to) = *(*time.Time)(from)
	default:
		copy(unsafe.Slice((*byte)(to), s.size), unsafe.Slice((*byte)(from), s.size))
	}
	*(*face)(unsafe.Pointer(&v)) = face{s.typ, to}
	return v
}

// memory is what the arguments of a plan and the copies they point to lie in. It
// is immutable; nil is that of a plan without copies.
type memory struct {
	copies reflect.Type // slice of structs, one for each row
	stride uintptr      // from one row's copies to the next
	one    reflect.Type // struct{ Args [params]any; Copies copies }: all that a single row takes
	first  uintptr      // of Copies in it
}

// memoryOf gives the copies of fields their places.
func memoryOf(fields []field) *memory {
	var copied []*field
	var members []reflect.StructField
	for i := range fields {
		if f := &fields[i]; f.slot.form != reflected {
			copied = append(copied, f)
			members = append(members, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: f.typ})
		}
	}
	if copied == nil {
		return nil
	}
	row := reflect.StructOf(members)
	for i, f := range copied {
		f.slot.to = row.Field(i).Offset
	}
	one := reflect.StructOf([]reflect.StructField{
		{Name: "Args", Type: reflect.ArrayOf(len(fields), reflect.TypeFor[any]())},
		{Name: "Copies", Type: row},
	})
	return &memory{reflect.SliceOf(row), row.Size(), one, one.Field(1).Offset}
}

// of returns memory for the arguments of n rows, and where the copies of the first
// one go.
func (m *memory) of(n, params int) (args []any, copies unsafe.Pointer) {
	switch {
	case m == nil:
		return make([]any, params), nil
	case n == 1:
		p := reflect.New(m.one).UnsafePointer()
		return unsafe.Slice((*any)(p), params), unsafe.Add(p, m.first)
	}
	return make([]any, params), reflect.MakeSlice(m.copies, n, n).UnsafePointer()
}

// at returns where the copies of row i go.
func (m *memory) at(copies unsafe.Pointer, i int) unsafe.Pointer {
	if m == nil {
		return nil
	}
	return unsafe.Add(copies, uintptr(i)*m.stride)
}

// places are the addresses of rows. The zero places are those of rows that
// reflection must find.
type places struct {
	first    unsafe.Pointer
	stride   uintptr
	indirect bool
}

// placesOf returns the places of the structs that v consists of: one, or a slice or
// an array of them or of pointers to them.
func placesOf(v reflect.Value, row reflect.Type) places {
	elem, p := v.Type(), places{}
	if elem != row {
		elem = elem.Elem()
		p.stride, p.indirect = elem.Size(), elem.Kind() == reflect.Pointer
	}
	if p.indirect {
		elem = elem.Elem()
	}
	switch {
	case elem != row || row.Kind() != reflect.Struct:
		return places{}
	case v.Kind() == reflect.Slice:
		p.first = v.UnsafePointer()
	case v.CanAddr():
		p.first = unsafe.Pointer(v.UnsafeAddr()) // converted where it is called, as package unsafe asks for
	default:
		return places{}
	}
	return p
}

// word returns where a word of row i lies.
func (r *rows) word(i int, s *slot) *int64 {
	return (*int64)(unsafe.Add(r.places.at(i), s.from))
}

// at returns the address of row i.
func (p *places) at(i int) unsafe.Pointer {
	at := unsafe.Add(p.first, uintptr(i)*p.stride)
	if p.indirect {
		at = *(*unsafe.Pointer)(at)
	}
	return at
}
