// SPDX-License-Identifier: Apache-2.0

package periodic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
)

// Counters stores counters by name. The Periods of sqlstore and of redisgen implement it.
// It is safe for concurrent use.
type Counters interface {
	// Reserve reserves n numbers, at least 1, of the counter of a group in a period. It
	// creates a missing counter, which begins at 1. It reserves only while the counters' own
	// clock reads at least from and less than to; at any other time it reserves nothing, and
	// the error wraps keygen.ErrClockRollback. The span fulfils the contract of keygen.Source.
	// Names of a group's periods sort by time.
	Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error)
}

// Config configures [Numbers].
type Config struct {
	// Counters stores the counters. It is required.
	Counters Counters

	// Name says what is numbered, "order" for example. It is the first part of the counters'
	// names and must not contain a slash. All users of one Name must always have the same
	// Period, Zone and Digits: to change one of them, use another Name. It is required.
	Name string

	// Period is the time after which numbers begin at 1 again. It is required.
	Period Period

	// Zone is the time zone in which a day begins. It is required, and must be the same in all
	// processes.
	Zone *time.Location

	// Digits is the number of digits of the count: a period has 10^Digits - 1 numbers. It is
	// required, from 1 to the number that makes 18 digits together with the period: 10 for
	// days, 12 for months, 14 for years.
	Digits int

	// Step is how many numbers of a key are reserved at a time at first. As in package
	// segment, the size then follows the demand, so that a segment lasts for 15 to 30 minutes.
	// Up to two segments of a key become gaps when a process ends, and when the period ends.
	// Defaults to 10.
	Step int64

	// MaxStep is the largest size. Defaults to 1000, or to Step if that is larger. With
	// MaxStep 1 and Step 1, the only gaps are numbers of lost answers, and up to two numbers
	// that were reserved in advance.
	MaxStep int64

	// Skew is the largest difference between the clocks of the process and of the counters.
	// Defaults to a minute, and is at most an hour.
	Skew time.Duration

	// Now reads the clock. Defaults to time.Now.
	Now func() time.Time
}

const (
	defaultStep    = 10
	defaultMaxStep = 1000
	defaultSkew    = time.Minute
	maxSkew        = time.Hour
)

func (c Config) withDefaults() Config {
	if c.Step == 0 {
		c.Step = defaultStep
	}
	if c.MaxStep == 0 {
		c.MaxStep = max(defaultMaxStep, c.Step)
	}
	if c.Skew == 0 {
		c.Skew = defaultSkew
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	switch {
	case nilness.Is(c.Counters):
		return errors.New("periodic: Config.Counters is nil; set it to the Periods of sqlstore or redisgen")
	case c.Name == "" || strings.Contains(c.Name, "/"):
		return fmt.Errorf("periodic: Config.Name is %q; set a name for what is numbered, without a slash", c.Name)
	case layouts[c.Period] == "":
		return fmt.Errorf("periodic: Config.Period is %d; choose Day, Month or Year", int(c.Period))
	case c.Zone == nil:
		return errors.New("periodic: Config.Zone is nil; set the time zone in which a day begins, for example time.UTC")
	case c.Digits < 1 || c.Digits > c.Period.maxDigits():
		return fmt.Errorf("periodic: Config.Digits is %d; with this period it is from 1 to %d", c.Digits, c.Period.maxDigits())
	case c.Step < 1 || c.MaxStep < c.Step:
		return fmt.Errorf("periodic: Config.Step is %d and MaxStep %d; Step must be at least 1, and MaxStep at least Step", c.Step, c.MaxStep)
	case c.Skew < 0 || c.Skew > maxSkew:
		return fmt.Errorf("periodic: Config.Skew is %v; it is at most %v", c.Skew, maxSkew)
	}
	return nil
}
