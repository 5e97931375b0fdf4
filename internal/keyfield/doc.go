// SPDX-License-Identifier: Apache-2.0

// Package keyfield stores a generated id in a Go value: a struct field of any integer or string
// kind, a [16]byte, a pointer to one of these, or a sql.Scanner. It also reads the tags of such
// fields and finds their generators, so that gormplugin and sqlxhook fill the same kinds of fields
// in the same way.
//
// An id is either stored completely or refused with ErrOverflow or ErrType, and then nothing is
// stored. Go's own conversion would silently truncate it to the field's width.
package keyfield
