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
	// Layout says how ids are made up. It is required. Time must be its highest
	// field, and it can have no gene bits, which are not known ahead of time.
	Layout keygen.Layout

	// Worker assigns the worker id, a store's WorkerNode or
	// [workerid.NewLeased] say. It is required. The term of a lease must be three
	// times the ring's length at least.
	//
	// [workerid.NewLeased]: https://pkg.go.dev/github.com/shardid/shardid/keygen/workerid#NewLeased
	Worker keygen.Assigner

	// BoostPower sets the ring's length: it holds the ids of 2^BoostPower ticks,
	// and they are ahead of the clock by so many at most. From 1 to 16; the ring
	// must not be longer than a day. Defaults to 3.
	BoostPower int

	// PaddingFactor is the percentage of the ring's capacity, from 1 to 99: the
	// ring is filled when fewer ids remain. Defaults to 50.
	PaddingFactor int

	// ScheduleInterval is how often the ring is filled besides. Defaults to 0:
	// never.
	ScheduleInterval time.Duration

	// RejectedTake says what a call does that finds the ring empty. Defaults to
	// Wait.
	//
	// UidGenerator's other policy, for ids that find the ring full, is its
	// default one, which drops and counts them: a fill makes no ids that have no
	// place, and Ring.RejectedPuts counts the fills that could make none.
	RejectedTake RejectedTake

	// Observer is told about waits, refills and outages.
	Observer Observer

	// Now replaces the clock, for tests or for a clock of one's own. It must be
	// safe for concurrent use. Defaults to the system's clock, read as the package
	// comment says.
	Now func() time.Time

	wall   func() time.Time    // the wall clock, of tests
	random func(n int64) int64 // a number from 0 to n-1; rand.Int64N but in tests
}

// RejectedTake is what a call does that finds the ring empty.
type RejectedTake int

const (
	// Wait waits until the ring is filled, under the call's context and for ten
	// seconds at most.
	Wait RejectedTake = iota
	// Fail fails at once, as UidGenerator's ExceptionRejectedTakeBuffer does.
	Fail
)

const (
	defaultBoostPower    = 3
	defaultPaddingFactor = 50

	maxBoostPower = 16
	maxRingLength = 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Layout.Fields = slices.Clone(c.Layout.Fields) // the caller may change his
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
		return errors.New("cached: Config.Worker is nil; give a store's WorkerNode, or workerid.NewLeased")
	case c.BoostPower < 1 || c.BoostPower > maxBoostPower:
		return fmt.Errorf("cached: Config.BoostPower is %d; it is from 1 to %d, and 0 means %d", c.BoostPower, maxBoostPower, defaultBoostPower)
	case c.Layout.Unit > maxRingLength>>c.BoostPower:
		return fmt.Errorf("cached: Config.BoostPower is %d, so that the ring would hold the ids of %d units of %v; the most is %v", c.BoostPower, 1<<c.BoostPower, c.Layout.Unit, maxRingLength)
	case c.Layout.Bits(keygen.Sequence)+c.BoostPower > 62:
		return fmt.Errorf("cached: Config.BoostPower is %d, so that the ring would hold 2^%d ids; the most is 2^62", c.BoostPower, c.Layout.Bits(keygen.Sequence)+c.BoostPower)
	case c.PaddingFactor < 1 || c.PaddingFactor > 99:
		return fmt.Errorf("cached: Config.PaddingFactor is %d; it is from 1 to 99, and 0 means %d", c.PaddingFactor, defaultPaddingFactor)
	case c.ScheduleInterval < 0:
		return fmt.Errorf("cached: Config.ScheduleInterval is %v; 0 means never", c.ScheduleInterval)
	case c.RejectedTake < Wait || c.RejectedTake > Fail:
		return fmt.Errorf("cached: Config.RejectedTake is %d; it is Wait or Fail", c.RejectedTake)
	}
	return nil
}

func (c Config) validateLayout() error {
	if c.Layout.Fields == nil && c.Layout.Unit == 0 && c.Layout.Epoch.IsZero() {
		return fmt.Errorf("%w: it is not set; UidGenerator's has 28 bits of seconds, 22 of worker and 13 of sequence, and needs a later epoch than its own", keygen.ErrLayout)
	}
	if err := c.Layout.Validate(); err != nil {
		return err
	}
	switch l := c.Layout; {
	case l.Fields[0].Kind != keygen.Time:
		return fmt.Errorf("%w: the highest field is %v; put the time there, as ids made ahead must rise from tick to tick", keygen.ErrLayout, l.Fields[0].Kind)
	case l.Bits(keygen.Bucket) > 0:
		return fmt.Errorf("%w: the bucket of an id is not known when it is made ahead; use package snowflake for gene bits", keygen.ErrLayout)
	case l.WorkerBits() == 0:
		return fmt.Errorf("%w: it has no worker field", keygen.ErrLayout)
	}
	return nil
}

// ticks is the ring's length in ticks.
func (c Config) ticks() int64 { return 1 << c.BoostPower }

// length is the ring's length in time.
func (c Config) length() time.Duration { return c.Layout.Unit << c.BoostPower }
