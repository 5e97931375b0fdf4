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

// Counters keeps counters by name: sqlstore's Periods and redisgen's are two. It is safe
// for concurrent use.
type Counters interface {
	// Reserve takes n numbers, at least 1, of the counter of a group in a period. It is
	// made when it is not there, and then begins at 1. Numbers are given while the
	// counters' own clock reads at least from and less than to; the error of any other
	// time wraps keygen.ErrClockRollback, and nothing is taken. What holds for
	// keygen.Source holds for the span. Names of a group's periods sort by time.
	Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error)
}

// Config configures [Numbers].
type Config struct {
	// Counters keeps the counters. It is required.
	Counters Counters

	// Name says what is numbered, "order" say. It is the first part of the counters'
	// names and may not have a slash. All that is numbered under one Name has the same
	// Period, Zone and Digits, at all times: to change one of them, take another Name. It
	// is required.
	Name string

	// Period is how long numbers count on before they begin at 1 again. It is required.
	Period Period

	// Zone says when a day begins. It is required, and the same in all processes.
	Zone *time.Location

	// Digits is how many digits the count has: 10^Digits - 1 numbers fit into a period.
	// It is required, from 1 to what makes 18 digits together with the period: 10 for
	// days, 12 for months, 14 for years.
	Digits int

	// Step is how many numbers of a key are reserved at a time at first. As in package
	// segment, the size then follows the demand, so that a segment lasts for 15 to 30
	// minutes. Up to two segments of a key become gaps when a process ends, and when the
	// period does. Defaults to 10.
	Step int64

	// MaxStep is the most that the size grows to. Defaults to 1000, or to Step where that
	// is more. With 1, and a Step of 1, numbers have no gaps but those of lost answers
	// and of what was reserved ahead, two.
	MaxStep int64

	// Skew is by how much the clocks of the process and of the counters may differ.
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
		return errors.New("periodic: Config.Counters is nil; give a store's Periods, or redisgen's")
	case c.Name == "" || strings.Contains(c.Name, "/"):
		return fmt.Errorf("periodic: Config.Name is %q; say what is numbered, without a slash", c.Name)
	case layouts[c.Period] == "":
		return fmt.Errorf("periodic: Config.Period is %d; choose Day, Month or Year", int(c.Period))
	case c.Zone == nil:
		return errors.New("periodic: Config.Zone is nil; say when a day begins, time.UTC or a place's zone")
	case c.Digits < 1 || c.Digits > c.Period.maxDigits():
		return fmt.Errorf("periodic: Config.Digits is %d; with this period it is from 1 to %d", c.Digits, c.Period.maxDigits())
	case c.Step < 1 || c.MaxStep < c.Step:
		return fmt.Errorf("periodic: Config.Step is %d and MaxStep %d; Step is 1 or more, and MaxStep not less", c.Step, c.MaxStep)
	case c.Skew < 0 || c.Skew > maxSkew:
		return fmt.Errorf("periodic: Config.Skew is %v; it is at most %v", c.Skew, maxSkew)
	}
	return nil
}
