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

// slot is where a field lies in its row, where its copy lies among those of the row,
// and which of the row's arguments points to that.
type slot struct {
	form          form
	typ           unsafe.Pointer // what an interface value of the field's type begins with
	from, to, arg uintptr
	size          uintptr
}

// face is the layout of an interface value without methods.
type face struct{ typ, data unsafe.Pointer }

const faceSize = unsafe.Sizeof(face{})

// dataOf returns what a pointer in an interface value points to, and where one
// keeps a value that is none.
func dataOf(v *any) unsafe.Pointer { return (*face)(unsafe.Pointer(v)).data }

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

// memory is what the arguments of a plan and the copies they point to lie in. It
// is immutable; nil is that of a plan without copies.
type memory struct {
	slots  []slot        // of the fields that are copied
	group  []slot        // of them, those of the VALUES group
	width  uintptr       // from one row's arguments to the next
	copies reflect.Type  // slice of structs, one for each row
	stride uintptr       // from one row's copies to the next
	one    reflect.Value // zero struct{ Args [params]any; Copies copies }: all that a single row takes
	first  uintptr       // of Copies in it
}

// memoryOf gives the copies of p's fields their places.
func memoryOf(p *plan) *memory {
	m := &memory{width: uintptr(len(p.group)) * faceSize}
	var members []reflect.StructField
	for i, f := range p.fields {
		if f.slot.form != reflected {
			f.slot.arg = uintptr(i) * faceSize
			m.slots = append(m.slots, f.slot)
			members = append(members, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: f.typ})
		}
	}
	if members == nil {
		return nil
	}
	row := reflect.StructOf(members)
	for i := range m.slots {
		m.slots[i].to = row.Field(i).Offset
	}
	heads := copied(p.head)
	m.group = m.slots[heads : heads+copied(p.group)]
	one := reflect.StructOf([]reflect.StructField{
		{Name: "Args", Type: reflect.ArrayOf(len(p.fields), reflect.TypeFor[any]())},
		{Name: "Copies", Type: row},
	})
	m.copies, m.stride = reflect.SliceOf(row), row.Size()
	m.one, m.first = reflect.New(one).Elem(), one.Field(1).Offset
	return m
}

// copied is how many of the fields are copied.
func copied(fields []field) int {
	n := 0
	for i := range fields {
		if fields[i].slot.form != reflected {
			n++
		}
	}
	return n
}

// take returns the arguments of r, those that are copied in place. In a batch they
// are in the VALUES groups alone.
func (m *memory) take(r *rows, params int) []any {
	if r.n == 1 {
		one := m.one.Interface() // in new memory; reflect.New would look for the type of its pointer first
		args := dataOf(&one)
		take(m.slots, r.places.at(0), unsafe.Add(args, m.first), args)
		return unsafe.Slice((*any)(args), params)
	}
	all := make([]any, params)
	args, copies := unsafe.Pointer(unsafe.SliceData(all)), reflect.MakeSlice(m.copies, r.n, r.n).UnsafePointer()
	for i := range r.n {
		take(m.group, r.places.at(i), unsafe.Add(copies, uintptr(i)*m.stride), unsafe.Add(args, uintptr(i)*m.width))
	}
	return all
}

// take copies fields of a row, and points arguments to the copies. All addresses
// are in memory of the types that the slots were made for.
func take(slots []slot, row, copies, args unsafe.Pointer) {
	for i := range slots {
		s := &slots[i]
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
		var v any // what assigns it knows that no type needs telling to the garbage collector
		*(*face)(unsafe.Pointer(&v)) = face{s.typ, to}
		*(*any)(unsafe.Add(args, s.arg)) = v
	}
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
func (p places) at(i int) unsafe.Pointer {
	at := unsafe.Add(p.first, uintptr(i)*p.stride)
	if p.indirect {
		at = *(*unsafe.Pointer)(at)
	}
	return at
}
