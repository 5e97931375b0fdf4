// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Binary is a UUID for model fields: 16 bytes in the database, for BINARY(16), and a text
// of 36 characters in JSON. database/sql does not accept a plain [16]byte.
type Binary [16]byte

var (
	_ driver.Valuer            = Binary{}
	_ sql.Scanner              = (*Binary)(nil)
	_ fmt.Stringer             = Binary{}
	_ encoding.TextMarshaler   = Binary{}
	_ encoding.TextUnmarshaler = (*Binary)(nil)
)

// String returns the 36 characters of the UUID.
func (b Binary) String() string { return Dashed(b) }

// Value returns the 16 bytes.
func (b Binary) Value() (driver.Value, error) { return b[:], nil }

// Scan reads 16 bytes, or a text that Parse reads. For any other value, including NULL, the
// error wraps [keygen.ErrSyntax]; use sql.Null[uuid.Binary] where a column may be NULL.
func (b *Binary) Scan(src any) error {
	switch v := src.(type) {
	case []byte:
		if len(v) == len(b) {
			copy(b[:], v)
			return nil
		}
		return b.UnmarshalText(v)
	case string:
		return b.UnmarshalText([]byte(v))
	}
	return fmt.Errorf("%w: column value of type %T is no UUID", keygen.ErrSyntax, src)
}

// MarshalText returns the 36 characters of the UUID.
func (b Binary) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads the texts that [Parse] reads.
func (b *Binary) UnmarshalText(text []byte) error {
	id, err := Parse(string(text))
	if err != nil {
		return err
	}
	*b = id
	return nil
}

// GormDataType makes GORM's AutoMigrate create a BINARY(16).
func (Binary) GormDataType() string { return "binary(16)" }
