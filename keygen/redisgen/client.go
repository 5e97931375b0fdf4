// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"context"
	"errors"

	"github.com/shardid/shardid/internal/nilness"
)

// Reply is the answer to a script; go-redis' *redis.Cmd implements it.
type Reply interface {
	// Int64 returns the number in the answer, even if the answer is a text.
	Int64() (int64, error)
}

// Client runs scripts. It must be safe for concurrent use. *redis.Client, *redis.ClusterClient
// and redis.UniversalClient of go-redis v9 are Clients.
type Client[R Reply] interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) R
}

// reloader is a client of a cluster that can read again which nodes are masters, as go-redis'
// ClusterClient can: in the background, and one read at a time. By itself ClusterClient reads
// them ten seconds, in newer versions a minute, after a master stopped answering.
type reloader interface {
	ReloadState(ctx context.Context)
}

// eval runs a script that returns a number.
type eval func(ctx context.Context, script string, keys []string, args ...any) (int64, error)

// errNoClient is the error of a value that no constructor made.
var errNoClient = errors.New("redisgen: the client is nil; connect to Redis first")

// evalWith returns an eval that ends with its context.
func evalWith[R Reply](c Client[R]) (eval, error) {
	patient, err := patientEvalWith(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, script string, keys []string, args ...any) (int64, error) {
		return within(ctx, func() (int64, error) { return patient(ctx, script, keys, args...) })
	}, nil
}

// patientEvalWith returns an eval that ends when the client's call does.
func patientEvalWith[R Reply](c Client[R]) (eval, error) {
	if nilness.Is(c) {
		return nil, errNoClient
	}
	return func(ctx context.Context, script string, keys []string, args ...any) (int64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := c.Eval(ctx, script, keys, args...).Int64()
		if cluster, ok := c.(reloader); ok && err != nil {
			cluster.ReloadState(ctx)
		}
		return n, explained(err)
	}, nil
}

// within returns what call returns, or the error of ctx when that ends first. A client need not
// end a call with its context: go-redis waits for an answer until its ReadTimeout has passed,
// three seconds by default. Such a call goes on in the background, and its result is dropped.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
