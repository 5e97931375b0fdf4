// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
)

// SerialsConfig configures [Serials].
type SerialsConfig struct {
	// Name is the first part of the Redis keys, without braces. The keys are {Name}:20261121
	// and {Name}:newest; the braces put both on one node of a cluster. It is required.
	Name string

	// Digits is the number of digits of the day's count, from 1 to 10. It is required, because
	// it cannot be changed later. A day has 10^Digits - 1 serials.
	Digits int

	// Zone is the time zone in which a day begins. It is required, and must be the same in all
	// processes.
	Zone *time.Location

	// Keep is how long a day's counter stays in Redis after the end of the day, at least an
	// hour. After that no more serials of the day can be made. Defaults to 48 hours.
	Keep time.Duration

	// Floor is the lowest serial that may be issued: 20261121000042, say. A lower one means
	// that Redis lost data. Defaults to 0: any.
	Floor int64

	// Now reads the clock. Defaults to time.Now.
	Now func() time.Time
}

func (c SerialsConfig) withDefaults() SerialsConfig {
	if c.Keep == 0 {
		c.Keep = 48 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c SerialsConfig) validate() error {
	switch {
	case c.Name == "" || strings.ContainsAny(c.Name, "{}"):
		return fmt.Errorf("redisgen: SerialsConfig.Name is %q; set a name without braces", c.Name)
	case c.Digits < 1 || c.Digits > 10:
		return fmt.Errorf("redisgen: SerialsConfig.Digits is %d; a day's count has from 1 to 10 digits", c.Digits)
	case c.Zone == nil:
		return errors.New("redisgen: SerialsConfig.Zone is nil; set it to the time zone in which a day begins, time.UTC, say")
	case c.Keep < time.Hour:
		return fmt.Errorf("redisgen: SerialsConfig.Keep is %v; it must be at least an hour, because clocks differ", c.Keep)
	case c.Floor < 0:
		return fmt.Errorf("redisgen: SerialsConfig.Floor is %d; it is the lowest serial that may be issued, 0 for any", c.Floor)
	}
	return nil
}

// Serials issues a day and the day's count as one number: with six digits, 20261121000042 is
// the 42nd of 21 November 2026. It is safe for concurrent use. One call at a time talks to
// Redis, because only then each answer shows whether the counter went back.
type Serials struct {
	cfg   SerialsConfig
	eval  eval            // ends when the client's call does
	limit int64           // 10^Digits
	lock  chan struct{}   // capacity 1: the call that sent its element talks to Redis
	days  map[int64]int64 // the highest count seen of each day; guarded by lock
}

var (
	_ keygen.Generator[int64]  = (*Serials)(nil)
	_ keygen.Generator[string] = Texts{}
)

// NewSerials returns a generator of serials. It does not call Redis.
func NewSerials[R Reply](client Client[R], cfg SerialsConfig) (*Serials, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	eval, err := patientEvalWith(client)
	if err != nil {
		return nil, err
	}
	s := &Serials{cfg: cfg, eval: eval, limit: 1, lock: make(chan struct{}, 1), days: map[int64]int64{}}
	for range cfg.Digits {
		s.limit *= 10
	}
	return s, nil
}

// The keys of the scripts are a day's counter and the newest day, which does not expire. The
// newest day shows whether a missing counter disappeared too early or expired.
const (
	// serialScript's arguments are the day, when its counter expires, and the lowest value that
	// the counter must have. It does not change a counter below that, so that every call
	// reports it until somebody raises it.
	serialScript = `local old = tonumber(redis.call('GET', KEYS[1]) or '-1')
if not old then return redis.error_reply('ERR value is not an integer') end
local newest = tonumber(redis.call('GET', KEYS[2]) or '0')
local day = tonumber(ARGV[1])
if old < 0 and day < newest then return -2 end
if old < 0 and day == newest or math.max(old, 0) < tonumber(ARGV[3]) then return -1 end
if day > newest then redis.call('SET', KEYS[2], ARGV[1]) end
local count = redis.call('INCR', KEYS[1])
redis.call('EXPIREAT', KEYS[1], ARGV[2])
return count`

	// seedSerialScript raises a day's counter to its third argument.
	seedSerialScript = `local old = tonumber(redis.call('GET', KEYS[1]) or '-1')
if not old then return redis.error_reply('ERR value is not an integer') end
local newest = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) > newest then redis.call('SET', KEYS[2], ARGV[1]) end
if old < tonumber(ARGV[3]) then redis.call('SET', KEYS[1], ARGV[3]) end
redis.call('EXPIREAT', KEYS[1], ARGV[2])
return 1`

	countLost = -1
	dayGone   = -2
)

// Next returns the next serial of today. The error wraps [keygen.ErrLayout] when the day's
// serials are used up, [keygen.ErrClockRollback] when the clock shows a day before the newest
// one whose counter has expired, and [keygen.ErrRegressed] when Redis lost today's counter.
func (s *Serials) Next(ctx context.Context) (int64, error) {
	if s == nil || s.eval == nil {
		return 0, errNoClient
	}
	select {
	case s.lock <- struct{}{}:
	case <-ctx.Done():
		return 0, fmt.Errorf("redisgen: %s: %w: %w", s.cfg.Name, keygen.ErrStarved, ctx.Err())
	}
	serial, err := within(ctx, func() (int64, error) {
		defer func() { <-s.lock }() // not before the client's call has ended, which may outlast ctx
		return s.next(ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("redisgen: %s: %w", s.cfg.Name, err)
	}
	return serial, nil
}

func (s *Serials) next(ctx context.Context) (int64, error) {
	day, err := s.today()
	if err != nil {
		return 0, err
	}
	known := s.days[day]
	if day == s.cfg.Floor/s.limit {
		known = max(known, s.cfg.Floor%s.limit-1)
	}
	count, err := s.run(ctx, serialScript, day, known)
	switch {
	case err != nil:
		return 0, err
	case count == dayGone:
		return 0, fmt.Errorf("%w: the clock shows %d, but the counter of that day has expired; check the clock, and that Zone is the same in all processes", keygen.ErrClockRollback, day)
	case count == countLost || count <= known:
		return 0, fmt.Errorf("%w: the counter of %d had reached %d, and is missing or lower now; Seed it with the highest serial in use", keygen.ErrRegressed, day, known)
	case count >= s.limit:
		return 0, fmt.Errorf("%w: the %d digits are used up until the end of %d", keygen.ErrLayout, s.cfg.Digits, day)
	}
	s.days[day] = count
	return day*s.limit + count, nil
}

// today returns the day in the form 20261121.
func (s *Serials) today() (int64, error) {
	y, m, d := s.cfg.Now().In(s.cfg.Zone).Date()
	day := int64(y)*10000 + int64(m)*100 + int64(d)
	if y < 1000 || y > 9999 || day < s.cfg.Floor/s.limit {
		return 0, fmt.Errorf("%w: the clock shows %d-%02d-%02d, which is before Floor or does not have eight digits; correct the clock", keygen.ErrClockRollback, y, m, d)
	}
	return day, nil
}

// run runs a script on the keys of a day.
func (s *Serials) run(ctx context.Context, script string, day, count int64) (int64, error) {
	name := strconv.FormatInt(day, 10)
	tomorrow := time.Date(int(day/10000), time.Month(day/100%100), int(day%100)+1, 0, 0, 0, 0, s.cfg.Zone)
	keys := []string{"{" + s.cfg.Name + "}:" + name, "{" + s.cfg.Name + "}:newest"}
	return s.eval(ctx, script, keys, name, tomorrow.Add(s.cfg.Keep).Unix(), count)
}

// Seed sets a day's counter so that its serials go on after highest, which must be the highest
// serial in use: after Redis lost data, or to take over from another system. It does not lower
// a counter.
func (s *Serials) Seed(ctx context.Context, highest int64) error {
	if s.eval == nil {
		return errNoClient
	}
	day, count := highest/s.limit, highest%s.limit
	if _, err := time.Parse("20060102", strconv.FormatInt(day, 10)); err != nil {
		return fmt.Errorf("redisgen: seed %s: %d does not begin with a day: %w", s.cfg.Name, highest, err)
	}
	if _, err := within(ctx, func() (int64, error) { return s.run(ctx, seedSerialScript, day, count) }); err != nil {
		return fmt.Errorf("redisgen: seed %s: %w", s.cfg.Name, err)
	}
	return nil
}

// Text returns the same generator with the serials as text.
func (s *Serials) Text() Texts { return Texts{s} }

// Texts issues serials as text of 8 + Digits digits.
type Texts struct{ serials *Serials }

// Next returns the next serial of today; see [Serials.Next].
func (t Texts) Next(ctx context.Context) (string, error) {
	n, err := t.serials.Next(ctx)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(n, 10), nil
}
