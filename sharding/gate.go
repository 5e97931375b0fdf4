// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// gate keeps a router on the route rows of a migration. Nothing runs in the
// background: those who need another route read the rows, one at a time.
type gate struct {
	Migration

	present *present // of the router
	source  *sql.DB
	turn    chan struct{}             // with one element when somebody reads
	suspect atomic.Pointer[suspicion] // of the last transaction that failed

	refreshed time.Time // when the last read of a Refresh began; whoever has the turn may use it
}

// suspicion is a route that led to a closed place.
type suspicion struct {
	sent  *Snapshot
	table string
	cause error
}

func newGate(m Migration, dbs DBs, p *present) *gate {
	return &gate{Migration: m.withDefaults(), present: p, source: dbs[m.Source], turn: make(chan struct{}, 1)}
}

// Load reads which places serve the tables of the [Migration], unless that is
// known; without a migration it does nothing. Until it has succeeded once,
// those tables are refused with [ErrRouteUnread].
//
// Adapters call it before they plan a transaction, too: after one that failed
// with [ErrRouteMoved] it waits, as [Router.Moved] does, until there is a place
// for the next attempt. It costs nothing when there is nothing to wait for.
func (r *Router) Load(ctx context.Context) error {
	if r.gate == nil {
		return nil
	}
	now, doubt := r.Snapshot(), r.gate.suspect.Load()
	switch {
	case now.routing == nil:
		return r.gate.inTurn(ctx, func() error { return r.gate.first(ctx) })
	case doubt == nil:
		return nil
	case doubt.sent.routing != now.routing:
		r.gate.suspect.CompareAndSwap(doubt, nil)
		return nil
	}
	_, err := r.gate.await(ctx, doubt)
	r.gate.suspect.CompareAndSwap(doubt, nil)
	if errors.Is(err, ErrRouteClosed) || ctx.Err() != nil {
		return err
	}
	return nil // the table is missing for another reason, which the next statement will tell
}

// Unread reports whether the tables of a [Migration] are refused because Load has not
// succeeded yet.
func (r *Router) Unread() bool { return r.gate != nil && r.Snapshot().routing == nil }

// Moved is for a single statement outside of transactions that was planned with
// the snapshot sent and failed with err. When err says that the place of a table
// of the [Migration] was closed, it waits until the table is served elsewhere and
// returns the snapshot to plan the statement with once more. Any other error is
// returned as it is, at once.
//
// It waits as long as ctx and [Migration].Patience allow; the error is a
// [MovedError] that wraps [ErrRouteClosed] then. Statements in a transaction are
// for [Router.Closed]. A text with several statements is not to be sent again, as
// a part of it may have been done.
func (r *Router) Moved(ctx context.Context, sent *Snapshot, err error) (*Snapshot, error) {
	if table := sent.closedBy(err); table != "" {
		return r.gate.await(ctx, &suspicion{sent, table, err})
	}
	if log := sent.missedLog(err); log != "" && r.gate.hasLog(ctx, log) {
		return r.Snapshot(), nil
	}
	return nil, err
}

// Refresh reads which places serve the tables of the [Migration]; without a migration
// it does nothing. Adapters call it before they refuse a statement about such a table:
// the source, which may serve again since a rollback, accepts what shards do not. It
// reports whether another place serves now than the snapshot says. One caller reads at
// a time, and those who wait for it share what the next one reads.
func (r *Router) Refresh(ctx context.Context, known *Snapshot) (changed bool, err error) {
	if r.gate == nil {
		return false, nil
	}
	came := time.Now()
	err = r.gate.inTurn(ctx, func() error { return r.gate.refresh(ctx, known, came) })
	return err == nil && r.Snapshot().routing != known.routing, err
}

// Closed is for a statement of a transaction that was planned with the snapshot
// sent and failed with err. When err says that the place of a table of the
// [Migration] was closed, it returns a [MovedError] that wraps [ErrRouteMoved],
// and has the next [Router.Load] look where the table is. Other errors, and nil,
// are returned as they are.
func (r *Router) Closed(sent *Snapshot, err error) error {
	table := sent.closedBy(err)
	if table != "" {
		r.gate.suspect.Store(&suspicion{sent, table, err})
	} else {
		table = sent.missedLog(err)
	}
	if table == "" || errors.Is(err, ErrRouteMoved) {
		return err
	}
	return &MovedError{Table: table, Err: fmt.Errorf("%w: %w", ErrRouteMoved, err)}
}

// logPrefix is what the names of all tables of package schema/migrate begin with.
const logPrefix = "shardid_"

// missedLog returns the table that err says a job's trigger missed, "" if it does
// not. MariaDB compares the times of a statement's preparation and of a trigger's
// creation in hundredths of a second: a statement that was prepared just before a
// job began can run its triggers without having opened their log, which is there.
// It fails, and nothing is written.
func (s *Snapshot) missedLog(err error) string {
	if err == nil || s.routing == nil || dialect.FaultOf(err) != dialect.NoTable {
		return ""
	}
	_, rest, found := strings.Cut(fold(err.Error()), logPrefix)
	if !found {
		return ""
	}
	end := strings.IndexFunc(rest, func(c rune) bool { return c >= 0x80 || !isNameByte(byte(c)) })
	if end < 0 {
		end = len(rest)
	}
	return logPrefix + rest[:end]
}

// closedBy returns the table of the migration whose place err says is closed, ""
// if it does not. Both a switch and a rollback close a place by renaming it, and
// databases name the table that they miss.
func (s *Snapshot) closedBy(err error) string {
	if err == nil || s.routing == nil || dialect.FaultOf(err) != dialect.NoTable {
		return ""
	}
	text := fold(err.Error())
	for i := range s.tables {
		t := &s.tables[i]
		if _, moves := s.migration.Tables[fold(t.Name)]; !moves {
			continue
		}
		for _, target := range t.Map.targets {
			if hasName(text, fold(target.Table)) {
				return t.Name
			}
		}
	}
	return ""
}

// hasName reports whether text contains name, and not as a part of a longer one.
func hasName(text, name string) bool {
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return false
		}
		if !endsInName(before) && !beginsInName(after) {
			return true
		}
		text = after
	}
}

func endsInName(s string) bool   { return s != "" && isNameByte(s[len(s)-1]) }
func beginsInName(s string) bool { return s != "" && isNameByte(s[0]) }

func isNameByte(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 0x80
}

// inTurn reads when nobody else does.
func (g *gate) inTurn(ctx context.Context, read func() error) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
		return read()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// first reads the rows, unless somebody has.
func (g *gate) first(ctx context.Context) error {
	if g.present.snapshot().routing != nil {
		return nil
	}
	return g.reread(ctx)
}

// refresh reads the rows, unless somebody began to read them after the caller came, or
// the router knows more than sent.
func (g *gate) refresh(ctx context.Context, sent *Snapshot, came time.Time) error {
	if g.present.snapshot().routing != sent.routing || g.refreshed.After(came) {
		return nil
	}
	began := time.Now()
	err := g.reread(ctx)
	if ctx.Err() == nil {
		g.refreshed = began
	}
	return err
}

// hasLog reports whether the table is there after all, so that the statement may
// be sent again, after the hundredth of a second in which it was prepared.
func (g *gate) hasLog(ctx context.Context, log string) bool {
	var none int
	query := "SELECT 1 FROM " + dialect.MySQL{}.Quote(log) + " WHERE 1 = 0" // SQLite knows these quotes, too
	if err := g.source.QueryRowContext(ctx, query).Scan(&none); !errors.Is(err, sql.ErrNoRows) {
		return false
	}
	rest(ctx, 20*time.Millisecond)
	return ctx.Err() == nil
}

// await returns the first snapshot on other routes than that of doubt.
func (g *gate) await(ctx context.Context, doubt *suspicion) (*Snapshot, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, g.Patience)
	defer cancel()
	cause := doubt.cause
	for {
		if now := g.present.snapshot(); now.routing != doubt.sent.routing {
			return now, nil
		}
		select {
		case <-limited.Done():
			return nil, g.gaveUp(ctx, doubt, began, cause)
		case g.turn <- struct{}{}:
		}
		err := g.look(limited, doubt, time.Since(began))
		<-g.turn
		switch {
		case errors.Is(err, errNoJob):
			return nil, doubt.cause
		case errors.Is(err, ErrRoute):
			return nil, fmt.Errorf("%w, while %w", err, doubt.cause)
		case err != nil && limited.Err() == nil:
			cause = fmt.Errorf("%w; the routes cannot be read: %w", doubt.cause, err)
		}
	}
}

// gaveUp is the error of a wait that is over.
func (g *gate) gaveUp(ctx context.Context, doubt *suspicion, began time.Time, cause error) error {
	err := fmt.Errorf("%w: %w", ErrRouteClosed, cause)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w: %w", ErrRouteClosed, context.Cause(ctx), cause)
	}
	return &MovedError{Table: doubt.table, Waited: time.Since(began), Err: err}
}

// errNoJob: the table is missing, and there never was a migration of it.
var errNoJob = errors.New("no migration")

// look reads the rows once, and when they say nothing new stays for a moment,
// so that all who wait make one query at a time. waited is how long the caller
// waits already.
func (g *gate) look(ctx context.Context, doubt *suspicion, waited time.Duration) error {
	if g.present.snapshot().routing != doubt.sent.routing {
		return nil
	}
	err := g.reread(ctx)
	switch now := g.present.snapshot().routing; {
	case now != doubt.sent.routing:
		return nil
	case err == nil && (*now)[fold(doubt.table)].Job == "":
		return errNoJob
	}
	rest(ctx, min(max(waited/4, 2*time.Millisecond), 100*time.Millisecond))
	return err
}

// rest waits for most of d, not for the same time each.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d - rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reread reads the rows and puts the router on them.
func (g *gate) reread(ctx context.Context) error {
	read, err := readRoutes(ctx, g.source, g.Tables)
	if err != nil {
		return err
	}
	return g.present.replace(func(now *Snapshot) (*Snapshot, error) {
		if next := now.routing.after(read); next != now.routing {
			return now.served(now.migration, next), nil
		}
		return now, nil
	})
}

// after returns what is known when the rows were read, r itself if that is
// nothing new.
func (r *routing) after(read routing) *routing {
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

// follows reports whether row was written after known. A replica that is behind
// says what was true once.
func (row RouteRow) follows(known RouteRow) bool {
	switch row.Job {
	case known.Job:
		return row.Epoch > known.Epoch
	case "": // the job was aborted, which needs a source that serves
		return known.Route.isSource()
	}
	return true
}
