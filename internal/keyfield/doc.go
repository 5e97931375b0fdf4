// Package keyfield puts a generated id into a Go value: a struct field of any
// integer kind, a pointer to one, or a sql.Scanner. It knows reflection only,
// so that the GORM and the sqlx side fill the same kinds in the same way.
//
// It promises that an id either arrives whole or is refused with ErrOverflow;
// Go's own conversion would cut it to the field's width without a word.
package keyfield
