// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
)

// V4 returns a generator of random UUIDs.
func V4() keygen.Generator[[16]byte] { return random(uuid.NewRandomFromReader) }

// V7 returns a generator of UUIDs that begin with the time in milliseconds since 1970. They
// rise strictly within a process, across all its V7 generators.
func V7() keygen.Generator[[16]byte] { return random(uuid.NewV7FromReader) }

// random makes a UUID from random bytes.
type random func(io.Reader) (uuid.UUID, error)

var _ keygen.Filler[[16]byte] = random(nil)

// Next returns a UUID.
func (r random) Next(context.Context) ([16]byte, error) {
	u, err := r(rand.Reader)
	return u, explain(err)
}

// Fill reads the random bytes of many UUIDs at once.
func (r random) Fill(_ context.Context, dst [][16]byte) error {
	const most = 4096
	source := bufio.NewReaderSize(rand.Reader, min(len(dst)*len(uuid.Nil), most))
	for i := range dst {
		u, err := r(source)
		if err != nil {
			return explain(err)
		}
		dst[i] = u
	}
	return nil
}

func explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("uuid: %w", err)
}
