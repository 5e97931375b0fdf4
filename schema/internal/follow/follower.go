// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
)

// An applier rests when there was nothing to apply: twice as long each time while
// the log stays empty.
const (
	IdlePause     = 10 * time.Millisecond
	mostIdlePause = 80 * time.Millisecond
)

// UntilCaughtUp goes on until the copy is done, if there is one, and what
// writers changed since is little. Changes that waited for others of the same round
// get another one.
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

// rest waits a moment when there was nothing to do, or until enough is closed.
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

// Follower goes through logs again and again.
type Follower struct {
	streams   []*Stream
	unchanged func(context.Context) error // fails when a table is not what it was
	looked    time.Time
	pause     time.Duration // the last one, 0 after something was applied
}

// New follows the streams. unchanged is asked now and then, and when a
// statement failed.
func New(unchanged func(context.Context) error, streams ...*Stream) *Follower {
	return &Follower{streams: streams, unchanged: unchanged}
}

// lookEvery is how often a follower makes sure that the tables are still those
// that the job began with.
const lookEvery = time.Second

// round goes once through each log.
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
	catchUpEnough = 100 // changes that any pause can take over
	catchUpRounds = 10  // in which a backlog has to shrink
	catchUpTime   = 15 * time.Second
)

// CatchUp applies what there is, so that little is left for the pause: few
// changes, or what writers add in a fourth of maxPause. What does not become
// little soon is for Follow, which may take its time.
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
			return nil // as the pause can do what this round did
		}
		if waited >= pageSize {
			return behind(ctx, streams)
		}
	}
}

// behind says how many changes wait.
func behind(ctx context.Context, streams []*Stream) error {
	waiting, err := waiting(ctx, streams)
	if err == nil {
		err = fmt.Errorf("%w: writers are faster than their changes are followed, or too many had gathered; %d changes wait: let Follow bring them over, have writers slow down, or allow a longer pause, and try again", backend.ErrNotReady, waiting)
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
