// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/schema/throttle"
)

// newThrottle returns the throttle for the flags of run.
func (r *Runner) newThrottle() (err error) {
	r.throttle, err = throttle.New(throttle.Config{
		Source: r.cfg.Source, Name: cmp.Or(r.cfg.Name, r.cfg.Tables[0].Name),
		Replicas: r.replicas, MaxLag: r.flags.maxLag,
		MaxThreads: r.flags.maxThreads, MaxCommitLatency: r.flags.maxCommitLatency, Rate: r.flags.rate,
		Longest: r.flags.maxThrottle,
		Also:    r.fileExists,
		Paused:  func() bool { return r.steer.Load().Paused },
		Observe: func(why string) {
			if why == "" {
				r.sayf("copying again")
			} else {
				r.sayf("copying nothing for now: %s", why)
			}
		},
	})
	if err != nil {
		return command.WithCode(err, command.ExitInput)
	}
	return nil
}

// rest waits before a chunk is copied.
func (r *Runner) rest(ctx context.Context) error {
	err := r.throttle.Wait(ctx)
	if errors.Is(err, throttle.ErrTooLong) {
		return command.WithCode(fmt.Errorf("%w; remove the cause or allow more time with --max-throttle", err), command.MigrateThrottled)
	}
	return err
}

// fileExists is the cause that the file of --throttle-file exists.
func (r *Runner) fileExists(context.Context) (string, error) {
	if r.flags.throttleFile != "" {
		if _, err := os.Stat(r.flags.throttleFile); err == nil {
			return "the file " + r.flags.throttleFile + " exists", nil
		}
	}
	return "", nil
}

// openReplicas opens the replicas of the source that the file names.
func openReplicas(ctx context.Context, l layoutfile.File) (replicas []throttle.Replica, err error) {
	for _, name := range l.Replicas {
		entry, known := l.Databases[name]
		if !known {
			return replicas, input.Errorf("--config: there is no database %q, which \"replicas\" names", name)
		}
		dsn, err := entry.DSN(l.Dir)
		if err != nil {
			return replicas, fmt.Errorf("--config: replica %q: %w", name, err)
		}
		db, err := database.Open(ctx, dsn)
		if err != nil { // it may be unreachable for a while
			return replicas, command.WithCode(fmt.Errorf("--config: replica %q: %w", name, err), command.ExitFailure)
		}
		replicas = append(replicas, throttle.Replica{Name: name, DB: db})
	}
	return replicas, nil
}

func closeReplicas(all []throttle.Replica) (err error) {
	for _, r := range all {
		err = errors.Join(err, r.DB.Close())
	}
	return err
}
