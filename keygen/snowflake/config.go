// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Layout describes the bits of an id. The zero Layout means [keygen.Twitter].
	Layout keygen.Layout

	// Worker assigns the worker id. It is required, because two processes with the same worker
	// id would issue the same ids.
	Worker keygen.Assigner

	// Sequence says with which sequence a new tick starts. Defaults to Carry.
	Sequence Sequence

	// Borrow is how far the time in ids may be ahead of the clock while callers want more ids
	// than the layout has for the time that passes. Zero means one unit of the layout, which
	// Carry needs. A longer time needs a worker id whose lease stores how far it was used (a
	// [keygen.Window]), because the next holder could not know otherwise.
	Borrow time.Duration

	// Rollback lists the policies to try, in this order, when Now is behind the last id by more
	// than two units and Borrow. (The package comment describes what happens with the system's
	// clock.) When no policy helps, a generator whose worker id is a [keygen.Window] goes on
	// with ids ahead of the clock up to the ceiling; otherwise the call returns
	// [keygen.ErrClockRollback]. An empty list tries nothing. Nil means Wait(time.Second).
	Rollback []Policy

	// Coarse makes one goroutine of the generator update the tick while ids are drawn, so that
	// an id costs an addition and a comparison, and no reading of the clock. The goroutine
	// sleeps when no id was drawn for ten ticks (of a millisecond at least), and the first id
	// after that reads the clock. When the goroutine waits for a processor, the time in ids
	// lags by as much; the ids are still unique and still rise. Coarse has no effect on Fill.
	// It does not work for layouts with a bucket field.
	Coarse bool

	// Now replaces the clock, for tests or for an application's own clock; it may go back. It
	// must be safe for concurrent use. Defaults to the system's clock, read as the package
	// comment says, which does not go back while a process runs.
	Now func() time.Time

	wall      func() time.Time    // replaces the wall clock in tests
	random    func(n int64) int64 // returns a number from 0 to n-1; rand.Int64N outside of tests
	testPause <-chan struct{}     // in tests the ticker waits until it can receive from it
}

// Sequence is a way to start the sequence of a new tick.
type Sequence int

const (
	// Carry continues with the sequence after the last tick's, and starts at a random one. If
	// the sequence is the layout's lowest field, ids are then evenly distributed modulo any
	// power of two up to the number of sequences in a tick, at any rate.
	Carry Sequence = iota
	// FromZero starts at 0, as Twitter's, UidGenerator's and bwmarrin's generators do. At low
	// rates nearly all ids are multiples of the sequence's range, so they all fall on one shard
	// if the shard is taken from the low bits.
	FromZero
	// Scatter starts at a random one of the first tenth of the range; Leaf uses the first
	// hundred of 4096. Ids are uneven, but less so than with FromZero.
	Scatter
)

func (c Config) withDefaults() Config {
	if c.Layout.Fields == nil && c.Layout.Unit == 0 && c.Layout.Epoch.IsZero() {
		c.Layout = keygen.Twitter()
	}
	c.Layout.Fields = slices.Clone(c.Layout.Fields) // a later change by the caller must have no effect
	if c.Rollback == nil {
		c.Rollback = []Policy{Wait(time.Second)}
	}
	if c.random == nil {
		c.random = rand.Int64N
	}
	return c
}

// maxBucketBits bounds the memory for the counters of a layout with a bucket field, 16 bytes
// per bucket.
const maxBucketBits = 20

func (c Config) validate() error {
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("snowflake: Config.Layout: %w", err)
	}
	if c.Layout.WorkerBits() == 0 {
		return fmt.Errorf("snowflake: Config.Layout: %w: it has no worker field", keygen.ErrLayout)
	}
	if b := c.Layout.Bits(keygen.Bucket); b > maxBucketBits {
		return fmt.Errorf("snowflake: Config.Layout: %w: a bucket field of %d bits; the widest is %d", keygen.ErrLayout, b, maxBucketBits)
	}
	if nilness.Is(c.Worker) {
		return errors.New("snowflake: Config.Worker is nil; set it to workerid.Static(n), with a different n in every process, or to a store's WorkerNode")
	}
	for i, p := range c.Rollback {
		if s, ok := p.(switchWorker); p == nil || ok && nilness.Is(s.to) {
			return fmt.Errorf("snowflake: Config.Rollback[%d] is nil, or switches to a nil assigner; set the assigner of the spare worker ids", i)
		}
	}
	if c.Coarse && c.Layout.Bits(keygen.Bucket) > 0 {
		return fmt.Errorf("snowflake: Config.Coarse: %w: the layout has a bucket field, which needs a counter per bucket; leave Coarse unset", keygen.ErrLayout)
	}
	if err := c.validateSpares(); err != nil {
		return err
	}
	if c.Sequence < Carry || c.Sequence > Scatter {
		return fmt.Errorf("snowflake: Config.Sequence is %d; it must be Carry, FromZero or Scatter", c.Sequence)
	}
	room := bits.LeadingZeros64(uint64(c.Layout.Unit)) - 1
	if most := c.Layout.Unit << min(c.Layout.Bits(keygen.Time)/2, room); c.Borrow < 0 || c.Borrow > most {
		return fmt.Errorf("snowflake: Config.Borrow is %v; it must be from 0 to %v for this layout", c.Borrow, most)
	}
	return nil
}

// validateSpares refuses leased worker ids of two namespaces, because a worker id of one
// namespace may be held by another process in the other.
func (c Config) validateSpares() error {
	type named interface{ Namespace() string }
	own, leased := c.Worker.(named)
	for _, p := range c.Rollback {
		to, _ := p.(switchWorker)
		if spare, ok := to.to.(named); ok && leased && spare.Namespace() != own.Namespace() {
			return fmt.Errorf("snowflake: Config.Rollback switches to a worker id leased in namespace %q, and Config.Worker leases in %q, where another process can hold the same one; lease both in one namespace", spare.Namespace(), own.Namespace())
		}
	}
	return nil
}

// aheadTicks returns Borrow in ticks. It is at least 1: a tick that starts in the middle of a
// sequence ends before it has issued as many ids as a tick has.
func (c Config) aheadTicks() int64 {
	return max(int64(c.Borrow/c.Layout.Unit), 1)
}
