// SPDX-License-Identifier: Apache-2.0

// Migration is a shop whose tables are migrated while customers buy: go run ./migration, or
// with two databases, go run ./migration -east DSN -west DSN. Orders and their items have
// AUTO_INCREMENT ids. Each table moves to eight tables on east and west.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
	"github.com/shardid/shardid/schema/migrate"
)

// old is how many orders the shop has when the program begins.
const old = 20_000

func main() {
	setup.Run(func(ctx context.Context) error { return run(ctx, setup.Parse()) })
}

// run serves customers, migrates the tables meanwhile, and ends with ctx.
func run(ctx context.Context, f setup.Flags) (err error) {
	s, err := openShop(ctx, f, old)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	job, err := s.job()
	if err != nil {
		return err
	}
	handler, err := s.handler(job)
	if err != nil {
		return err
	}
	at, err := setup.Listen(ctx, f)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	crowd := &customers{url: "http://" + at.Addr().String(), users: s.users}
	var work sync.WaitGroup
	for _, do := range []func(context.Context) error{
		crowd.buy,
		func(ctx context.Context) error { return move(ctx, job, func() error { return crowd.lookAgain(ctx) }) },
	} {
		work.Go(func() {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	err = setup.Serve(ctx, at, handler)
	fail(nil)
	work.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// handler serves the shop, and the status page of the job at the same address. In production,
// protect the page with authentication.
func (s *shop) handler(job *migrate.Job) (http.Handler, error) {
	service, err := observe.New(observe.Config{Generators: s.ids, Router: s.router})
	if err != nil {
		return nil, err
	}
	page, err := statuspage.New(statuspage.Config{Service: service, Store: s.store, Migrations: map[string]observe.Migration{"orders": job}})
	if err != nil {
		return nil, err
	}
	return web.Handler(s, page), nil
}

// move migrates the tables to the shards and calls switched. Until ctx ends, it then copies changes of the
// shards back to the retired tables, so that job.Rollback would lose nothing.
func move(ctx context.Context, job *migrate.Job, switched func() error) error {
	slog.Info("copying")
	if err := job.Run(ctx); err != nil {
		return err
	}
	if err := following(ctx, job, compare); err != nil {
		return err
	}
	if err := cutover(ctx, job); err != nil {
		return err
	}
	return following(ctx, job, func(ctx context.Context, job *migrate.Job) error {
		if err := compare(ctx, job); err != nil {
			return err
		}
		if err := switched(); err != nil {
			return err
		}
		slog.Info("the shop goes on, and so does the way back; end it by Ctrl-C")
		<-ctx.Done()
		return context.Cause(ctx)
	})
}
