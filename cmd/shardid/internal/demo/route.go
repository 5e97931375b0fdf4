package demo

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// route is where the tables are served, as the writers know. It is safe for
// concurrent use.
type route struct {
	live  *sql.DB
	table string

	mu  sync.Mutex
	now sharding.Route
}

func newRoute(live *sql.DB, table string) *route {
	return &route{live: live, table: table, now: sharding.OnSource}
}

func (r *route) current() sharding.Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// follow is called when a statement sent to a place failed. It returns nil when
// it may be sent again: the place was closed, or the database had no time. What
// has failed has changed nothing, as it was one statement or one transaction.
func (r *route) follow(ctx context.Context, cause error) error {
	switch {
	case dialect.Contended(cause):
		return pause(ctx)
	case dialect.FaultOf(cause) != dialect.NoTable:
		return cause
	}
	row, err := sharding.ReadRoute(ctx, r.live, r.table)
	if err != nil {
		return err
	}
	r.mu.Lock()
	moved := r.now != row.Route
	r.now = row.Route
	r.mu.Unlock()
	if moved {
		return nil
	}
	return pause(ctx)
}

// rest is how long a writer waits between two things it does, as an application
// does that waits for its users, and before it looks for a table again.
const rest = time.Millisecond

func pause(ctx context.Context) error {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
