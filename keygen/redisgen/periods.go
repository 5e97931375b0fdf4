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

// Periods keeps counters that begin at 1 in each day, month or year, for package
// periodic. It is safe for concurrent use and holds nothing that needs closing.
//
// The keys of a group are {prefix:order/shop7}:2026-11, which expires two days after its
// period, and {prefix:order/shop7}:newest, which does not: so a counter that has gone
// before its time, evicted say, is noticed and not begun at 1 again. When both are gone
// only a process notices that has reserved of the counter before. What the package's
// comment says of settings holds: appendonly yes, appendfsync always, nothing evicted.
type Periods struct {
	prefix string
	eval   eval

	mu    sync.Mutex
	known map[string]reached // by group
	tidy  time.Time          // when the first of them ends
}

// reached is how far this process has seen the newest period of a group, which numbers
// are given of until it ends.
type reached struct {
	period  string
	highest int64
	ends    time.Time
}

// NewPeriods returns counters of which all keys begin with prefix, "shop" say, and a
// brace. It does not ask Redis yet. The type of the reply is inferred.
func NewPeriods[R Reply](client Client[R], prefix string) (*Periods, error) {
	if prefix == "" || strings.ContainsAny(prefix, "{}") {
		return nil, fmt.Errorf("redisgen: the prefix of counters of periods is %q; name the application, without braces", prefix)
	}
	eval, err := evalWith(client)
	if err != nil {
		return nil, err
	}
	return &Periods{prefix: prefix, eval: eval, known: map[string]reached{}}, nil
}

// kept is how long a counter stays in Redis after its period, which no process asks for
// so late.
const kept = 48 * time.Hour

// periodScript takes the period, the bounds of the time in milliseconds, how many
// numbers, what the counter has reached at least, and when it ends. Names of periods
// sort by time.
const periodScript = below + `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(ARGV[2]) or now >= tonumber(ARGV[3]) then return '-3' end
local newest = redis.call('GET', KEYS[2]) or ''
if not old and newest >= ARGV[1] or below(old or '0', ARGV[5]) then return '-2' end
if newest < ARGV[1] then redis.call('SET', KEYS[2], ARGV[1]) end
redis.call('INCRBY', KEYS[1], ARGV[4])
redis.call('EXPIREAT', KEYS[1], ARGV[6])
return redis.call('GET', KEYS[1])`

const outOfTime = -3

// Reserve takes n numbers of a group's counter in a period, with one command that
// compares Redis' clock with from and to. It implements periodic.Counters.
func (p *Periods) Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	switch {
	case p.eval == nil:
		return keygen.Span{}, errNoClient
	case strings.ContainsAny(group, "{}"):
		return keygen.Span{}, &keygen.SetupError{Err: fmt.Errorf("redisgen: the group %.128q has a brace, which keeps its keys from lying together", group), Cure: "give other keys"}
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
	last, err := p.eval(ctx, periodScript, keys, period, from.UnixMilli(), to.UnixMilli(), n, strconv.FormatInt(highest, 10), to.Add(kept).Unix())
	switch {
	case err != nil:
		return keygen.Span{}, err
	case last == outOfTime:
		return keygen.Span{}, fmt.Errorf("%w: numbers of it are given from %v to %v, and by Redis' clock it is another time; set the clock that is wrong", keygen.ErrClockRollback, from.UTC(), to.UTC())
	case last == wentBack || last-n < highest:
		return keygen.Span{}, fmt.Errorf("%w: the counter has gone or is below %d; SET %s to the highest number in use", keygen.ErrRegressed, highest, keys[0])
	case last < n:
		return keygen.Span{}, errors.New("the counter is negative; set it to the highest number in use")
	}
	p.note(group, from, reached{period, last, to})
	return keygen.Span{First: last - n + 1, Count: n, Step: 1}, nil
}

// highest returns how far this process has seen a counter.
func (p *Periods) highest(group, period string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.known[group]; r.period == period {
		return r.highest
	}
	return 0
}

// note remembers how far a counter is whose period began at from, and forgets those of
// periods that had ended then.
func (p *Periods) note(group string, from time.Time, r reached) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from.After(p.tidy) {
		p.forget(from)
	}
	if old := p.known[group]; r.period > old.period || r.period == old.period && r.highest > old.highest {
		p.known[group] = r
	}
	if p.tidy.IsZero() || r.ends.Before(p.tidy) {
		p.tidy = r.ends
	}
}

func (p *Periods) forget(from time.Time) {
	p.tidy = time.Time{}
	for group, r := range p.known {
		switch {
		case r.ends.Before(from):
			delete(p.known, group)
		case p.tidy.IsZero() || r.ends.Before(p.tidy):
			p.tidy = r.ends
		}
	}
}
