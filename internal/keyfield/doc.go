// SPDX-License-Identifier: Apache-2.0

// Package keyfield puts a generated id into a Go value: a struct field of any
// integer or string kind, a [16]byte, a pointer to one of these, or a
// sql.Scanner; and it reads the tags that ask for it. It knows reflection only,
// so that the GORM and the sqlx side fill the same kinds in the same way.
//
// It promises that an id either arrives whole or is refused with ErrOverflow or
// ErrType, and that nothing is stored then; Go's own conversion would cut it to
// the field's width without a word.
package keyfield
