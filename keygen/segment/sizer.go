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

	// A segment is to last so long. One that was used up sooner is followed by
	// larger ones, one that lasted twice as long by smaller ones.
	segmentLife = 15 * time.Minute

	// rowLife is how long a step read from the source is used before it is read
	// again. It makes a DBA's change take effect within a minute, and the usual
	// reservation a single round trip.
	rowLife = time.Minute
)

// sizer reserves segments and decides how large they are. The engine uses it
// from one goroutine at a time, which owns the fields that are not atomic.
type sizer struct {
	source  keygen.Source
	stepper keygen.Stepper // nil when the row's step is not the source's
	fixed   bool           // always reserve row
	most    int64
	changed func(from, to int64)

	row  int64 // the step that the source asks for; 0 before it was read
	read time.Time
	step atomic.Int64 // how many ids were reserved last; 0 before
}

func newSizer(cfg Config) *sizer {
	s := &sizer{source: cfg.Source, most: cfg.MaxStep, changed: cfg.Observer.Step}
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

// reserve reserves the next segment. Nothing is changed by an attempt that
// fails, so that the next one comes to the same size.
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
		step = adapt(old, row, s.most, p)
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

// adapt returns the size of the next segment after ones of size step, at the
// pace that a former one was used up at.
func adapt(step, row, most int64, p spans.Pace) int64 {
	if p.Keys == 0 {
		return step
	}
	lasts := time.Duration(float64(p.Took) / float64(p.Keys) * float64(step))
	switch {
	case lasts < segmentLife:
		step = max(min(2*step, most), step)
	case lasts > 2*segmentLife:
		step /= 2
	}
	return max(step, row)
}

// readRow returns the step that the source asks for, which it reads when it was
// read too long ago.
func (s *sizer) readRow(ctx context.Context) (int64, error) {
	if s.stepper == nil || s.row > 0 && time.Since(s.read) < rowLife {
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
