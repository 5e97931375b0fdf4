// SPDX-License-Identifier: Apache-2.0

package input

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/shardid/shardid/internal/dialect"
)

// Error is a mistake in the user's input. Its text says what to do.
type Error struct{ err error }

// Errorf returns an *Error; %w works as in fmt.Errorf.
func Errorf(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}

// Unread is the error for an unreadable file that a flag names. It says why the file cannot
// be read; instead says what to give.
func Unread(flag, path string, err error, instead string) error {
	why := "cannot be read"
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "does not exist"
	case errors.As(err, &cause):
		why += ": " + cause.Err.Error() // without the path, which may be a DSN with a password
	}
	return Errorf("%s %s %s; %s", flag, dialect.RedactDSN(path), why, instead)
}

// Wrap returns err as an *Error.
func Wrap(err error) error { return &Error{err} }

// Error returns the text without anything added.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Caused reports whether err is, or wraps, a mistake in the user's input.
func Caused(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
