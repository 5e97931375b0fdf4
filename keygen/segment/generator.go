// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Config configures a [Generator].
type Config struct {
	// Source reserves the segments: a store's Tag, say. It is required.
	Source keygen.Source

	// Step is the fixed size of a segment, at least 1. Defaults to 0: the size follows the
	// demand, so that a segment lasts for 15 to 30 minutes. If the source is a [keygen.Stepper]
	// (leaf_alloc's step), the size begins with the source's step and never falls below it.
	// Otherwise it begins with 1000.
	Step int64

	// MaxStep is the highest size that follows from the demand; a source whose own step is
	// higher gets that step. It must not be set together with Step. Defaults to 1,000,000.
	MaxStep int64

	// Observer is called at waits, refills, changes of the step and outages.
	Observer Observer
}

func (c Config) withDefaults() Config {
	if c.MaxStep == 0 {
		c.MaxStep = defaultMaxStep
	}
	return c
}

func (c Config) validate() error {
	switch {
	case nilness.Is(c.Source):
		return errors.New("segment: Config.Source is nil; set it to a store's Tag, or to a Source of your own")
	case c.Step < 0:
		return fmt.Errorf("segment: Config.Step is %d; it must be at least 1, or 0 to let the size follow the demand", c.Step)
	case c.MaxStep < 0:
		return fmt.Errorf("segment: Config.MaxStep is %d; it must be at least 1, and 0 means %d", c.MaxStep, defaultMaxStep)
	case c.Step > 0 && c.MaxStep > 0:
		return errors.New("segment: Config.MaxStep and Config.Step are both set, but Step fixes the size; set one of them")
	}
	return nil
}

// The buffer holds two spans: the current segment and the next one. As in Leaf, the next one is
// fetched when less than nine tenths of a segment remain: 45 percent of two.
const (
	segments = 2
	padding  = 45

	maxWait     = 10 * time.Second
	callTimeout = 3 * time.Second
)

// Generator issues ids from segments. It is safe for concurrent use.
type Generator struct {
	buffer *spans.Buffer
	sizer  *sizer
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

// New reserves the first segment and returns the generator, so that a missing table or tag
// shows at the start. The caller must close the generator.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := newSizer(cfg)
	g := &Generator{sizer: s, buffer: spans.New(spans.Config{
		Name:        "segment",
		Reserve:     s.reserve,
		Spans:       segments,
		Padding:     padding,
		MaxWait:     maxWait,
		CallTimeout: callTimeout,
		Observer:    cfg.Observer.engine(),
	})}
	if err := g.buffer.Ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Next returns an id. It waits only when the next segment has not arrived yet.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	return spans.Next(ctx, g.buffer, (*spans.Buffer).More)
}

// Fill sets dst to rising ids, which are consecutive within a segment.
func (g *Generator) Fill(ctx context.Context, dst []int64) error { return g.buffer.Fill(ctx, dst) }

// Stats returns a snapshot of the generator's state.
func (g *Generator) Stats() keygen.Stats { return g.buffer.Stats() }

// Close stops the generator and waits for the reservation under way. Calls that wait, and later
// calls, return [keygen.ErrClosed]. Close may be called twice.
func (g *Generator) Close() error { return g.buffer.Close() }
