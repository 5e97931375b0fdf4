package ticket

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// Server is a source that counts offset, offset+increment, and so on: a [Table],
// or a counter elsewhere. One that is a [keygen.Stepper], too, says how many ids are
// taken of it at a time, unless Config.Step does.
type Server interface {
	keygen.Source
	Numbering() (offset, increment int64)
}

// member is one server of a generator: spans of its own, with a guard of its own
// against a counter that went back.
type member struct {
	server    Server
	numbering Numbering
	name      string
	clock     func() time.Duration // time since some moment
	news      chan<- struct{}      // told of each change, has room for one

	gen  atomic.Pointer[segment.Generator] // nil until the server has answered
	last atomic.Pointer[error]             // of the newest reservation; nil when it succeeded
	rest atomic.Int64                      // until this time of the clock the member is passed over; 0 for not at all
}

// restTime is how long a server is passed over after it failed. Its segment's
// generator meanwhile tries again by itself.
const restTime = int64(time.Second)

// open gets the member's first span, however long that takes.
func (m *member) open(ctx context.Context, step int64) {
	for ctx.Err() == nil {
		gen, err := segment.New(ctx, segment.Config{
			Source:   m.source(),
			Step:     step,
			Observer: segment.Observer{Refill: func(_ keygen.Span, _ time.Duration, err error) { m.note(err) }},
		})
		if err == nil {
			m.gen.Store(gen)
			m.tell()
			return
		}
		pause(ctx, time.Duration(restTime))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// note keeps how a reservation ended.
func (m *member) note(err error) {
	if err == nil {
		m.last.Store(nil)
		m.rest.Store(0)
	} else {
		m.last.Store(&err)
		m.rest.Store(int64(m.clock()) + restTime)
	}
	m.tell()
}

func (m *member) tell() {
	select {
	case m.news <- struct{}{}:
	default: // there is news already
	}
}

// tried tells whether the server has answered or failed so far.
func (m *member) tried() bool { return m.gen.Load() != nil || m.last.Load() != nil }

func (m *member) resting() bool {
	until := m.rest.Load()
	return until != 0 && int64(m.clock()) < until
}

// broken tells whether the server's error is one that waiting does not cure.
func (m *member) broken() bool {
	err := m.last.Load()
	if err == nil {
		return false
	}
	var setup *keygen.SetupError
	return errors.As(*err, &setup) || errors.Is(*err, keygen.ErrRegressed) ||
		errors.Is(*err, keygen.ErrUnknownTag) || errors.Is(*err, keygen.ErrExhausted)
}

// used tells whether nothing is in memory.
func (m *member) used() bool {
	gen := m.gen.Load()
	return gen == nil || gen.Stats().Remaining == 0
}

// next returns an id, waiting as long as ctx allows.
func (m *member) next(ctx context.Context) (int64, error) {
	if gen := m.gen.Load(); gen != nil {
		return gen.Next(ctx)
	}
	<-ctx.Done()
	return 0, keygen.ErrStarved
}

// failure returns the error of the newest reservation, with the server's name.
func (m *member) failure() error {
	if err := m.last.Load(); err != nil {
		return fmt.Errorf("%s: %w", m.name, *err)
	}
	return nil
}

// source is the member's server as a segment's generator asks it, which takes as many
// ids at a time as a server says that has a step of its own.
func (m *member) source() keygen.Source {
	if stepper, ok := m.server.(keygen.Stepper); ok {
		return struct {
			checked
			keygen.Stepper
		}{checked{m}, stepper}
	}
	return checked{m}
}

// checked is the member's server with a check that its ids are of its numbering.
type checked struct{ *member }

func (c checked) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	span, err := c.server.Reserve(ctx, n)
	if err == nil && !c.numbering.holds(span) {
		err = &NumberingError{Want: c.numbering, Got: Numbering{span.First, span.Step}}
	}
	return span, err
}
