// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// ID is an int64 id for model fields. In JSON it is written as a string, because JavaScript
// rounds numbers above 2^53; strings and numbers are read. In the database it is a BIGINT
// without AUTO_INCREMENT.
//
// ParseID, UnmarshalJSON and UnmarshalText read input from outside. They accept only the form
// that String writes: decimal digits without a sign and without leading zeros. So each id has
// exactly one text. Scan reads columns, and accepts any number that the row has.
type ID int64

var (
	_ json.Marshaler   = ID(0)
	_ json.Unmarshaler = (*ID)(nil)
	_ driver.Valuer    = ID(0)
	_ sql.Scanner      = (*ID)(nil)

	_ encoding.TextMarshaler   = ID(0)
	_ encoding.TextUnmarshaler = (*ID)(nil)
)

// ParseID reads a decimal id, including 0. For any other text — with a sign, a space, a leading
// zero, or a number above the largest int64 — the error wraps [ErrSyntax].
func ParseID(text string) (ID, error) {
	n, err := Decimal.Decode(text)
	if err != nil {
		return 0, err
	}
	if len(text) > 1 && text[0] == '0' {
		return 0, fmt.Errorf("%w: %s has a leading zero", ErrSyntax, clip(text))
	}
	return ID(n), nil
}

// String returns the decimal form. Generators make no negative ids; ParseID refuses the text of
// a negative number.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// IDFromBytes reads the big-endian bytes of an id, as [ID.Bytes] and bwmarrin/snowflake's
// IntBytes write them. If the sign bit is set, the error wraps [ErrSyntax].
func IDFromBytes(b [8]byte) (ID, error) {
	id := ID(binary.BigEndian.Uint64(b[:]))
	if id < 0 {
		return 0, fmt.Errorf("%w: bytes %x are a negative number", ErrSyntax, b)
	}
	return id, nil
}

// Bytes returns the big-endian bytes of an id, which sort like ids.
func (id ID) Bytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// MarshalJSON writes the id as a JSON string.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, id.String()), nil
}

// UnmarshalJSON reads a JSON string or number in the form that [ParseID] reads; null leaves the
// id unchanged. For anything else, such as a fraction, an exponent or a sign, the error wraps
// [ErrSyntax].
func (id *ID) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	text := data
	if len(data) >= 2 && data[0] == '"' && data[len(data)-1] == '"' {
		text = data[1 : len(data)-1]
	}
	return id.UnmarshalText(text)
}

// MarshalText returns the decimal form, for keys of JSON objects and other text formats.
func (id ID) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(id), 10), nil }

// UnmarshalText reads the form that [ParseID] reads. On an error the id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = n
	return nil
}

// Value returns the id as the int64 that drivers take.
func (id ID) Value() (driver.Value, error) { return int64(id), nil }

// Scan reads an id from a column: an integer, or its decimal text, with leading zeros if the
// column has ZEROFILL. A negative number is accepted because the row has it as its id. For NULL
// the error wraps [ErrSyntax], because an id 0 must not stand for a missing one. Use
// sql.Null[keygen.ID] where a column may be NULL.
func (id *ID) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		*id = ID(v)
		return nil
	case uint64: // a BIGINT UNSIGNED
		if v > math.MaxInt64 {
			return fmt.Errorf("%w: column value %d is above the highest id", ErrSyntax, v)
		}
		*id = ID(v)
		return nil
	case []byte:
		return id.scanText(string(v))
	case string:
		return id.scanText(v)
	}
	return fmt.Errorf("%w: column value of type %T", ErrSyntax, src)
}

func (id *ID) scanText(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		return fmt.Errorf("%w: column value %q", ErrSyntax, text)
	}
	*id = ID(n)
	return nil
}

// GormDataType makes GORM's AutoMigrate create a BIGINT without
// AUTO_INCREMENT.
func (ID) GormDataType() string { return "bigint" }
