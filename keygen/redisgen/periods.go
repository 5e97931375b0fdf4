// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Periods are counters that begin at 1 in each day, month or year, for package periodic. It is
// safe for concurrent use and needs no Close.
//
// The keys of a group are {prefix:order/shop7}:2026-11, which expires two days after its
// period, and {prefix:order/shop7}:newest, which does not expire. So the package detects a
// counter that disappeared too early, by eviction, say, and does not begin it at 1 again. When
// both are gone, only a process that has reserved from the counter before detects it. The
// settings that the package's comment demands apply: appendonly yes, appendfsync always, no
// eviction.
type Periods struct {
	prefix string
	eval   eval

	mu         sync.Mutex
	newest     map[string]progress // by group
	nextExpiry time.Time           // when the first of these periods ends
}

// progress is the newest period of a group that this process has seen, and the highest number
// in it. It is dropped after the period.
type progress struct {
	period  string
	highest int64
	ends    time.Time
}

// NewPeriods returns counters whose keys begin with a brace and prefix: "shop", say. It does
// not call Redis. The type of the reply is inferred.
func NewPeriods[R Reply](client Client[R], prefix string) (*Periods, error) {
	if prefix == "" || strings.ContainsAny(prefix, "{}") {
		return nil, fmt.Errorf("redisgen: the prefix of counters of periods is %q; use the application's name, without braces", prefix)
	}
	eval, err := evalWith(client)
	if err != nil {
		return nil, err
	}
	return &Periods{prefix: prefix, eval: eval, newest: map[string]progress{}}, nil
}

// retention is how long a counter stays in Redis after its period. No process reserves from it
// as late as that.
const retention = 48 * time.Hour

// periodScript's arguments are the period, the bounds of the time in milliseconds, the number
// of numbers, the highest number known to this process, and when the counter expires. Names of
// periods sort by time.
//
// KEYS[2] holds the two newest periods that have a counter, the newest first; only that one if the
// group is new or an earlier version wrote the key. So a missing counter of a period between the
// two never existed: its first number is wanted by a process whose clock is behind those of others
// that have begun the next period.
const periodScript = below + `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(ARGV[2]) or now >= tonumber(ARGV[3]) then return '-3' end
local noted = redis.call('GET', KEYS[2]) or ''
local newest, former = string.match(noted, '^[^ ]*'), string.match(noted, ' (.+)$')
local late = former and former < ARGV[1] and ARGV[1] < newest
if not old and newest >= ARGV[1] and not late or below(old or '0', ARGV[5]) then return '-2' end
if newest == '' then redis.call('SET', KEYS[2], ARGV[1])
elseif newest < ARGV[1] then redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. newest)
elseif not old then redis.call('SET', KEYS[2], newest .. ' ' .. ARGV[1]) end
redis.call('INCRBY', KEYS[1], ARGV[4])
redis.call('EXPIREAT', KEYS[1], ARGV[6])
return redis.call('GET', KEYS[1])`

const outsidePeriod = -3

// Reserve reserves n numbers of a group's counter in a period, with one command that compares
// Redis' clock with from and to. It implements periodic.Counters.
func (p *Periods) Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	switch {
	case p.eval == nil:
		return keygen.Span{}, errNoClient
	case strings.ContainsAny(group, "{}"):
		return keygen.Span{}, &keygen.SetupError{Err: fmt.Errorf("redisgen: the group %.128q has a brace, so a cluster would put its keys on different nodes", group), Cure: "use keys without braces"}
	case n < 1 || n > math.MaxInt64/2:
		return keygen.Span{}, fmt.Errorf("redisgen: %s in %s: cannot reserve %d numbers", group, period, n)
	}
	span, err := p.reserve(ctx, group, period, from, to, n)
	if err != nil {
		return keygen.Span{}, fmt.Errorf("redisgen: %s in %s: %w", group, period, err)
	}
	return span, nil
}

func (p *Periods) reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	keys := []string{"{" + p.prefix + ":" + group + "}:" + period, "{" + p.prefix + ":" + group + "}:newest"}
	highest := p.highest(group, period)
	last, err := p.eval(ctx, periodScript, keys, period, from.UnixMilli(), to.UnixMilli(), n, strconv.FormatInt(highest, 10), to.Add(retention).Unix())
	switch {
	case err != nil:
		return keygen.Span{}, err
	case last == outsidePeriod:
		return keygen.Span{}, fmt.Errorf("%w: the period's numbers are issued from %v to %v, but Redis' clock reads another time; correct the wrong clock", keygen.ErrClockRollback, from.UTC(), to.UTC())
	case last == regressed || last-n < highest:
		return keygen.Span{}, fmt.Errorf("%w: the counter is missing or below %d; SET %s to the highest number in use", keygen.ErrRegressed, highest, keys[0])
	case last < n:
		return keygen.Span{}, errors.New("the counter is negative; set it to the highest number in use")
	}
	p.record(group, from, progress{period, last, to})
	return keygen.Span{First: last - n + 1, Count: n, Step: 1}, nil
}

// highest returns the highest number of a counter that this process has seen.
func (p *Periods) highest(group, period string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.newest[group]; r.period == period {
		return r.highest
	}
	return 0
}

// record stores the progress of a counter whose period began at from, and drops those of
// periods that had ended then.
func (p *Periods) record(group string, from time.Time, r progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from.After(p.nextExpiry) {
		p.dropEnded(from)
	}
	if old := p.newest[group]; r.period > old.period || r.period == old.period && r.highest > old.highest {
		p.newest[group] = r
	}
	if p.nextExpiry.IsZero() || r.ends.Before(p.nextExpiry) {
		p.nextExpiry = r.ends
	}
}

func (p *Periods) dropEnded(from time.Time) {
	p.nextExpiry = time.Time{}
	for group, r := range p.newest {
		switch {
		case r.ends.Before(from):
			delete(p.newest, group)
		case p.nextExpiry.IsZero() || r.ends.Before(p.nextExpiry):
			p.nextExpiry = r.ends
		}
	}
}
