// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Layout describes the bits of an id. It is required. Time must be its highest field. It
	// must have no bucket field (gene bits), because the bucket of a row is not known when its
	// id is made ahead of time.
	Layout keygen.Layout

	// Worker assigns the worker id: a store's WorkerNode or [workerid.NewLeased], say. It is
	// required. The term of a lease must be at least three times the ring's length.
	//
	// [workerid.NewLeased]: https://pkg.go.dev/github.com/shardid/shardid/keygen/workerid#NewLeased
	Worker keygen.Assigner

	// BoostPower sets the ring's length: the ring holds the ids of 2^BoostPower ticks, so ids
	// are at most that many ticks ahead of the clock. From 1 to 16; the ring must not be longer
	// than a day. Defaults to 3.
	BoostPower int

	// PaddingFactor is a percentage of the ring's capacity, from 1 to 99. A fill starts when
	// fewer ids remain. Defaults to 50.
	PaddingFactor int

	// ScheduleInterval is the time between two scheduled fills, which start however many ids
	// remain. Defaults to 0: no scheduled fills.
	ScheduleInterval time.Duration

	// RejectedTake is the policy for a call that finds the ring empty. Defaults to Wait.
	//
	// UidGenerator has a second policy, for ids that find the ring full; its default drops and
	// counts them. This package needs none: a fill makes no id for which the ring has no place.
	// Ring.RejectedPuts counts the scheduled fills that found the ring full.
	RejectedTake RejectedTake

	// Observer is called at waits, refills, outages and recoveries.
	Observer Observer

	// Now replaces the clock, for tests or for an application's own clock. It must be safe for
	// concurrent use. Defaults to the system's clock, read as the package comment says.
	Now func() time.Time

	wall   func() time.Time    // replaces the wall clock in tests
	random func(n int64) int64 // returns a number from 0 to n-1; rand.Int64N outside of tests
}

// RejectedTake is the policy for a call that finds the ring empty.
type RejectedTake int

const (
	// Wait waits until the ring is filled, the call's context ends, or ten seconds have passed.
	Wait RejectedTake = iota
	// Fail returns an error at once, as UidGenerator's ExceptionRejectedTakeBuffer does.
	Fail
)

const (
	defaultBoostPower    = 3
	defaultPaddingFactor = 50

	maxBoostPower = 16
	maxRingLength = 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Layout.Fields = slices.Clone(c.Layout.Fields) // a later change by the caller must have no effect
	if c.BoostPower == 0 {
		c.BoostPower = defaultBoostPower
	}
	if c.PaddingFactor == 0 {
		c.PaddingFactor = defaultPaddingFactor
	}
	if c.random == nil {
		c.random = rand.Int64N
	}
	return c
}

// validate checks a Config that has its defaults.
func (c Config) validate() error {
	if err := c.validateLayout(); err != nil {
		return fmt.Errorf("cached: Config.Layout: %w", err)
	}
	switch {
	case nilness.Is(c.Worker):
		return errors.New("cached: Config.Worker is nil; set it to a store's WorkerNode, or to workerid.NewLeased")
	case c.BoostPower < 1 || c.BoostPower > maxBoostPower:
		return fmt.Errorf("cached: Config.BoostPower is %d; it must be from 1 to %d, and 0 means %d", c.BoostPower, maxBoostPower, defaultBoostPower)
	case c.Layout.Unit > maxRingLength>>c.BoostPower:
		return fmt.Errorf("cached: Config.BoostPower is %d: the ring would hold the ids of %d units of %v, and may hold those of %v at most; lower it", c.BoostPower, 1<<c.BoostPower, c.Layout.Unit, maxRingLength)
	case c.Layout.Bits(keygen.Sequence)+c.BoostPower > 62:
		return fmt.Errorf("cached: Config.BoostPower is %d: the ring would hold 2^%d ids, and may hold 2^62 at most; lower it", c.BoostPower, c.Layout.Bits(keygen.Sequence)+c.BoostPower)
	case c.PaddingFactor < 1 || c.PaddingFactor > 99:
		return fmt.Errorf("cached: Config.PaddingFactor is %d; it must be from 1 to 99, and 0 means %d", c.PaddingFactor, defaultPaddingFactor)
	case c.ScheduleInterval < 0:
		return fmt.Errorf("cached: Config.ScheduleInterval is %v; it must not be negative, and 0 means no scheduled fills", c.ScheduleInterval)
	case c.RejectedTake < Wait || c.RejectedTake > Fail:
		return fmt.Errorf("cached: Config.RejectedTake is %d; it must be Wait or Fail", c.RejectedTake)
	}
	return nil
}

func (c Config) validateLayout() error {
	if c.Layout.Fields == nil && c.Layout.Unit == 0 && c.Layout.Epoch.IsZero() {
		return fmt.Errorf("%w: Layout is not set; UidGenerator's has 28 bits of seconds, 22 of worker and 13 of sequence, and needs a later epoch than its own", keygen.ErrLayout)
	}
	if err := c.Layout.Validate(); err != nil {
		return err
	}
	switch l := c.Layout; {
	case l.Fields[0].Kind != keygen.Time:
		return fmt.Errorf("%w: the highest field is %v; it must be the time, so that ids made ahead rise from tick to tick", keygen.ErrLayout, l.Fields[0].Kind)
	case l.Bits(keygen.Bucket) > 0:
		return fmt.Errorf("%w: it has a bucket field, but the bucket of a row is not known when its id is made ahead; use package snowflake for bucket fields", keygen.ErrLayout)
	case l.WorkerBits() == 0:
		return fmt.Errorf("%w: it has no worker field", keygen.ErrLayout)
	}
	return nil
}

// ticks is the ring's length in ticks.
func (c Config) ticks() int64 { return 1 << c.BoostPower }

// length is the ring's length in time.
func (c Config) length() time.Duration { return c.Layout.Unit << c.BoostPower }
