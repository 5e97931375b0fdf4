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

// ErrTooLong: Wait was throttled for longer than Config.Longest. The text says by which
// cause.
var ErrTooLong = errors.New("held back for too long")

// ErrConfig: the configuration cannot work. Returned by New.
var ErrConfig = errors.New("throttle: configuration cannot work")

// Config sets the causes that throttle a copy. The zero value of a limit is no limit.
type Config struct {
	// Source is the database that rows are read from. MaxThreads does not work on SQLite.
	// There is no default.
	Source *sql.DB

	// Name identifies the heartbeat on the source: use the name of the job, at most 64
	// letters. There is no default.
	Name string

	// Replicas are the source's replicas whose lag counts. Defaults to none.
	Replicas []Replica

	// MaxLag is the largest lag of each of the Replicas, from a second to half an hour.
	// Defaults to 5 s.
	MaxLag time.Duration

	// MaxThreads is how many threads may be running on the source (Threads_running). On
	// PostgreSQL it is how many connections may be executing a statement, for which the user
	// needs pg_read_all_stats. The copy's own connections count.
	MaxThreads int

	// MaxCommitLatency is the longest allowed median of the last five commits of the heartbeat
	// on the source.
	MaxCommitLatency time.Duration

	// Rate is how many rows may be copied per second, on average; see [Throttle.Copied].
	Rate int64

	// Also returns another reason why nothing should be copied, "" when there is none. An
	// error ends Wait. Defaults to no other reason.
	Also func(context.Context) (why string, err error)

	// Paused reports whether an operator has paused the copy. A pause of any length does not
	// count for Longest, and Observe is not called. Defaults to never.
	Paused func() bool

	// Longest is how long Wait may be throttled without a break, by a cause that is neither
	// Paused nor Rate, before it returns ErrTooLong. Defaults to no limit.
	Longest time.Duration

	// Observe is called with the cause when Wait has been throttled for a second, and with ""
	// when it continues after that. The goroutines in Wait call it, one at a time. Defaults to
	// no call.
	Observe func(why string)
}

// Replica is a server that replicates from the source.
type Replica struct {
	Name string
	// DB is the replica's copy of the source's database, in which the user may read
	// shardid_beat. With the right to see the state of replication, the cause also names a
	// stopped thread.
	DB *sql.DB
}

const (
	defaultLag = 5 * time.Second
	mostLag    = 30 * time.Minute

	lookEvery = 250 * time.Millisecond // while throttled
	tellAfter = time.Second
)

// Throttle throttles a copy. It is safe for concurrent use.
type Throttle struct {
	cfg    Config
	causes []cause
	rate   rate
	now    atomic.Pointer[string] // why a Wait is throttled

	turn chan struct{} // holds one element while a goroutine checks the causes
	told bool          // Observe was called with a cause; used by the goroutine that has the turn
}

// cause says why nothing should be copied now, "" when copying is allowed.
type cause func(context.Context) (why string, err error)

// New returns a Throttle. It does not connect. Errors wrap ErrConfig.
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
		case t.cfg.Paused(): // the operator knows of the pause
			why, begun = "paused by an operator", time.Now()
		case why == "":
			t.goesOn()
			wait, perSecond := t.rate.wait()
			if wait <= 0 {
				return nil
			}
			why, begun, rest = fmt.Sprintf("the rate is at most %d rows a second", perSecond), time.Now(), min(rest, wait)
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

// look returns the first cause that applies.
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

// Cause says why a Wait is throttled at the moment, "" when none is.
func (t *Throttle) Cause() string { return *t.now.Load() }

// Copied reports copied rows: those of a migrate.StepStored. The next Waits take as long as
// the rate requires. Chunks that are already being copied, one more than
// migrate.Config.Copiers, are not delayed, so the rate holds on average, and chunks should
// have fewer rows than the rate.
func (t *Throttle) Copied(rows int64) { t.rate.copied(rows) }

// SetRate changes how many rows may be copied per second, also for goroutines in Wait; zero
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
