// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
)

// V1Of returns a V1 whose time and counter are draw's.
func V1Of(draw func() (uuid.UUID, error)) keygen.Generator[[16]byte] {
	c := newClocked(keep)
	c.draw = draw
	return c
}

// HighFirst makes a V6 of a V1.
func HighFirst(id [16]byte) [16]byte { return highFirst(id) }
