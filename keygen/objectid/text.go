// SPDX-License-Identifier: Apache-2.0

package objectid

import (
	"encoding/hex"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

const hexLen = 24

// Hex returns the 24 digits of an id, in lower case.
func Hex(id [12]byte) string { return hex.EncodeToString(id[:]) }

// HexKeys returns a generator of the 24 digits of g's ids, which sort like the
// ids.
func HexKeys(g keygen.Generator[[12]byte]) keygen.Generator[string] {
	return keygen.Map(g, func(id [12]byte) (string, error) { return Hex(id), nil })
}

// Parse reads the 24 digits of an id, in upper or lower case. For any other text the error
// wraps [keygen.ErrSyntax].
func Parse(text string) (id [12]byte, err error) {
	if len(text) != hexLen {
		return [12]byte{}, fmt.Errorf("%w: an ObjectId of %d characters; it has %d", keygen.ErrSyntax, len(text), hexLen)
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return [12]byte{}, fmt.Errorf("%w: %q: %w", keygen.ErrSyntax, text, err)
	}
	return id, nil
}
