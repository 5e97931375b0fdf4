package segment

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

const (
	defaultStep = 1000

	// stepLife is how long a step read from the source is used before it is
	// read again. It makes a DBA's change take effect within a minute, and the
	// usual reservation a single round trip.
	stepLife = time.Minute
)

// sizer decides how many ids to reserve. The engine asks it from one goroutine
// at a time, which owns its fields.
type sizer struct {
	source keygen.Stepper // nil when step is fixed
	step   int64          // the fixed step, or the last one read; 0 before the first
	read   time.Time
}

func newSizer(cfg Config) *sizer {
	if cfg.Step > 0 {
		return &sizer{step: cfg.Step}
	}
	if s, ok := cfg.Source.(keygen.Stepper); ok {
		return &sizer{source: s}
	}
	return &sizer{step: defaultStep}
}

func (s *sizer) size(ctx context.Context) (int64, error) {
	if s.source == nil || s.step > 0 && time.Since(s.read) < stepLife {
		return s.step, nil
	}
	n, err := s.source.Step(ctx)
	if err == nil && n < 1 {
		err = fmt.Errorf("the source's step is %d; set it to 1 or more", n)
	}
	if err != nil {
		return 0, err
	}
	s.step, s.read = n, time.Now()
	return n, nil
}
