// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

// attempts is how often a step is tried that customers may be in the way of.
const attempts = 20

// maxPause is for how long customers may wait at the switch.
const maxPause = time.Second

// following does a step while changes are followed.
func following(ctx context.Context, job *migrate.Job, step func(context.Context, *migrate.Job) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan error, 1)
	go func() {
		followed <- job.Follow(ctx)
		stop()
	}()
	err := step(ctx, job)
	stop()
	return errors.Join(err, <-followed)
}

// compare compares all rows of both sides while customers change them. Rows whose changes are
// on their way are looked at again.
func compare(ctx context.Context, job *migrate.Job) error {
	for range attempts {
		v, err := job.Verify(ctx)
		switch {
		case err != nil:
			return err
		case v.Requeued > 0:
			return fmt.Errorf("%d rows differ, such as %s", v.Requeued, v.Divergences[0])
		case v.Clean():
			slog.Info("compared", "rows", v.Rows)
			return nil
		}
	}
	return errors.New("rows change faster than they are compared")
}

// cutover has the shards serve. When that would keep customers waiting for longer than
// maxPause, nothing has changed, and it is tried again.
func cutover(ctx context.Context, job *migrate.Job) error {
	for n := 1; ; n++ {
		done, err := job.Cutover(ctx, maxPause)
		if err == nil {
			slog.Info("the shards serve", "pause", done.Pause.Round(time.Millisecond))
			return nil
		}
		if !errors.Is(err, migrate.ErrNotReady) || n == attempts {
			return err
		}
		slog.Info("not yet", "because", err)
	}
}
