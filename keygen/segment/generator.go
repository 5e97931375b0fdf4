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
	// Source reserves the segments, a store's Tag say. It is required.
	Source keygen.Source

	// Step is how many ids to reserve at a time, at least 1, always. Defaults to
	// 0, which means that the size follows the demand, so that a segment lasts
	// for 15 to 30 minutes. It begins with what the source says when it is a
	// [keygen.Stepper] (leaf_alloc's step), which it never falls below, and else
	// with 1000.
	Step int64

	// MaxStep is the most that the size grows to by itself; a source whose own
	// step is higher gets that. It must not be given together with Step.
	// Defaults to 1,000,000.
	MaxStep int64

	// Observer is told about waits, refills, changes of the step and outages.
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
		return errors.New("segment: Config.Source is nil; give a store's Tag, or a Source of your own")
	case c.Step < 0:
		return fmt.Errorf("segment: Config.Step is %d; the smallest is 1, and 0 lets the size follow the demand", c.Step)
	case c.MaxStep < 0:
		return fmt.Errorf("segment: Config.MaxStep is %d; the smallest is 1, and 0 means %d", c.MaxStep, defaultMaxStep)
	case c.Step > 0 && c.MaxStep > 0:
		return errors.New("segment: Config.MaxStep has no meaning together with Config.Step, which is always kept; give one of them")
	}
	return nil
}

// The engine's ring has two places, for the segment in use and the next one,
// which is fetched when less than nine tenths of a segment are left, as in Leaf:
// 45 percent of two.
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

// New returns a generator that holds its first segment already, so that a
// missing table or tag shows at the start. The generator has to be closed.
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

// Next returns an id. It waits only when the next segment is not there yet.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	return spans.Next(ctx, g.buffer, (*spans.Buffer).More)
}

// Fill sets dst to ids; they rise, and are consecutive within a segment.
func (g *Generator) Fill(ctx context.Context, dst []int64) error { return g.buffer.Fill(ctx, dst) }

// Stats returns a snapshot of the generator's state.
func (g *Generator) Stats() keygen.Stats { return g.buffer.Stats() }

// Close stops the generator and waits for the reservation under way. Calls that
// wait, and later ones, return [keygen.ErrClosed]. It may be called twice.
func (g *Generator) Close() error { return g.buffer.Close() }
