package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Config configures a [Generator].
type Config struct {
	// Source reserves the segments, a store's Tag say. It is required.
	Source keygen.Source

	// Step is how many ids to reserve at a time, at least 1. Defaults to what
	// the source says, when it is a [keygen.Stepper] (leaf_alloc's step), and
	// else to 1000. Six hundred times the highest rate per second lasts for ten
	// minutes without the database.
	Step int64
}

const (
	patience    = 10 * time.Second
	callTimeout = 3 * time.Second
)

// Generator issues ids from segments. It is safe for concurrent use.
type Generator struct {
	buffer *spans.Buffer
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

// New returns a generator that holds its first segment already, so that a
// missing table or tag shows at the start. The generator has to be closed.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	if cfg.Source == nil {
		return nil, errors.New("segment: Config.Source is nil; give a store's Tag, or a Source of your own")
	}
	if cfg.Step < 0 {
		return nil, fmt.Errorf("segment: Config.Step is %d; the smallest is 1, and 0 means the default", cfg.Step)
	}
	g := &Generator{spans.New(spans.Config{
		Name:        "segment",
		Source:      cfg.Source,
		Size:        newSizer(cfg).size,
		Patience:    patience,
		CallTimeout: callTimeout,
	})}
	if err := g.buffer.Ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Next returns an id. It waits only when the next segment is not there yet.
func (g *Generator) Next(ctx context.Context) (int64, error) { return g.buffer.Next(ctx) }

// Fill sets dst to ids; they rise, and are consecutive within a segment.
func (g *Generator) Fill(ctx context.Context, dst []int64) error { return g.buffer.Fill(ctx, dst) }

// Stats returns a snapshot of the generator's state.
func (g *Generator) Stats() keygen.Stats { return g.buffer.Stats() }

// Close stops the generator and waits for the reservation under way. Calls that
// wait, and later ones, return [keygen.ErrClosed]. It may be called twice.
func (g *Generator) Close() error { return g.buffer.Close() }
