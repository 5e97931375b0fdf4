// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

const (
	defaultStep    = 1000
	defaultMaxStep = 1_000_000

	// targetDuration is how long a segment should last. After one that lasts less the next is
	// larger; after one that lasts twice as long the next is smaller.
	targetDuration = 15 * time.Minute

	// stepRefresh is the time after which the source's step is read again. A DBA's change takes
	// effect within a minute, and most reservations stay a single round trip.
	stepRefresh = time.Minute
)

// sizer reserves segments and decides on their size. The buffer calls it from one goroutine at
// a time, which owns the fields that are not atomic.
type sizer struct {
	source  keygen.Source
	stepper keygen.Stepper // nil when the source has no step
	fixed   bool           // every segment has the size row
	maxStep int64
	changed func(from, to int64)

	row  int64 // the source's step; 0 before the first read
	read time.Time
	step atomic.Int64 // the size of the newest segment; 0 before the first
}

func newSizer(cfg Config) *sizer {
	s := &sizer{source: cfg.Source, maxStep: cfg.MaxStep, changed: cfg.Observer.Step}
	stepper, ok := cfg.Source.(keygen.Stepper)
	switch {
	case cfg.Step > 0:
		s.row, s.fixed = cfg.Step, true
	case ok:
		s.stepper = stepper
	default:
		s.row = defaultStep
	}
	return s
}

// reserve reserves the next segment. A failed attempt changes no state, so that the retry has
// the same size.
func (s *sizer) reserve(ctx context.Context, p spans.Pace) (keygen.Span, error) {
	row, err := s.readRow(ctx)
	if err != nil {
		return keygen.Span{}, err
	}
	old := s.step.Load()
	step := old
	if row != s.row || old == 0 {
		step = row
	} else if !s.fixed {
		step = adapt(old, row, s.maxStep, p)
	}
	span, err := s.source.Reserve(ctx, step)
	if err != nil {
		return keygen.Span{}, err
	}
	s.row = row
	s.step.Store(step)
	if old != step && old != 0 && s.changed != nil {
		s.changed(old, step)
	}
	return span, nil
}

// adapt returns the size of the next segment, given the size of the newest one and the pace at
// which a former one was used.
func adapt(step, row, maxStep int64, p spans.Pace) int64 {
	if p.Keys == 0 {
		return step
	}
	lasts := time.Duration(float64(p.Took) / float64(p.Keys) * float64(step))
	switch {
	case lasts < targetDuration:
		step = max(min(2*step, maxStep), step)
	case lasts > 2*targetDuration:
		step /= 2
	}
	return max(step, row)
}

// readRow returns the source's step. It reads the step again when the last read is too old.
func (s *sizer) readRow(ctx context.Context) (int64, error) {
	if s.stepper == nil || s.row > 0 && time.Since(s.read) < stepRefresh {
		return s.row, nil
	}
	n, err := s.stepper.Step(ctx)
	if err == nil && n < 1 {
		err = &keygen.SetupError{Err: fmt.Errorf("the source's step is %d", n), Cure: "set it to 1 or more"}
	}
	if err == nil {
		s.read = time.Now()
	}
	return n, err
}
