package gormplugin

import (
	"reflect"
	"unsafe"

	"gorm.io/gorm/schema"
)

// words are the places of a 64-bit integer field in the rows of a statement.
// Reflection takes several times as long to reach them as the rest of the
// filling takes, so this file, and no other, computes addresses. They are those
// that reflect would give: base is the address of rows that reflect holds, and
// the offset was summed up from the struct's own type.
type words struct {
	base     unsafe.Pointer
	stride   uintptr // from one row to the next
	offset   uintptr // of the field in the struct
	n        int
	indirect bool // the rows are pointers to structs
}

// wordOf returns the offset of a field that is a plain 64-bit integer with no
// pointer on the way to it.
func wordOf(model reflect.Type, f *schema.Field) (offset uintptr, ok bool) {
	switch f.FieldType.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
	default:
		return 0, false
	}
	for _, i := range f.StructField.Index {
		if i < 0 { // gorm's mark for an embedded pointer
			return 0, false
		}
		step := model.Field(i)
		offset += step.Offset
		model = step.Type
	}
	return offset, model == f.FieldType && model.Size() == unsafe.Sizeof(int64(0))
}

// wordsOf returns the places of the field in rows that are structs.
func wordsOf(structs reflect.Value, offset uintptr) words {
	w := words{n: 1, offset: offset}
	switch structs.Kind() {
	case reflect.Slice:
		w.base, w.n = structs.UnsafePointer(), structs.Len()
	case reflect.Array:
		w.base, w.n = unsafe.Pointer(structs.UnsafeAddr()), structs.Len() //nolint:gosec // see above
	default:
		w.base = unsafe.Pointer(structs.UnsafeAddr()) //nolint:gosec // see above
		return w
	}
	elem := structs.Type().Elem()
	w.stride, w.indirect = elem.Size(), elem.Kind() == reflect.Pointer
	return w
}

// at returns the place in row i, nil where the row is a nil pointer.
func (w *words) at(i int) *int64 {
	p := unsafe.Add(w.base, uintptr(i)*w.stride)
	if w.indirect {
		if p = *(*unsafe.Pointer)(p); p == nil {
			return nil
		}
	}
	return (*int64)(unsafe.Add(p, w.offset))
}
