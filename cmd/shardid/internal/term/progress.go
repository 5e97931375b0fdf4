// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// redraw is the shortest time between two redraws of a bar.
const redraw = 100 * time.Millisecond

// relog is the time between two lines of a long phase on a stream that is not a terminal.
const relog = 10 * time.Second

// barWidth is the number of characters of a full bar.
const barWidth = 16

// The width of a line, and the column where the text of a finished phase begins.
const (
	columns = 80
	didAt   = 23
)

// quiet is how long work takes before its remaining time is shown.
const quiet = 5 * time.Second

// Left says how long the rest of the work takes at its average speed: ", about 30s left".
// It returns "" in the first five seconds, and when nothing is done, nothing is left, or
// total is unknown.
func Left(done, total int64, since time.Duration) string {
	if since < quiet || done <= 0 || done >= total {
		return ""
	}
	rest := time.Duration(float64(since) * float64(total-done) / float64(done))
	return fmt.Sprintf(", about %s left", max(time.Second, rest.Round(time.Second)))
}

// Progress shows work in phases, one line for each. On a terminal the line of the current
// phase is redrawn. Elsewhere a line is printed when its phase ends, and every ten seconds
// before. Begin, End and Abort are called by one goroutine, Add and Reach by any.
type Progress struct {
	w     io.Writer
	moves bool
	style Style

	mu    sync.Mutex // guards the fields below, and writing during a phase
	name  string
	done  int64
	total int64
	start time.Time
	drawn time.Time
}

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{w: w, moves: IsTerminal(w), style: StyleFor(w)}
}

// Begin starts a phase of total steps; 0 means that the number is unknown.
func (p *Progress) Begin(name string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.total, p.done = name, total, 0
	p.start, p.drawn = time.Now(), time.Time{}
	if !p.moves {
		p.drawn = p.start
	}
	p.draw()
}

// Add reports n more finished steps.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.draw()
}

// Reach reports that done of total steps are finished, for a total that is known late.
func (p *Progress) Reach(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = done, total
	p.draw()
}

// End finishes the phase and prints its result.
func (p *Progress) End(did string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	took := fmt.Sprintf("%.2f s", time.Since(p.start).Seconds())
	did = Folded(did, columns-didAt, strings.Repeat(" ", didAt))
	p.print(fmt.Sprintf("  %s%s  %s\n", p.style.Bold(pad(p.name)), p.style.Dim(fmt.Sprintf("%8s", took)), did))
}

// Abort removes the line of the current phase, and prints left, if it is not empty.
func (p *Progress) Abort(left string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if left != "" {
		p.print("  " + left + "\n")
	}
}

func (p *Progress) draw() {
	if time.Since(p.drawn) < p.every() {
		return
	}
	p.drawn = time.Now()
	part := min(1, float64(p.done)/float64(max(1, p.total)))
	bar, state := "…", Number(p.done)
	if p.total > 0 {
		full := int(part * barWidth)
		bar = strings.Repeat("━", full) + p.style.Dim(strings.Repeat("─", barWidth-full))
		state = fmt.Sprintf("%3.0f %%  %s of %s%s", 100*part, Number(min(p.done, p.total)), Number(p.total), Left(p.done, p.total, time.Since(p.start)))
	}
	switch {
	case !p.moves:
		p.print("  " + pad(p.name) + state + "\n")
	case p.total > 0:
		p.print("\r  " + pad(p.name) + bar + " " + state + "\x1b[K")
	default:
		p.print("\r  " + pad(p.name) + bar + "\x1b[K")
	}
}

// every is the time between two updates of a phase.
func (p *Progress) every() time.Duration {
	if p.moves {
		return redraw
	}
	return relog
}

func (p *Progress) clear() {
	if p.moves {
		p.print("\r\x1b[K")
	}
}

// print ignores an error of the stream, because it could not be reported.
func (p *Progress) print(s string) { _, _ = io.WriteString(p.w, s) }

func pad(name string) string { return fmt.Sprintf("%-11s", name) }
