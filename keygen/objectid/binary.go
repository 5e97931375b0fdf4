// SPDX-License-Identifier: Apache-2.0

package objectid

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Binary is an ObjectId for model fields: 12 bytes in the database, for BINARY(12), and 24
// hexadecimal digits in JSON. database/sql does not accept a plain [12]byte.
type Binary [12]byte

var (
	_ driver.Valuer            = Binary{}
	_ sql.Scanner              = (*Binary)(nil)
	_ fmt.Stringer             = Binary{}
	_ encoding.TextMarshaler   = Binary{}
	_ encoding.TextUnmarshaler = (*Binary)(nil)
)

// String returns the 24 digits of the id.
func (b Binary) String() string { return Hex(b) }

// Value returns the 12 bytes.
func (b Binary) Value() (driver.Value, error) { return b[:], nil }

// Scan reads 12 bytes, or a text that Parse reads. For any other value, including NULL, the
// error wraps [keygen.ErrSyntax]; use sql.Null[objectid.Binary] where a column may be NULL.
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
	return fmt.Errorf("%w: column value of type %T is no ObjectId", keygen.ErrSyntax, src)
}

// MarshalText returns the 24 digits of the id.
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

// GormDataType makes GORM's AutoMigrate create a BINARY(12).
func (Binary) GormDataType() string { return "binary(12)" }
