// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// routeReader reads the route rows of a migration for a router. Nothing runs in the background: a caller
// that needs another route reads the rows, one caller at a time.
type routeReader struct {
	Migration

	current *current // of the router
	source  *sql.DB
	mutex   chan struct{}               // a mutex that has one element while a caller reads
	closed  atomic.Pointer[closedRoute] // the closed route of the last transaction that failed

	refreshed time.Time // when the last read of a Refresh began; guarded by mutex
}

// closedRoute is a route to a table that was found closed.
type closedRoute struct {
	sent  *Snapshot
	table string
	cause error
}

func newRouteReader(m Migration, dbs DBs, p *current) *routeReader {
	return &routeReader{Migration: m.withDefaults(), current: p, source: dbs[m.Source], mutex: make(chan struct{}, 1)}
}

// Load reads the route rows of the tables of the [Migration], unless the routes are known. Without
// a migration it does nothing. Until Load has succeeded once, statements on those tables are
// refused with [ErrRouteUnread].
//
// Adapters also call it before they plan a transaction. After a transaction failed with
// [ErrRouteMoved], Load waits, as [Router.Moved] does, until a database serves the table for the
// next attempt. If there is nothing to wait for, Load sends no query.
func (r *Router) Load(ctx context.Context) error {
	if r.routes == nil {
		return nil
	}
	now, closed := r.Snapshot(), r.routes.closed.Load()
	switch {
	case now.routing == nil:
		return r.routes.exclusive(ctx, func() error { return r.routes.first(ctx) })
	case closed == nil:
		return nil
	case closed.sent.routing != now.routing:
		r.routes.closed.CompareAndSwap(closed, nil)
		return nil
	}
	_, err := r.routes.await(ctx, closed)
	r.routes.closed.CompareAndSwap(closed, nil)
	if errors.Is(err, ErrRouteClosed) || ctx.Err() != nil {
		return err
	}
	return nil // the table is missing for another reason; the next statement will return it
}

// Unread reports whether the tables of a [Migration] are refused because Load has not
// succeeded yet.
func (r *Router) Unread() bool { return r.routes != nil && r.Snapshot().routing == nil }

// Moved is for a single statement outside of transactions that was planned with the snapshot sent
// and failed with err. If err says that a table of the [Migration] was closed, Moved waits until
// another database serves the table, and returns the snapshot with which to plan the statement
// again. It returns any other error at once and unchanged.
//
// It waits as long as ctx and [Migration].Patience allow, and then returns a [MovedError] that
// wraps [ErrRouteClosed]. For statements in a transaction use [Router.Closed]. A text with several
// statements must not be sent again, because some of them may have been executed.
func (r *Router) Moved(ctx context.Context, sent *Snapshot, err error) (*Snapshot, error) {
	if table := sent.closedBy(err); table != "" {
		return r.routes.await(ctx, &closedRoute{sent, table, err})
	}
	if log := sent.missedLog(err); log != "" && r.routes.hasLog(ctx, log) {
		return r.Snapshot(), nil
	}
	return nil, err
}

// Refresh reads the route rows of the tables of the [Migration]. Without a migration it does
// nothing. Adapters call it before they refuse a statement on such a table, because after a
// rollback the source may serve the table again, and it accepts statements that shards refuse.
// Refresh reports whether the routes differ from those of the snapshot. One caller reads at a time,
// and the callers that wait meanwhile share the next read.
func (r *Router) Refresh(ctx context.Context, known *Snapshot) (changed bool, err error) {
	if r.routes == nil {
		return false, nil
	}
	came := time.Now()
	err = r.routes.exclusive(ctx, func() error { return r.routes.refresh(ctx, known, came) })
	return err == nil && r.Snapshot().routing != known.routing, err
}

// Closed is for a statement of a transaction that was planned with the snapshot sent and failed
// with err. If err says that a table of the [Migration] was closed, Closed returns a [MovedError]
// that wraps [ErrRouteMoved], and makes the next [Router.Load] read the route. It returns other
// errors, and nil, unchanged.
func (r *Router) Closed(sent *Snapshot, err error) error {
	table := sent.closedBy(err)
	if table != "" {
		r.routes.closed.Store(&closedRoute{sent, table, err})
	} else {
		table = sent.missedLog(err)
	}
	if table == "" || errors.Is(err, ErrRouteMoved) {
		return err
	}
	return &MovedError{Table: table, Err: fmt.Errorf("%w: %w", ErrRouteMoved, err)}
}

// logName matches the name, in lower case, of a table of package schema/migrate.
var logName = regexp.MustCompile(`shardid_[a-z0-9_$]*`)

// missedLog returns the log table that, according to err, a job's trigger did not find, or "".
// MariaDB compares the times of a statement's preparation and of a trigger's creation in hundredths
// of a second. So a statement that was prepared just before a job began can run the job's triggers
// without having opened their log, although it exists. The statement fails, and writes nothing.
func (s *Snapshot) missedLog(err error) string {
	if err == nil || s.routing == nil || dialect.FaultOf(err) != dialect.NoTable {
		return ""
	}
	return logName.FindString(fold(err.Error()))
}

// closedBy returns the table of the migration that, according to err, is closed, or "". A switch
// and a rollback close a table by renaming it, and databases name the table that they do not find.
func (s *Snapshot) closedBy(err error) string {
	if err == nil || s.routing == nil || dialect.FaultOf(err) != dialect.NoTable {
		return ""
	}
	names := strings.FieldsFunc(fold(reported(err).Error()), isOutsideName)
	for i := range s.tables {
		t := &s.tables[i]
		if _, moves := s.migration.Tables[fold(t.Name)]; !moves {
			continue
		}
		for _, target := range t.Map.targets {
			if slices.Contains(names, fold(target.Table)) {
				return t.Name
			}
		}
	}
	return ""
}

// reported returns the innermost error that err wraps, such as that of the driver. Adapters add the names of shards' tables to it.
func reported(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// isOutsideName reports whether a character of a text in lower case is no part of a name.
func isOutsideName(c rune) bool {
	return c != '_' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && c < 0x80
}

// exclusive calls read while no other caller reads.
func (g *routeReader) exclusive(ctx context.Context, read func() error) error {
	select {
	case g.mutex <- struct{}{}:
		defer func() { <-g.mutex }()
		return read()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// first reads the rows, unless they have been read.
func (g *routeReader) first(ctx context.Context) error {
	if g.current.snapshot().routing != nil {
		return nil
	}
	return g.reread(ctx)
}

// refresh reads the rows, unless a read began after the time came, or the router's routes are newer
// than those of sent.
func (g *routeReader) refresh(ctx context.Context, sent *Snapshot, came time.Time) error {
	if g.current.snapshot().routing != sent.routing || g.refreshed.After(came) {
		return nil
	}
	began := time.Now()
	err := g.reread(ctx)
	if ctx.Err() == nil {
		g.refreshed = began
	}
	return err
}

// hasLog reports whether the log table exists, so that the statement may be sent again. It first
// waits until the hundredth of a second of the statement's preparation has passed.
func (g *routeReader) hasLog(ctx context.Context, log string) bool {
	var none int
	query := "SELECT 1 FROM " + dialect.MySQL{}.Quote(log) + " WHERE 1 = 0" // SQLite accepts these quotes, too
	if err := g.source.QueryRowContext(ctx, query).Scan(&none); !errors.Is(err, sql.ErrNoRows) {
		return false
	}
	sleepUpTo(ctx, 20*time.Millisecond)
	return ctx.Err() == nil
}

// await returns the first snapshot whose routes differ from those of closed.
func (g *routeReader) await(ctx context.Context, closed *closedRoute) (*Snapshot, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, g.Patience)
	defer cancel()
	cause := closed.cause
	for {
		if now := g.current.snapshot(); now.routing != closed.sent.routing {
			return now, nil
		}
		select {
		case <-limited.Done():
			return nil, g.timeout(ctx, closed, began, cause)
		case g.mutex <- struct{}{}:
		}
		err := g.poll(limited, closed, time.Since(began))
		<-g.mutex
		switch {
		case errors.Is(err, errNoJob):
			return nil, closed.cause
		case errors.Is(err, ErrRoute):
			return nil, fmt.Errorf("%w; the statement had failed: %w", err, closed.cause)
		case err != nil && limited.Err() == nil:
			cause = fmt.Errorf("%w; the routes cannot be read: %w", closed.cause, err)
		}
	}
}

// timeout returns the error of a wait that has ended without another route.
func (g *routeReader) timeout(ctx context.Context, closed *closedRoute, began time.Time, cause error) error {
	err := fmt.Errorf("%w: %w", ErrRouteClosed, cause)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w: %w", ErrRouteClosed, context.Cause(ctx), cause)
	}
	return &MovedError{Table: closed.table, Waited: time.Since(began), Err: err}
}

// errNoJob: the table is missing, and no migration of it exists.
var errNoJob = errors.New("no migration")

// poll reads the rows once. If they have not changed, it keeps the lock for a moment, so that all
// waiting callers together send one query at a time. waited is how long the caller has waited.
func (g *routeReader) poll(ctx context.Context, closed *closedRoute, waited time.Duration) error {
	if g.current.snapshot().routing != closed.sent.routing {
		return nil
	}
	err := g.reread(ctx)
	switch now := g.current.snapshot().routing; {
	case now != closed.sent.routing:
		return nil
	case err == nil && (*now)[fold(closed.table)].Job == "":
		return errNoJob
	}
	sleepUpTo(ctx, min(max(waited/4, 2*time.Millisecond), 100*time.Millisecond))
	return err
}

// sleepUpTo waits for a random time between d/2 and d.
func sleepUpTo(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d - rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reread reads the rows and applies them to the router.
func (g *routeReader) reread(ctx context.Context) error {
	read, err := readRoutes(ctx, g.source, g.Tables)
	if err != nil {
		return err
	}
	return g.current.replace(func(now *Snapshot) (*Snapshot, error) {
		if next := now.routing.updated(read); next != now.routing {
			return now.served(now.migration, next), nil
		}
		return now, nil
	})
}

// updated returns the routes after a read, or r itself if nothing has changed.
func (r *routing) updated(read routing) *routing {
	if r == nil {
		return &read
	}
	next := maps.Clone(*r)
	for table, row := range read {
		if row.follows((*r)[table]) {
			next[table] = row
		}
	}
	if maps.Equal(next, *r) {
		return r
	}
	return &next
}

// follows reports whether row was written after known. A replica that lags returns old rows.
func (row RouteRow) follows(known RouteRow) bool {
	switch row.Job {
	case known.Job:
		return row.Epoch > known.Epoch
	case "": // the job was aborted, which needs a source that serves
		return known.Route.isSource()
	}
	return true
}
