// SPDX-License-Identifier: Apache-2.0

package keygen

import "context"

// Span is the keys First, First+Step, …, Count of them. It belongs to the caller that reserved
// it: no other caller ever gets one of its keys.
type Span struct {
	First int64 // the lowest key, at least 1
	Count int64 // number of keys, at least 1
	Step  int64 // distance between two adjacent keys, at least 1; above 1 for offset/step systems
}

// Last returns the highest key of s.
func (s Span) Last() int64 { return s.First + (s.Count-1)*s.Step }

// Source reserves spans in durable storage. Implementations are safe for concurrent use.
//
// Reserve asks for n keys, n at least 1. It returns a span only after the reservation is
// committed. The span may have more or fewer than n keys, but at least 1. When Reserve returns
// an error, the reservation may or may not have happened; its keys then become a gap, never a
// duplicate. Errors that a retry cannot cure wrap [ErrUnknownTag], [ErrRegressed],
// [ErrExhausted] or a [SetupError]; generators return them at once instead of retrying.
type Source interface {
	Reserve(ctx context.Context, n int64) (Span, error)
}

// Stepper is the optional ability of a [Source] to say how many keys callers should reserve at
// a time. Leaf's leaf_alloc rows have such a step, which a DBA may change at any time.
type Stepper interface {
	Step(ctx context.Context) (int64, error)
}
