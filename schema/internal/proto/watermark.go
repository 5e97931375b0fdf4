// SPDX-License-Identifier: Apache-2.0

package proto

// Chunk is the keys above After and up to To.
type Chunk struct{ After, To Bound }

// Watermark tracks the chunks that copiers have taken. The zero Watermark starts below
// every key. It is not safe for concurrent use.
type Watermark struct {
	low, hig Bound
	open     []Chunk // taken in this order, which is that of their keys
	done     []bool  // of open, in the same order
}

// Resume returns a watermark of a copy that is complete up to low.
func Resume(low Bound) *Watermark { return &Watermark{low: low, hig: low} }

// High returns the bound up to which chunks were taken. It must be stored before any row of
// the last chunk is read.
func (w *Watermark) High() Bound { return w.hig }

// Complete reports whether everything was copied.
func (w *Watermark) Complete() bool { return w.low == Top }

// Exhausted reports whether the last chunk was taken.
func (w *Watermark) Exhausted() bool { return w.hig == Top }

// Take returns the chunk that ends at to, which must be above High.
func (w *Watermark) Take(to Bound) Chunk {
	if !w.hig.Less(to) {
		panic("bug: a chunk must end above those already taken")
	}
	c := Chunk{After: w.hig, To: to}
	w.hig = to
	w.open, w.done = append(w.open, c), append(w.done, false)
	return c
}

// Finish notes that the rows of a chunk are on the targets or have entries in the log, and
// returns the new low.
func (w *Watermark) Finish(c Chunk) Bound {
	for i := range w.open {
		if w.open[i] == c {
			w.done[i] = true
		}
	}
	for len(w.open) > 0 && w.done[0] {
		w.low = w.open[0].To
		w.open, w.done = w.open[1:], w.done[1:]
	}
	return w.low
}
