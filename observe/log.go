// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/shardid/shardid/sharding/shardsql"
)

// Log writes what an operator acts upon: sources that fail and come back, alarms, and
// statements that are refused or fail. It is safe for concurrent use.
type Log struct {
	to *slog.Logger

	mu   sync.Mutex
	seen map[said]*repeats
}

// said identifies a line. A line with the same identity is not written again for a minute.
type said struct{ fingerprint, outcome string }

type repeats struct {
	last  time.Time
	since int64 // how often it was left out since then
}

const (
	logEvery = time.Minute
	mostSaid = 1000 // texts that are remembered
)

// NewLog returns a Log that writes to a logger, slog.Default() if it is nil.
func NewLog(to *slog.Logger) *Log {
	if to == nil {
		to = slog.Default()
	}
	return &Log{to: to, seen: map[said]*repeats{}}
}

// Outage returns a function for the field of that name of a generator's Observer. It
// writes a warning.
func (l *Log) Outage(generator string) func(err error) {
	return func(err error) {
		l.to.Warn("the source of a generator fails; it goes on with what it holds", "generator", generator, "error", err)
	}
}

// Recovery returns a function for the field of that name of a generator's Observer.
func (l *Log) Recovery(generator string) func(lasted time.Duration) {
	return func(lasted time.Duration) {
		l.to.Info("the source of a generator answers again", "generator", generator, "lasted", lasted)
	}
}

// Alarm returns a function for the field of that name of a generator's Observer. It
// writes an error.
func (l *Log) Alarm(generator string) func(err error) {
	return func(err error) { l.to.Error("alarm of a generator", "generator", generator, "error", err) }
}

// Statement writes a warning of a statement that was refused or failed, with its
// fingerprint and the error, which may name values: once in a minute for each fingerprint
// and outcome, with how many were left out since. One whose context ended is not written.
// It is called by an observer of package shardsql.
func (l *Log) Statement(ctx context.Context, s shardsql.Statement) {
	outcome := Outcome(s)
	if outcome == succeeded || outcome == cancelled {
		return
	}
	repeated, write := l.turn(said{s.Fingerprint, outcome})
	if !write {
		return
	}
	message := "a statement failed"
	if s.Kind == shardsql.Refused {
		message = "a statement was refused"
	}
	attributes := []slog.Attr{slog.String("outcome", outcome), slog.String("table", s.Table), slog.String("statement", s.Fingerprint), slog.Any("error", s.Err)}
	if repeated > 0 {
		attributes = append(attributes, slog.Int64("repeated", repeated))
	}
	l.to.LogAttrs(ctx, slog.LevelWarn, message, attributes...)
}

// turn reports whether a line must be written, and how many like it were left out before.
func (l *Log) turn(of said) (repeated int64, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	r, is := l.seen[of]
	if is && now.Sub(r.last) < logEvery {
		r.since++
		return 0, false
	}
	if !is {
		if len(l.seen) >= mostSaid {
			clear(l.seen)
		}
		r = new(repeats)
		l.seen[of] = r
	}
	repeated, r.since, r.last = r.since, 0, now
	return repeated, true
}
