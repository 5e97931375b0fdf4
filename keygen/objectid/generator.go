// SPDX-License-Identifier: Apache-2.0

package objectid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Now reads the clock. Defaults to time.Now.
	Now func() time.Time
}

// Generator makes ObjectIds. It is safe for concurrent use. The zero Generator has no
// random bytes, and refuses every key.
type Generator struct {
	now func() time.Time
	// taken is the number of the last id: the random bytes above the counter.
	taken atomic.Uint64
}

var (
	_ keygen.Generator[[12]byte] = (*Generator)(nil)
	_ keygen.Filler[[12]byte]    = (*Generator)(nil)
)

// New returns a generator with its own random bytes. One generator for each process is
// enough.
func New(cfg Config) *Generator {
	g := &Generator{now: cfg.Now}
	if g.now == nil {
		g.now = time.Now
	}
	var start [8]byte
	_, _ = rand.Read(start[:]) // never fails
	g.taken.Store(binary.BigEndian.Uint64(start[:]))
	return g
}

// Next returns an id of this second. It fails only when the clock is before 1970
// or after 2106.
func (g *Generator) Next(context.Context) ([12]byte, error) {
	sec, err := g.second()
	if err != nil {
		return [12]byte{}, err
	}
	return compose(sec, g.taken.Add(1)), nil
}

// Fill sets dst to consecutive ids of this second.
func (g *Generator) Fill(_ context.Context, dst [][12]byte) error {
	sec, err := g.second()
	if err != nil {
		return err
	}
	first := g.taken.Add(uint64(len(dst))) - uint64(len(dst)) + 1
	for i := range dst {
		dst[i] = compose(sec, first+uint64(i))
	}
	return nil
}

func (g *Generator) second() (uint32, error) {
	if g.now == nil {
		return 0, fmt.Errorf("objectid: %w: it was not made by New, and without random bytes ids would repeat", keygen.ErrUnknownGenerator)
	}
	switch sec := g.now().Unix(); {
	case sec < 1:
		return 0, fmt.Errorf("%w: it reads a time before 1970, which ObjectIds cannot hold; set it", keygen.ErrClockRollback)
	case sec > math.MaxUint32:
		return 0, fmt.Errorf("%w: the clock reads a time after 2106-02-07, which ObjectIds cannot hold; set it, or choose other keys", keygen.ErrExpired)
	default:
		return uint32(sec), nil
	}
}

func compose(sec uint32, number uint64) (id [12]byte) {
	binary.BigEndian.PutUint32(id[:], sec)
	binary.BigEndian.PutUint64(id[4:], number)
	return id
}
