package sqlxhook

import (
	"context"
	"errors"
	"sync"

	"github.com/shardid/shardid/sharding"
)

// Each calls fn for the shard of each target, at most limit of them at the same
// time; a limit of 0 is that of [sharding.FanOut]. It returns when all calls have
// returned. An error of one shard does not stop the others; the result joins all
// errors, each as a [sharding.ShardError]. When ctx ends no further calls are made, and the
// error says so. No targets are an error, too: nothing would be done, and look like
// success. Where each row must be seen once, take the targets from
// [sharding.Snapshot.Everywhere], which refuses while slots move.
//
//	err := h.Each(ctx, router.Targets("orders"), 0, func(ctx context.Context, s *sqlxhook.Shard) error {
//		_, err := s.ExecContext(ctx, "DELETE FROM orders WHERE created_at < ?", limit)
//		return err
//	})
func (h *Hook) Each(ctx context.Context, targets []sharding.Target, limit int, fn func(ctx context.Context, s *Shard) error) error {
	if len(targets) == 0 {
		return errNowhere()
	}
	shards := make([]*Shard, len(targets))
	for i, target := range targets {
		var err error
		if shards[i], err = h.At(target); err != nil {
			return err
		}
	}
	if limit <= 0 {
		limit = h.router.Limits().Concurrency
	}
	return errors.Join(atOnce(ctx, len(shards), limit, func(i int) error {
		if err := fn(ctx, shards[i]); err != nil {
			return &sharding.ShardError{Target: shards[i].Target(), Err: err}
		}
		return nil
	})...)
}

func errNowhere() error {
	return &sharding.RouteError{
		Op: "each", Err: sharding.ErrUnknownTable,
		Hint: "there are no targets: the router does not know the table, or Router.Load has not read where it is",
	}
}

// Collect is [Hook.Each] for functions that return rows: the rows of all shards,
// in the order of the targets. With an error there are none, as those of some
// shards alone would look like an answer. To sort, to count and to cut them is
// the caller's.
func Collect[T any](ctx context.Context, h *Hook, targets []sharding.Target, limit int, fn func(ctx context.Context, s *Shard) ([]T, error)) ([]T, error) {
	found := make(map[sharding.Target][]T, len(targets))
	var mu sync.Mutex // guards found
	err := h.Each(ctx, targets, limit, func(ctx context.Context, s *Shard) error {
		rows, err := fn(ctx, s)
		mu.Lock()
		defer mu.Unlock()
		found[s.Target()] = rows
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []T
	for _, target := range targets {
		all = append(all, found[target]...)
	}
	return all, nil
}

// atOnce calls fn for 0 to n-1, at most limit at the same time, and waits for all
// calls. It returns their errors, and that of ctx when it kept some from being
// made.
func atOnce(ctx context.Context, n, limit int, fn func(i int) error) []error {
	errs := make([]error, n+1)
	slots := make(chan struct{}, limit)
	var calls sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if errs[n] = ctx.Err(); errs[n] != nil {
			break
		}
		calls.Go(func() {
			defer func() { <-slots }()
			errs[i] = fn(i)
		})
	}
	calls.Wait()
	return errs
}
