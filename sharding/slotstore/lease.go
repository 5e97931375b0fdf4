// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// renewals is the number of renewals of a lease within its term.
	renewals = 3

	// clockTick is the resolution of the coarsest database clock, SQLite's. A lease is stored with
	// this much more time, because the clock has truncated the time of its beginning by up to that.
	clockTick = time.Millisecond
)

// Follower keeps a router on the map of a store. [Store.Follow] creates it; Close ends it.
type Follower struct {
	store  *Store
	holder string
	valid  atomic.Pointer[end]

	routed  int64 // the router's version; used only by the goroutine that renews
	refused bool  // the router has refused the version after it; used only by the same goroutine

	stop context.CancelFunc
	done chan struct{}
	once sync.Once

	mu  sync.Mutex
	err error // of the last renewal; guarded by mu
}

// end is when a lease ends, by both clocks of the process. The monotonic clock stands still while
// a machine is suspended, and the other one may be set back.
type end struct{ monotonic, wall time.Time }

func endAt(t time.Time) *end { return &end{t, t.Round(0)} }

// isAfter reports whether neither clock has reached the end.
func (e *end) isAfter(now time.Time) bool {
	return now.Before(e.monotonic) && now.Round(0).Before(e.wall)
}

// Follow takes a lease on the map, puts the map into the router, and keeps both up to date in the
// background until Close. The context limits only the call.
//
// While leases cannot be renewed, the router keeps its map until the end of the term, and then
// refuses the map's tables with [sharding.ErrStaleMap]. The same happens if the router refuses a
// version, because its maps were swapped by others: the lease is then not renewed, so that moves
// wait for this process no longer than for a process that has died. [Follower.Err] returns the
// reason.
func (s *Store) Follow(ctx context.Context) (*Follower, error) {
	f := &Follower{store: s, holder: holder(), done: make(chan struct{})}
	f.valid.Store(&end{}) // in the past
	newest := s.fences.newest(ctx)
	v, err := s.Load(ctx)
	if err == nil {
		err = complete(v, newest)
	}
	if err == nil {
		err = f.renew(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("slotstore: Follow: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	go f.run(background)
	return f, nil
}

// holder returns a unique name that an operator can attribute to a process.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.90s/%d/%s", host, os.Getpid(), rand.Text()[:12])
}

func (f *Follower) run(ctx context.Context) {
	defer close(f.done)
	pause := time.NewTicker(f.store.term / renewals)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
			once, cancel := context.WithTimeout(ctx, f.store.term)
			f.note(f.renew(once))
			cancel()
		}
	}
}

func (f *Follower) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Err returns why the last renewal failed, nil if it succeeded.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Holder returns the follower's name in shard_lease.
func (f *Follower) Holder() string { return f.holder }

// renew writes the lease and puts a new version into the router. It writes the new version into the
// lease one renewal later, so that statements that were routed by the old version have ended by
// then.
func (f *Follower) renew(ctx context.Context) error {
	if f.refused {
		if err := f.catchUp(ctx); err != nil {
			return err
		}
	}
	s, sent := f.store, time.Now()
	var v View
	err := s.home.do(ctx, func(t tx) (err error) {
		if v, err = s.home.view(ctx, t); err != nil {
			return err
		}
		inUse := f.routed
		if inUse == 0 { // no statement was routed yet
			inUse = v.Version
		}
		return t.exec(ctx, `INSERT INTO "shard_lease" ("name", "holder", "version", "expires_us") VALUES (?, ?, ?, `+now(t.server)+` + ?)`+
			upsert(t.server, `"name", "holder"`, "version", "expires_us"), s.layout.name, f.holder, inUse, (s.term + clockTick).Microseconds())
	})
	if err == nil && v.Version != f.routed {
		err = f.route(v)
	}
	if err != nil {
		return err
	}
	// The term counts from before the database stored it, so that it ends here first.
	f.valid.Store(endAt(sent.Add(s.term)))
	return nil
}

// catchUp puts a version into a router that has refused one before. It holds no lease meanwhile,
// because a process that routes nothing must not make others wait.
func (f *Follower) catchUp(ctx context.Context) error {
	v, err := f.store.Load(ctx)
	if err != nil || v.Version == f.routed {
		return err
	}
	return f.route(v)
}

func (f *Follower) route(v View) error {
	maps, err := f.store.layout.maps(v, f.isValid)
	if err == nil {
		err = f.store.layout.router.Swap(maps)
	}
	if f.refused = err != nil; !f.refused {
		f.routed = v.Version
	}
	return err
}

func (f *Follower) isValid() bool { return f.valid.Load().isAfter(time.Now()) }

// Close ends the lease: the router refuses the map's tables with [sharding.ErrStaleMap] until it
// follows again. Close waits until the goroutine has ended, and may be called twice.
func (f *Follower) Close(ctx context.Context) (err error) {
	f.once.Do(func() {
		f.stop()
		<-f.done
		f.valid.Store(&end{})
		err = f.store.home.do(ctx, func(t tx) error {
			return t.exec(ctx, `DELETE FROM "shard_lease" WHERE "name" = ? AND "holder" = ?`, f.store.layout.name, f.holder)
		})
		if err != nil {
			err = fmt.Errorf("slotstore: Close: %w", err)
		}
	})
	return err
}
