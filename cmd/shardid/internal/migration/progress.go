// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

// progressLines shows a run: as one changing line on a terminal, as lines elsewhere, or as
// JSON.
type progressLines struct {
	w       io.Writer
	json    bool
	moves   bool
	every   time.Duration
	style   term.Style
	copied  int64 // rows, when the last line was shown
	last    time.Time
	visible bool
	began   time.Time // when the first line of copying was shown
	first   float64   // the part that was copied then, by this run or earlier ones
}

func newProgressLines(r *Runner) *progressLines {
	l := &progressLines{w: r.Cmd.ErrOrStderr(), every: r.flags.interval, last: time.Now()}
	if r.json {
		l.w, l.json = r.Cmd.OutOrStdout(), true
		return l
	}
	l.style, l.moves = term.StyleFor(l.w), term.IsTerminal(l.w)
	if l.moves {
		l.every = min(l.every, time.Second)
	}
	return l
}

// progressLine is a line of JSON.
type progressLine struct {
	migrate.Progress

	Part          float64 `json:"copied"`
	RowsPerSecond int64   `json:"rows_per_second"`
	Throttled     string  `json:"throttled,omitempty"` // the cause
}

// show writes the progress of the job. copied is how many rows the run has copied so far,
// and throttled why it copies nothing at the moment, if so.
func (l *progressLines) show(p migrate.Progress, copied int64, throttled string) {
	rows, since := copied-l.copied, time.Since(l.last)
	l.copied, l.last = copied, time.Now()
	if l.json {
		l.object(progressLine{p, p.Copied(), int64(float64(rows) / since.Seconds()), throttled})
		return
	}
	text := l.text(p) + rate(rows, since) + l.left(p)
	if throttled != "" && !p.Paused {
		text += l.style.Yellow(", throttled: " + throttled)
	}
	if l.moves {
		_, _ = io.WriteString(l.w, "\r  "+text+"\x1b[K")
		l.visible = true
		return
	}
	_, _ = io.WriteString(l.w, text+"\n")
}

// left estimates how long the copy will still take, from the speed since the first line.
func (l *progressLines) left(p migrate.Progress) string {
	if p.Phase != migrate.PhaseCopying || p.Paused {
		return ""
	}
	if l.began.IsZero() {
		l.began, l.first = l.last, p.Copied()
	}
	const fine = 1e6
	return term.Left(int64(fine*(p.Copied()-l.first)), int64(fine*(1-l.first)), l.last.Sub(l.began))
}

// object writes one line. An error of stdout cannot be reported.
func (l *progressLines) object(line progressLine) {
	text, err := json.Marshal(line)
	if err != nil {
		panic("bug: " + err.Error()) // it has only numbers and texts
	}
	_, _ = l.w.Write(append(text, '\n'))
}

const barWidth = 24

func (l *progressLines) text(p migrate.Progress) string {
	var b strings.Builder
	b.WriteString(l.style.Bold(string(p.Phase)) + "  ")
	if p.Phase == migrate.PhaseCopying {
		if l.moves {
			full := int(p.Copied() * barWidth)
			b.WriteString(strings.Repeat("━", full) + l.style.Dim(strings.Repeat("─", barWidth-full)) + " ")
		}
		fmt.Fprintf(&b, "%.1f %%, ", 100*p.Copied())
	}
	b.WriteString(waiting(p))
	if p.Paused {
		b.WriteString(l.style.Yellow(", paused"))
	}
	return b.String()
}

// end leaves the last line on a terminal.
func (l *progressLines) end() {
	if l.visible {
		_, _ = io.WriteString(l.w, "\n")
	}
}
