package keygen

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// ID is an int64 id for model fields. It is a string in JSON, because
// JavaScript rounds numbers above 2^53, and reads strings and numbers; in the
// database it is a BIGINT that is not AUTO_INCREMENT.
type ID int64

var (
	_ json.Marshaler   = ID(0)
	_ json.Unmarshaler = (*ID)(nil)
	_ driver.Valuer    = ID(0)
	_ sql.Scanner      = (*ID)(nil)
)

// ParseID reads a decimal id. Anything else — a sign, a space, a number above
// the largest int64 — is an error that wraps [ErrSyntax].
func ParseID(text string) (ID, error) {
	n, err := Decimal.Decode(text)
	return ID(n), err
}

// String returns the decimal form.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// IDFromBytes reads the big-endian bytes of an id, as [ID.Bytes] and
// bwmarrin/snowflake's IntBytes write them. A set sign bit is an error that
// wraps [ErrSyntax].
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

// UnmarshalJSON reads a JSON string or an integer number; null leaves the id
// as it is. Fractions, exponents and numbers above the largest int64 are
// errors that wrap [ErrSyntax].
func (id *ID) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	text := data
	if len(data) >= 2 && data[0] == '"' && data[len(data)-1] == '"' {
		text = data[1 : len(data)-1]
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || text[0] == '+' {
		return fmt.Errorf("%w: JSON %s", ErrSyntax, data)
	}
	*id = ID(n)
	return nil
}

// Value returns the id as the int64 that drivers take.
func (id ID) Value() (driver.Value, error) { return int64(id), nil }

// Scan reads an id from a column. NULL is an error that wraps [ErrSyntax]: an
// id 0 must not pass for a missing one. Use sql.Null[keygen.ID] where a column
// may be NULL.
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
	if err != nil {
		return fmt.Errorf("%w: column value %q", ErrSyntax, text)
	}
	*id = ID(n)
	return nil
}

// GormDataType makes GORM's AutoMigrate create a BIGINT without
// AUTO_INCREMENT.
func (ID) GormDataType() string { return "bigint" }
