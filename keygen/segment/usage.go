// SPDX-License-Identifier: Apache-2.0

package segment

import "math"

// Usage is how many ids a tag consumes, and the step that it should have.
type Usage struct {
	Step   int64   // ids in the newest segment
	Rate   float64 // ids per second at present
	Peak   float64 // the highest Rate so far
	Advice int64   // the step for leaf_alloc: 600 × Peak, so that a segment bridges ten minutes
}

const adviceSeconds = 600

// Usage returns the rate at which callers take ids. It is an average over the time since the
// last call of Usage or since the current segment began, whichever is shorter, but at least a
// second. Call it at intervals to catch peaks.
func (g *Generator) Usage() Usage {
	if g.sizer == nil {
		return Usage{}
	}
	rate, peak := g.buffer.Rate()
	return Usage{
		Step:   g.sizer.step.Load(),
		Rate:   rate,
		Peak:   peak,
		Advice: int64(math.Ceil(adviceSeconds * peak)),
	}
}
