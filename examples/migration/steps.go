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

// attempts is the number of attempts of a step that customers' transactions may block.
const attempts = 20

// maxPause is the longest time that customers may wait at the switch.
const maxPause = time.Second

// following runs a step while the job follows changes.
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

// compare compares all rows of both sides while customers change them. It reads rows again whose changes
// have not arrived yet.
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

// cutover makes the shards serve. If customers would wait for longer than
// maxPause, it changes nothing and is tried again.
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
