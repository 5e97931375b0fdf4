// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/shardid/shardid/sharding/shardsql"
)

// Log logs events that an operator acts upon: sources that fail and recover, alarms, statements that
// are refused or fail, and replicas that cannot be reached. It is safe for concurrent use.
type Log struct {
	to *slog.Logger

	mu   sync.Mutex
	seen map[logKey]*repeats
}

// logKey identifies a line. A line with the same identity is not written again for a minute.
type logKey struct{ fingerprint, outcome string }

type repeats struct {
	last  time.Time
	since int64 // how often it was omitted since then
}

const (
	logEvery = time.Minute
	mostSaid = 1000 // identities that are kept
)

// NewLog returns a Log that writes to a logger, or to slog.Default() if the logger is nil.
func NewLog(to *slog.Logger) *Log {
	if to == nil {
		to = slog.Default()
	}
	return &Log{to: to, seen: map[logKey]*repeats{}}
}

// Outage returns a function for the Outage field of a generator's Observer. The function logs a
// warning.
func (l *Log) Outage(generator string) func(err error) {
	return func(err error) {
		l.to.Warn("the source of a generator fails; the generator continues with the keys in its memory", "generator", generator, "error", err)
	}
}

// Recovery returns a function for the Recovery field of a generator's Observer.
func (l *Log) Recovery(generator string) func(lasted time.Duration) {
	return func(lasted time.Duration) {
		l.to.Info("the source of a generator answers again", "generator", generator, "lasted", lasted)
	}
}

// Alarm returns a function for the Alarm field of a generator's Observer. The function logs an
// error.
func (l *Log) Alarm(generator string) func(err error) {
	return func(err error) { l.to.Error("alarm of a generator", "generator", generator, "error", err) }
}

// Statement logs a warning about a statement that was refused or failed. The warning has the
// statement's fingerprint and the error, which may contain values. It is written once a minute for
// each fingerprint and outcome, with the number of warnings omitted since. A statement whose
// context ended is not logged. An observer of package shardsql calls Statement.
func (l *Log) Statement(ctx context.Context, s shardsql.Statement) {
	outcome := Outcome(ctx, s)
	if outcome == succeeded || outcome == cancelled {
		return
	}
	repeated, write := l.shouldWrite(logKey{s.Fingerprint, outcome})
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

// ReplicaDown logs a warning about a replica that could not be reached, once a minute, with the number of warnings
// omitted since. It is for the field of the same name of shardsql.Observer.
func (l *Log) ReplicaDown(ctx context.Context, database string, replica int, err error) {
	repeated, write := l.shouldWrite(logKey{"replica " + strconv.Itoa(replica) + " of " + database, failed})
	if !write {
		return
	}
	attributes := []slog.Attr{slog.String("database", database), slog.Int("replica", replica), slog.Any("error", err)}
	if repeated > 0 {
		attributes = append(attributes, slog.Int64("repeated", repeated))
	}
	l.to.LogAttrs(ctx, slog.LevelWarn, "a replica cannot be reached; reads go to the others, or to the database", attributes...)
}

// shouldWrite reports whether a line must be written, and how many like it were omitted before.
func (l *Log) shouldWrite(of logKey) (repeated int64, write bool) {
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
