// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
)

// An applier waits after a pass that found no entry, and doubles the wait each time while
// the log stays empty.
const (
	IdlePause     = 10 * time.Millisecond
	mostIdlePause = 80 * time.Millisecond
)

// UntilCaughtUp follows until the copy is done, if there is one, and few changes of writers
// are left. Changes that waited for others in the same round get another round.
func (f *Follower) UntilCaughtUp(ctx context.Context, copied <-chan struct{}) error {
	for waited := 0; ; {
		complete := copied == nil
		select {
		case <-copied:
			complete = true
		default:
		}
		done, err := f.round(ctx)
		if err != nil {
			return err
		}
		waits := len(done.Left)
		if complete && done.Applied < pageSize && (done.Applied == 0 || waits == 0 || waited > 0 && waits >= waited) {
			return nil
		}
		waited = waits
		if err := f.rest(ctx, done, copied); err != nil {
			return err
		}
	}
}

// KeepUp follows for as long as ctx lasts.
func (f *Follower) KeepUp(ctx context.Context) error {
	for {
		done, err := f.round(ctx)
		if err != nil {
			return err
		}
		if err := f.rest(ctx, done, nil); err != nil {
			return err
		}
	}
}

// rest waits a moment when the round had nothing to do, or until enough is closed.
func (f *Follower) rest(ctx context.Context, done Passed, enough <-chan struct{}) error {
	switch {
	case done.Applied > 0:
		f.pause = 0
		return nil
	case done.Empty():
		f.pause = min(max(2*f.pause, IdlePause), mostIdlePause)
	default:
		f.pause = IdlePause
	}
	timer := time.NewTimer(f.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-enough:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Follower goes through logs repeatedly.
type Follower struct {
	streams   []*Stream
	unchanged func(context.Context) error // fails when a table is not what it was
	looked    time.Time
	pause     time.Duration // the last wait, 0 after something was applied
}

// New returns a follower of the streams. It calls unchanged from time to time, and when a
// statement has failed.
func New(unchanged func(context.Context) error, streams ...*Stream) *Follower {
	return &Follower{streams: streams, unchanged: unchanged}
}

// lookEvery is how often a follower checks that the tables are still those with which the
// job began.
const lookEvery = time.Second

// round goes through each log once.
func (f *Follower) round(ctx context.Context) (all Passed, err error) {
	if time.Since(f.looked) >= lookEvery {
		if err := f.unchanged(ctx); err != nil {
			return all, err
		}
		f.looked = time.Now()
	}
	for _, st := range f.streams {
		done, err := st.Pass(ctx)
		if err != nil {
			return all, lead.Explain(ctx, err, f.unchanged)
		}
		all.Applied += done.Applied
		all.Left = append(all.Left, done.Left...)
	}
	return all, nil
}

const (
	catchUpEnough = 100 // changes that any pause has time for
	catchUpRounds = 10  // rounds in which a backlog has to shrink
	catchUpTime   = 15 * time.Second
)

// CatchUp applies changes until few are left for the pause: a small number, or what writers
// add in a fourth of maxPause. A backlog that does not shrink soon is left to Follow, which
// has no time limit.
func CatchUp(ctx context.Context, maxPause time.Duration, unchanged func(context.Context) error, streams ...*Stream) error {
	f := New(unchanged, streams...)
	limited, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	for least, since := int64(-1), 0; ; {
		began := time.Now()
		done, err := f.round(limited)
		if limited.Err() != nil && ctx.Err() == nil {
			return behind(ctx, streams)
		}
		if err != nil || done.Applied < catchUpEnough {
			return err
		}
		waited := done.Applied + int64(len(done.Left))
		if since++; least < 0 || waited < least {
			least, since = waited, 0
		}
		if since < catchUpRounds {
			continue
		}
		if time.Since(began) <= maxPause/4 {
			return nil // as the pause has time for as much as this round did
		}
		if waited >= pageSize {
			return behind(ctx, streams)
		}
	}
}

// behind makes the error that says how many changes wait.
func behind(ctx context.Context, streams []*Stream) error {
	waiting, err := waiting(ctx, streams)
	if err == nil {
		err = fmt.Errorf("%w: changes arrive faster than they are applied, or too many were left; %d changes wait: let Follow apply them, slow writers down, or allow a longer pause, and try again", backend.ErrNotReady, waiting)
	}
	return err
}

// waiting counts the entries of the logs.
func waiting(ctx context.Context, streams []*Stream) (sum int64, err error) {
	for _, st := range streams {
		err := st.do(ctx, func(s *backend.Session) error {
			n, err := s.Number(ctx, "SELECT COUNT(*) FROM "+s.Database.Quote(st.log))
			sum += n
			return err
		})
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}
