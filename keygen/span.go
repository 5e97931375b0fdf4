package keygen

import "context"

// Span is the keys First, First+Step, …, Count of them. A span is owned by
// whoever reserved it: nobody else is ever given one of its keys.
type Span struct {
	First int64 // the lowest key, at least 1
	Count int64 // number of keys, at least 1
	Step  int64 // distance between neighbours, at least 1; above 1 for offset/step systems
}

// Last returns the highest key of s.
func (s Span) Last() int64 { return s.First + (s.Count-1)*s.Step }

// Source reserves spans somewhere durable. Implementations are safe for
// concurrent use.
//
// Reserve asks for n keys, n at least 1, and returns a span that is durably
// taken: a span exists only once the reservation is committed. A source may
// return more or fewer than n keys, at least 1. When an error is returned the
// reservation may or may not have happened; its keys are then a gap, never a
// duplicate. Errors that a retry cannot cure wrap [ErrUnknownTag],
// [ErrRegressed], [ErrExhausted] or a [SetupError]: callers then get them at
// once, instead of waiting for the next try.
type Source interface {
	Reserve(ctx context.Context, n int64) (Span, error)
}

// Stepper is the optional ability of a [Source] to say how many keys it wants
// reserved at a time: Leaf's leaf_alloc rows carry a step that a DBA may
// change at any time.
type Stepper interface {
	Step(ctx context.Context) (int64, error)
}
