// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Counter].
type Config struct {
	// Key is the Redis key that stores the highest key issued so far: "ids:order", say. It is
	// required.
	Key string

	// Offset is the first key of this master, from 1 to Step. Defaults to 1.
	Offset int64

	// Step is the distance between two keys: the number of independent masters, or 1 for a
	// single master or a cluster. Defaults to 1.
	Step int64

	// Floor is the lowest key that may be issued: a counter below it has lost its data.
	// Defaults to 0: any.
	Floor int64
}

func (c Config) withDefaults() Config {
	if c.Step == 0 {
		c.Step = 1
	}
	if c.Offset == 0 && c.Step == 1 {
		c.Offset = 1
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Key == "":
		return errors.New("redisgen: Config.Key is empty; name the counter")
	case c.Step < 1:
		return fmt.Errorf("redisgen: Config.Step is %d; it is the number of masters, 1 or more", c.Step)
	case c.Offset < 1 || c.Offset > c.Step:
		return fmt.Errorf("redisgen: Config.Offset is %d; with a Step of %d it is from 1 to %[2]d, another one on each master", c.Offset, c.Step)
	case c.Floor < 0:
		return fmt.Errorf("redisgen: Config.Floor is %d; it is the lowest key that may be issued, 0 for any", c.Floor)
	}
	return nil
}

// Counter reserves spans of one counter in Redis. It is safe for concurrent use and needs no
// Close.
type Counter struct {
	cfg     Config
	eval    eval
	highest atomic.Int64 // the highest key that this process knows of; 0 or less before the first
}

var _ keygen.Source = (*Counter)(nil)

// New returns a counter. It does not ask Redis yet. The type of the reply is
// inferred: New(redisClient, redisgen.Config{Key: "ids:order"}).
func New[R Reply](client Client[R], cfg Config) (*Counter, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	eval, err := evalWith(client)
	if err != nil {
		return nil, err
	}
	c := &Counter{cfg: cfg, eval: eval}
	c.highest.Store(cfg.Offset - cfg.Step)
	return c, nil
}

// The scripts never compute with a key and never return one as a number, because Lua's numbers
// are exact only up to 53 bits. Each script uses one Redis key.
const (
	// below returns whether a decimal text is less than another; it returns false for two
	// negative ones.
	below = `local function below(a, b)
  if string.sub(b, 1, 1) == '-' then return false end
  return string.sub(a, 1, 1) == '-' or #a < #b or #a == #b and a < b
end
local old = redis.call('GET', KEYS[1])
`
	// reserveScript adds its first argument and returns the new highest key. It does not change
	// a counter below the second argument, so that every call reports it until somebody raises
	// it.
	reserveScript = below + `if not old then return '-1' end
if below(old, ARGV[2]) then return '-2' end
redis.call('INCRBY', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])`

	// seedScript raises the highest key to its argument and returns it.
	seedScript = below + `if not old or below(old, ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('GET', KEYS[1])`

	missing   = -1
	regressed = -2
)

// Numbering returns Offset and Step, for package ticket.
func (c *Counter) Numbering() (offset, step int64) { return c.cfg.Offset, c.cfg.Step }

// Reserve reserves n keys, n at least 1, with one command.
func (c *Counter) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if c.eval == nil {
		return keygen.Span{}, errNoClient
	}
	if n < 1 || n > math.MaxInt64/c.cfg.Step {
		return keygen.Span{}, fmt.Errorf("redisgen: %s: cannot reserve %d keys", c.cfg.Key, n)
	}
	known := max(c.highest.Load(), c.cfg.Floor-c.cfg.Step)
	last, err := c.eval(ctx, reserveScript, []string{c.cfg.Key}, n*c.cfg.Step, strconv.FormatInt(known, 10))
	if err != nil {
		return keygen.Span{}, fmt.Errorf("redisgen: %s: %w", c.cfg.Key, err)
	}
	span := keygen.Span{First: last - (n-1)*c.cfg.Step, Count: n, Step: c.cfg.Step}
	if err := c.check(last, span); err != nil {
		return keygen.Span{}, fmt.Errorf("redisgen: %s: %w", c.cfg.Key, err)
	}
	raise(&c.highest, last)
	return span, nil
}

// check refuses keys that do not follow the keys issued before.
func (c *Counter) check(last int64, span keygen.Span) error {
	switch known := c.highest.Load(); {
	case last == missing && known > 0:
		return fmt.Errorf("%w: Redis has lost the counter, which had reached %d; Seed it above the keys in use", keygen.ErrRegressed, known)
	case last == missing:
		return fmt.Errorf("%w: Redis has no such counter; if it is new, Seed it once; otherwise Redis has lost it: Seed it above the keys in use", keygen.ErrUnknownTag)
	case last == regressed || span.First < c.cfg.Floor:
		return fmt.Errorf("%w: the counter is below %d, which it had reached or which Config.Floor demands; Seed it above the keys in use", keygen.ErrRegressed, max(known, c.cfg.Floor))
	case span.First < 1 || (last-c.cfg.Offset)%c.cfg.Step != 0:
		return fmt.Errorf("%w: somebody set the value to %d, which is not one of %d, %d, …; Seed it above the keys in use", keygen.ErrRegressed, last, c.cfg.Offset, c.cfg.Offset+c.cfg.Step)
	}
	return nil
}

// raise sets a to n unless a is higher already.
func raise(a *atomic.Int64, n int64) {
	for old := a.Load(); n > old && !a.CompareAndSwap(old, n); {
		old = a.Load()
	}
}

// Seed sets the counter so that its next key is the lowest one of its numbering that is at
// least first and at least Floor. It does not lower a counter: seeding twice is harmless, but
// seeding too low after a loss makes keys come twice. It returns the highest key issued so far
// according to Redis, 0 or less for none.
func (c *Counter) Seed(ctx context.Context, first int64) (int64, error) {
	if c.eval == nil {
		return 0, errNoClient
	}
	first = max(first, c.cfg.Floor, 1)
	if first > math.MaxInt64-c.cfg.Step {
		return 0, fmt.Errorf("redisgen: %s: cannot seed at %d, at the end of 63 bits", c.cfg.Key, first)
	}
	next := first + ((c.cfg.Offset-first)%c.cfg.Step+c.cfg.Step)%c.cfg.Step
	given, err := c.eval(ctx, seedScript, []string{c.cfg.Key}, strconv.FormatInt(next-c.cfg.Step, 10))
	if err != nil {
		return 0, fmt.Errorf("redisgen: seed %s: %w", c.cfg.Key, err)
	}
	return given, nil
}
