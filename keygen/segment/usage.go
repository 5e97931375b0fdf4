package segment

import "math"

// Usage is what a tag consumes, and what it should reserve at a time.
type Usage struct {
	Step   int64   // ids in the newest segment
	Rate   float64 // ids per second lately
	Peak   float64 // the highest Rate so far
	Advice int64   // the step for leaf_alloc: 600 × Peak, ten minutes without the database
}

const adviceSeconds = 600

// Usage returns the rate at which ids are taken. It is an average since the
// call of Usage before or since the segment in use began, whichever is later,
// over a second at least: who wants to catch peaks calls it at intervals.
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
