// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
)

const (
	dashedLen = 36
	hexLen    = 32
)

// Dashed returns the 36 characters of a UUID, in lower case, for CHAR(36).
func Dashed(id [16]byte) string { return uuid.UUID(id).String() }

// Hex returns the 32 digits of a UUID, in lower case and without dashes, for
// CHAR(32).
func Hex(id [16]byte) string { return hex.EncodeToString(id[:]) }

// DashedKeys returns a generator of the 36 characters of g's UUIDs.
func DashedKeys(g keygen.Generator[[16]byte]) keygen.Generator[string] {
	return keygen.Map(g, func(id [16]byte) (string, error) { return Dashed(id), nil })
}

// HexKeys returns a generator of the 32 digits of g's UUIDs.
func HexKeys(g keygen.Generator[[16]byte]) keygen.Generator[string] {
	return keygen.Map(g, func(id [16]byte) (string, error) { return Hex(id), nil })
}

// Parse reads a UUID of any version in either form, in upper or lower case. For any other
// text, such as a URN or one in braces, the error wraps [keygen.ErrSyntax].
func Parse(text string) ([16]byte, error) {
	if len(text) != dashedLen && len(text) != hexLen {
		return [16]byte{}, fmt.Errorf("%w: a UUID of %d characters; it has %d, or %d without dashes", keygen.ErrSyntax, len(text), dashedLen, hexLen)
	}
	u, err := uuid.Parse(text)
	if err != nil {
		return [16]byte{}, fmt.Errorf("%w: %q: %w", keygen.ErrSyntax, text, err)
	}
	return u, nil
}
