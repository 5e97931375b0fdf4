package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// throttle waits before a chunk while operators or the source need a rest.
func (r *runner) throttle(ctx context.Context) error {
	begun := time.Now()
	for {
		paused := r.steer.Load().Paused
		reason, err := r.busy(ctx)
		cause := reason
		if paused {
			cause = "paused by an operator"
		}
		r.cause.Store(&cause)
		switch {
		case err != nil:
			return err
		case !paused && reason == "":
			return nil
		case paused: // whoever paused it knows
			begun = time.Now()
		case time.Since(begun) > r.flags.maxThrottle:
			return coded{fmt.Errorf("throttled for longer than %s: %s; mend that or allow more time with --max-throttle", r.flags.maxThrottle, reason), migrateThrottled}
		}
		if err := pauseFor(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// busy says why nothing should be copied now, "" when it may.
func (r *runner) busy(ctx context.Context) (string, error) {
	if r.flags.throttleFile != "" {
		if _, err := os.Stat(r.flags.throttleFile); err == nil {
			return "the file " + r.flags.throttleFile + " exists", nil
		}
	}
	if r.flags.maxThreads <= 0 {
		return "", nil
	}
	var name string
	var running int
	err := r.cfg.Source.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_running'").Scan(&name, &running)
	if err != nil {
		return "", fmt.Errorf("--max-threads needs a server that counts its threads: %w", err)
	}
	if running > r.flags.maxThreads {
		return fmt.Sprintf("%d threads are running on the source", running), nil
	}
	return "", nil
}
