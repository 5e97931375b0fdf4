package sqlxhook

import (
	"reflect"
	"unsafe"
)

// This file holds all that touches memory without package reflect, which would
// allocate for each argument: an interface holds a value by its address, and
// reflect copies the value first. Rows are not written while they are sent, so
// the arguments are interfaces that point into the rows themselves. They have
// the fields' own types, so no driver, mock or log sees a difference.

// memory says where the rows of a call lie.
type memory struct {
	first    unsafe.Pointer // of the rows, or of the pointers to them; nil when reflect must find them
	stride   uintptr
	pointers bool
}

// memoryOf finds the rows of an argument: those of a slice or an array of
// structs or of pointers to them, or the single struct.
func memoryOf(r *rows) memory {
	if r.typ.Kind() != reflect.Struct {
		return memory{}
	}
	elem := r.typ
	m := memory{}
	if r.many {
		elem = r.v.Type().Elem()
		m.stride, m.pointers = elem.Size(), elem.Kind() == reflect.Pointer
		if m.pointers {
			elem = elem.Elem()
		}
	}
	switch {
	case elem != r.typ:
	case r.v.Kind() == reflect.Slice:
		m.first = r.v.UnsafePointer()
	case r.v.CanAddr():
		m.first = unsafe.Pointer(r.v.UnsafeAddr()) //nolint:gosec // converted where it is called, as package unsafe asks for
	}
	return m
}

// row returns the address of row i.
func (m *memory) row(i int) unsafe.Pointer {
	p := unsafe.Add(m.first, uintptr(i)*m.stride)
	if m.pointers {
		p = *(*unsafe.Pointer)(p)
	}
	return p
}

// cell is a field that lies at a fixed distance from the start of its row.
type cell struct {
	offset uintptr
	typ    unsafe.Pointer // the type word of interfaces that hold the field; nil when there is no cell
}

// face is the layout of an interface that has no methods.
type face struct{ typ, value unsafe.Pointer }

// cellOf returns the cell of a field. There is none behind a pointer, nor for
// the kinds that an interface holds as they are instead of by address.
func cellOf(t reflect.Type, index []int) cell {
	var c cell
	for i, n := range index {
		if i > 0 && t.Kind() != reflect.Struct {
			return cell{}
		}
		f := t.Field(n)
		c.offset += f.Offset
		t = f.Type
	}
	if heldByAddress(t) {
		zero := reflect.Zero(t).Interface()
		c.typ = (*face)(unsafe.Pointer(&zero)).typ //nolint:gosec // a test compares with what reflect makes, for each kind of field
	}
	return c
}

func heldByAddress(t reflect.Type) bool {
	switch k := t.Kind(); k {
	case reflect.String, reflect.Slice:
		return true
	case reflect.Struct, reflect.Array:
		return t.Size() > unsafe.Sizeof(uintptr(0)) // a struct of one pointer is held as that pointer
	default:
		return k >= reflect.Bool && k <= reflect.Complex128
	}
}

// put sets v to the cell's value in a row, without copying it.
func (c *cell) put(v *any, row unsafe.Pointer) {
	*(*face)(unsafe.Pointer(v)) = face{c.typ, unsafe.Add(row, c.offset)} //nolint:gosec // as above; the row has the type that the offset is of
}

// isWord reports whether the cell of a field of type t is an integer of 64 bits.
func (c *cell) isWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return c.typ != nil && t.Size() == 8
	}
	return false
}

// word returns where such an integer lies. Ids are not negative, so its sign
// does not matter.
func (c *cell) word(row unsafe.Pointer) *int64 {
	return (*int64)(unsafe.Add(row, c.offset))
}

// length returns the length of a cell that is a string or a slice: both begin
// with a pointer and their length.
func (c *cell) length(row unsafe.Pointer) int {
	return len(*(*string)(unsafe.Add(row, c.offset)))
}
