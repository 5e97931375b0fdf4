// SPDX-License-Identifier: Apache-2.0

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

// Server is a source that counts offset, offset+increment, and so on: a [Table], or another
// counter. If it is a [keygen.Stepper], too, its step is the number of ids to reserve at a
// time, unless Config.Step is set.
type Server interface {
	keygen.Source
	Numbering() (offset, increment int64)
}

// member is one server of a generator. It has its own spans, and its own check for a counter
// that went back.
type member struct {
	server    Server
	numbering Numbering
	name      string
	clock     func() time.Duration // time since the start
	changed   chan<- struct{}      // told of each change, has room for one

	segments        atomic.Pointer[segment.Generator] // nil until the server has answered
	last            atomic.Pointer[error]             // of the newest reservation; nil when it succeeded
	passedOverUntil atomic.Int64                      // the clock's time until which the server is passed over; 0 when it is not
}

// passOverTime is how long a server is passed over after a failure. Its segment generator
// retries meanwhile.
const passOverTime = int64(time.Second)

// open gets the server's first span, and retries until ctx ends.
func (m *member) open(ctx context.Context, step int64) {
	for ctx.Err() == nil {
		segments, err := segment.New(ctx, segment.Config{
			Source:   m.source(),
			Step:     step,
			Observer: segment.Observer{Refill: func(_ keygen.Span, _ time.Duration, err error) { m.note(err) }},
		})
		if err == nil {
			m.segments.Store(segments)
			m.signal()
			return
		}
		pause(ctx, time.Duration(passOverTime))
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

// note stores the result of a reservation.
func (m *member) note(err error) {
	if err == nil {
		m.last.Store(nil)
		m.passedOverUntil.Store(0)
	} else {
		m.last.Store(&err)
		m.passedOverUntil.Store(int64(m.clock()) + passOverTime)
	}
	m.signal()
}

func (m *member) signal() {
	select {
	case m.changed <- struct{}{}:
	default: // the channel already holds a signal
	}
}

// tried returns true once the server has answered or failed.
func (m *member) tried() bool { return m.segments.Load() != nil || m.last.Load() != nil }

func (m *member) passedOver() bool {
	until := m.passedOverUntil.Load()
	return until != 0 && int64(m.clock()) < until
}

// broken returns true when a retry cannot cure the server's error.
func (m *member) broken() bool {
	err := m.last.Load()
	if err == nil {
		return false
	}
	var setup *keygen.SetupError
	return errors.As(*err, &setup) || errors.Is(*err, keygen.ErrRegressed) ||
		errors.Is(*err, keygen.ErrUnknownTag) || errors.Is(*err, keygen.ErrExhausted)
}

// used returns true when no id is in memory.
func (m *member) used() bool {
	segments := m.segments.Load()
	return segments == nil || segments.Stats().Remaining == 0
}

// next returns an id. It waits as long as ctx allows.
func (m *member) next(ctx context.Context) (int64, error) {
	if segments := m.segments.Load(); segments != nil {
		return segments.Next(ctx)
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

// source returns the server as the source of its segment generator, with the server's own step
// if it has one.
func (m *member) source() keygen.Source {
	if stepper, ok := m.server.(keygen.Stepper); ok {
		return struct {
			checked
			keygen.Stepper
		}{checked{m}, stepper}
	}
	return checked{m}
}

// checked is a server whose spans are checked against its numbering.
type checked struct{ *member }

func (c checked) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	span, err := c.server.Reserve(ctx, n)
	if err == nil && !c.numbering.holds(span) {
		err = &NumberingError{Want: c.numbering, Got: Numbering{span.First, span.Step}}
	}
	return span, err
}
