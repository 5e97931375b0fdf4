// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrTooLong: Wait was held back for longer than Config.Longest. The text says by what.
var ErrTooLong = errors.New("held back for too long")

// ErrConfig: the configuration cannot work. Returned by New.
var ErrConfig = errors.New("throttle: configuration cannot work")

// Config says what holds a copy back. The zero value of a limit is no limit.
type Config struct {
	// Source is the database that rows are read from. MaxThreads needs another one than
	// SQLite. There is no default.
	Source *sql.DB

	// Name tells heartbeats on a source apart: that of the job, at most 64 letters.
	// There is no default.
	Name string

	// Replicas are those of the source whose lag counts. Defaults to none.
	Replicas []Replica

	// MaxLag is by how much each of the Replicas may be behind, from a second to half an
	// hour. Defaults to 5 s.
	MaxLag time.Duration

	// MaxThreads is how many threads may be running on the source (Threads_running), or on
	// PostgreSQL how many connections may have a statement under way, for which the user needs
	// pg_read_all_stats. The copy's own are among them.
	MaxThreads int

	// MaxCommitLatency is how long the median of the last five commits of the heartbeat
	// on the source may take.
	MaxCommitLatency time.Duration

	// Rate is how many rows may be copied in a second, on average; see [Throttle.Copied].
	Rate int64

	// Also returns why nothing should be copied for another reason, "" when it may. An
	// error ends Wait. Defaults to no other reason.
	Also func(context.Context) (why string, err error)

	// Paused reports whether people have paused the copy, for as long as they want: that
	// does not count for Longest, and Observe is not told. Defaults to never.
	Paused func() bool

	// Longest is how long Wait may be held back without a break, by a cause that
	// is neither Paused nor Rate, until it ends with ErrTooLong. Defaults to no end.
	Longest time.Duration

	// Observe is told the cause when Wait has been held back for a second, and "" when
	// it goes on after that. It is called by those who Wait, one at a time. Defaults to
	// nobody.
	Observe func(why string)
}

// Replica is a server that repeats the source.
type Replica struct {
	Name string
	// DB is the replica's copy of the database of the source, in which the user may
	// read shardid_beat. With the right to see the state of replication, too, a cause says
	// which of its threads is stopped.
	DB *sql.DB
}

const (
	defaultLag = 5 * time.Second
	mostLag    = 30 * time.Minute

	lookEvery = 250 * time.Millisecond // while throttled
	tellAfter = time.Second
)

// Throttle holds a copy back. It is safe for concurrent use.
type Throttle struct {
	cfg    Config
	causes []cause
	rate   rate
	now    atomic.Pointer[string] // why somebody waits

	turn chan struct{} // holds one element while somebody looks
	told bool          // Observe knows of a cause; of whoever has the turn
}

// cause says why nothing should be copied now, "" when it may.
type cause func(context.Context) (why string, err error)

// New returns a Throttle, which has asked nobody yet. Errors wrap ErrConfig.
func New(cfg Config) (*Throttle, error) {
	if cfg.MaxLag == 0 {
		cfg.MaxLag = defaultLag
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if cfg.Paused == nil {
		cfg.Paused = func() bool { return false }
	}
	if cfg.Observe == nil {
		cfg.Observe = func(string) {}
	}
	t := &Throttle{cfg: cfg, turn: make(chan struct{}, 1)}
	t.SetRate(cfg.Rate)
	t.now.Store(new(string))
	from := &source{DB: cfg.Source}
	beat := &heartbeat{source: from, name: cfg.Name}
	if cfg.Also != nil {
		t.causes = append(t.causes, cfg.Also)
	}
	if cfg.MaxThreads > 0 {
		t.causes = append(t.causes, threads{from, cfg.MaxThreads}.why)
	}
	if cfg.MaxCommitLatency > 0 {
		t.causes = append(t.causes, latency{beat, cfg.MaxCommitLatency}.why)
	}
	for _, r := range cfg.Replicas {
		t.causes = append(t.causes, (&lag{of: r, beat: beat, most: cfg.MaxLag}).why)
	}
	return t, nil
}

func (c Config) validate() error {
	var errs []error
	add := func(bad bool, text string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	add(c.Source == nil, "Source: is nil")
	add(c.Name == "" || len(c.Name) > 64, "Name: %q does not have 1 to 64 letters", c.Name)
	add(c.MaxLag < time.Second || c.MaxLag > mostLag, "MaxLag: %v is not from 1s to %v", c.MaxLag, mostLag)
	add(c.MaxThreads < 0, "MaxThreads: %d is negative", c.MaxThreads)
	add(c.MaxCommitLatency < 0, "MaxCommitLatency: %v is negative", c.MaxCommitLatency)
	add(c.Rate < 0, "Rate: %d is negative", c.Rate)
	add(c.Longest < 0, "Longest: %v is negative", c.Longest)
	for _, r := range c.Replicas {
		add(r.DB == nil, "Replicas: %q: DB is nil", r.Name)
	}
	return errors.Join(errs...)
}

// Wait returns when a chunk may be copied. Its error is that of ctx, of the source or of
// Also, or wraps ErrTooLong.
func (t *Throttle) Wait(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		t.now.Store(new(string))
		<-t.turn
	}()
	begun := time.Now()
	for {
		why, err := t.look(ctx)
		if err != nil {
			return err
		}
		rest := lookEvery
		switch held := time.Since(begun); {
		case t.cfg.Paused(): // whoever paused it knows
			why, begun = "paused by an operator", time.Now()
		case why == "":
			t.goesOn()
			wait, perSecond := t.rate.wait()
			if wait <= 0 {
				return nil
			}
			why, begun, rest = fmt.Sprintf("at most %d rows a second are wanted", perSecond), time.Now(), min(rest, wait)
		case t.cfg.Longest > 0 && held > t.cfg.Longest:
			return fmt.Errorf("%w, longer than %v: %s", ErrTooLong, t.cfg.Longest, why)
		case held > tellAfter && !t.told:
			t.told = true
			t.cfg.Observe(why)
		}
		t.now.Store(&why)
		if err := sleep(ctx, rest); err != nil {
			return err
		}
	}
}

// look returns the first cause there is.
func (t *Throttle) look(ctx context.Context) (why string, err error) {
	for _, c := range t.causes {
		if why, err = c(ctx); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

func (t *Throttle) goesOn() {
	if t.told {
		t.told = false
		t.cfg.Observe("")
	}
}

// Cause says why a Wait is held back at the moment, "" when none is.
func (t *Throttle) Cause() string { return *t.now.Load() }

// Copied tells that rows were copied: those of a migrate.StepStored. The next Waits are
// held back for as long as the rate wants. The chunks under way, one more than
// migrate.Config.Copiers, are not, so that the rate is one on average, and chunks should
// have fewer rows than it.
func (t *Throttle) Copied(rows int64) { t.rate.copied(rows) }

// SetRate changes how many rows may be copied in a second, also for those who wait; zero
// or less is no limit.
func (t *Throttle) SetRate(rows int64) { t.rate.set(rows) }

// threads is the cause that many threads are running on the source.
type threads struct {
	of   *source
	most int
}

func (t threads) why(ctx context.Context) (string, error) {
	running, err := t.of.running(ctx)
	if err != nil {
		return "", fmt.Errorf("a limit of threads needs a server that counts them: %w", err)
	}
	if running <= t.most {
		return "", nil
	}
	return fmt.Sprintf("%d threads are running on the source, at most %d", running, t.most), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
