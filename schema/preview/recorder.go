// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shardid/shardid/sharding"
)

// Config says what a Recorder writes, and where.
type Config struct {
	// Source is the database that is being migrated, as in Migration.Source. Its user needs
	// SELECT, INSERT and UPDATE on shardid_preview, and CREATE where it is missing; see
	// Create. Required.
	Source *sql.DB
	// Preview is the Preview of the Migration. Required.
	Preview *sharding.Preview
	// Every is how often the findings are written: a killed process loses those since the last
	// write. Defaults to 10 s.
	Every time.Duration
	// Failed is called after each failed write; its findings are written later. Defaults to no
	// call; Close returns the last error in any case.
	Failed func(error)
}

const (
	defaultEvery = 10 * time.Second
	writeWithin  = 30 * time.Second // one write, so that Close ends
)

// Recorder writes the findings of a process into the table of its source, until Close. It
// is safe for concurrent use.
type Recorder struct {
	cfg     Config
	table   table
	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu      sync.Mutex // one write at a time
	written map[string]written
}

// written is what the table has about one statement from this process.
type written struct {
	times   int64
	outcome sharding.Change
}

// ErrConfig: a Config lacks a required field or has an invalid one. Returned by Start.
var ErrConfig = errors.New("preview: configuration")

// Start creates the tables where they are missing and begins to write. The context is for
// Start only. Its errors wrap ErrConfig, or are those of the database.
func Start(ctx context.Context, cfg Config) (*Recorder, error) {
	switch {
	case cfg.Source == nil:
		return nil, fmt.Errorf("%w: Source is nil; give it the database that is being migrated", ErrConfig)
	case cfg.Preview == nil:
		return nil, fmt.Errorf("%w: Preview is nil; give the Preview of the Migration", ErrConfig)
	case cfg.Every < 0:
		return nil, fmt.Errorf("%w: Every: %s is below zero", ErrConfig, cfg.Every)
	case cfg.Every == 0:
		cfg.Every = defaultEvery
	}
	t, err := openTable(ctx, cfg.Source)
	if err != nil {
		return nil, wrap("ask the source", err)
	}
	r := &Recorder{cfg: cfg, table: t, written: map[string]written{}}
	if err := r.write(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.stopped.Go(func() { r.run(running) })
	return r, nil
}

func (r *Recorder) run(ctx context.Context) {
	every := time.NewTicker(r.cfg.Every)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		writing, done := context.WithTimeout(ctx, writeWithin)
		err := r.write(writing)
		done()
		if err != nil && ctx.Err() == nil && r.cfg.Failed != nil {
			r.cfg.Failed(err)
		}
	}
}

// Close ends the Recorder, and writes the findings since the last write. It waits until ctx
// ends, at most 30 s. A second Close only writes again.
func (r *Recorder) Close(ctx context.Context) error {
	r.stop()
	r.stopped.Wait()
	ctx, done := context.WithTimeout(ctx, writeWithin)
	defer done()
	return r.write(ctx)
}

// write writes new findings. After an error, the next call writes them.
func (r *Recorder) write(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.writeAll(ctx)
	if missing(err) { // nobody has created the tables yet, or somebody has dropped them
		clear(r.written)
		if err = r.table.create(ctx); err == nil {
			err = r.writeAll(ctx)
		}
	}
	if err != nil {
		return wrap("write "+statementTable, err)
	}
	return nil
}

func (r *Recorder) writeAll(ctx context.Context) error {
	for _, s := range r.cfg.Preview.Statements() {
		before, known := r.written[s.Text]
		now := written{s.Times, s.Change}
		if now == before {
			continue
		}
		id := idOf(s.Text)
		if !known {
			if err := r.table.makeRow(ctx, id, s.Text); err != nil {
				return err
			}
		}
		if err := r.table.add(ctx, id, now.times-before.times, now.outcome, reason(s.Err)); err != nil {
			return err
		}
		r.written[s.Text] = now
	}
	if err := r.table.makeRow(ctx, recorders, ""); err != nil {
		return err
	}
	return r.table.add(ctx, recorders, 0, sharding.Unchanged, "")
}

// reason is why a statement is refused, without its values.
func reason(err error) string {
	if err == nil {
		return ""
	}
	var refusal *sharding.RouteError
	if errors.As(err, &refusal) {
		return refusal.Reason()
	}
	return err.Error()
}
