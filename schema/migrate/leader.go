package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// leader is an open job in which this runner is the newest.
type leader struct {
	*openJob

	epoch  int64
	holder *backend.Session // of the lock on the job; only heartbeat uses it
	beats  sync.WaitGroup
	stop   context.CancelFunc                     // ends heartbeat
	held   map[*backend.Database]*backend.Session // connections with the lock of their database, in a switch
}

// lead takes the job over: it gets a higher epoch than any database has seen,
// and tells all of them, so that a runner thought dead can write no more.
func (w *openJob) lead(ctx context.Context) (*leader, error) {
	if err := w.makeOwnTables(ctx); err != nil {
		return nil, err
	}
	holder, err := w.Source.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	l := &leader{openJob: w, holder: holder}
	ok, err := w.Source.Backend.Lead(ctx, holder, w.cfg.Name)
	if err == nil && !ok {
		err = ErrLocked
	}
	if err == nil {
		err = l.elect(ctx)
	}
	if err != nil {
		holder.Close()
		return nil, err
	}
	ctx, l.stop = context.WithCancel(ctx)
	l.beats.Go(func() { l.heartbeat(ctx) })
	w.Observe(StepLeading, nil, 0)
	return l, nil
}

func (l *leader) release() {
	l.stop()
	l.beats.Wait()
	l.holder.Close()
}

// beatEvery is how often a leader lets its server hear of it.
const beatEvery = backend.LeadTerm / 6

// heartbeat keeps the lock for as long as the process runs and reaches the
// server. Losing it is not dangerous: another runner may lead then, and fences
// this one.
func (l *leader) heartbeat(ctx context.Context) {
	for backend.Wait(ctx, beatEvery) == nil {
		if l.holder.Exec(ctx, "SELECT 1") != nil {
			return
		}
	}
}

func (l *leader) elect(ctx context.Context) error {
	if err := l.Source.Do(ctx, func(s *backend.Session) error { return l.readMark(ctx, s) }); err != nil {
		return err
	}
	sides := append([]*backend.Database{l.Source}, l.Shards...)
	for _, side := range sides {
		err := side.Do(ctx, func(s *backend.Session) error {
			seen, err := l.fence(ctx, s)
			l.epoch = max(l.epoch, seen)
			return err
		})
		if err != nil {
			return fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	l.epoch++
	for _, side := range sides { // the source first: two that chose one epoch meet there
		if err := side.Do(ctx, func(s *backend.Session) error { return l.claim(ctx, s) }); err != nil {
			return fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return nil
}

// claim raises the fence. On the source the epoch must be new, or another runner
// that read the same one would have it too.
func (l *leader) claim(ctx context.Context, s *backend.Session) error {
	if s.Database != l.Source {
		return l.raise(ctx, s, l.epoch)
	}
	return s.Tx(ctx, func() error {
		result, err := s.ExecContext(ctx, "UPDATE "+s.Database.Fence+" SET epoch = ? WHERE job = ? AND epoch < ?", l.epoch, l.cfg.Name, l.epoch)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return ErrFenced
		}
		return nil
	})
}

// onSource runs f in a transaction of the source in which this runner leads.
func (l *leader) onSource(ctx context.Context, f func(*backend.Session) error) error {
	return l.on(ctx, l.Source, f)
}

// on runs f in a transaction in which this runner leads, again if need be.
func (l *leader) on(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
	return l.from(side).Do(ctx, func(s *backend.Session) error {
		return s.Tx(ctx, func() error {
			if err := l.checkEpoch(ctx, s, l.epoch); err != nil {
				return err
			}
			return f(s)
		})
	})
}

// begin installs what is missing and returns where the job stands.
func (l *leader) begin(ctx context.Context) (proto.Phase, error) {
	phase, err := l.readPhase(ctx)
	if err != nil || phase != "" {
		return phase, err
	}
	if found := l.Edges(); len(found) > 0 {
		return "", fmt.Errorf("%w: %s", ErrNotReady, strings.Join(found, "; "))
	}
	err = l.Source.Do(ctx, func(s *backend.Session) error {
		if err := checkWriters(ctx, s); err != nil {
			return err
		}
		if err := checkOwner(ctx, s, l.Name, l.Tables.Names()); err != nil { // before anything is made; register asks again
			return err
		}
		for _, t := range l.Tables { // a user who may not read it must not be left with triggers
			if _, err := s.Database.Identity(ctx, s, t.Name); err != nil {
				return err
			}
		}
		return l.Tables.CheckIDs(ctx, s)
	})
	if err != nil {
		return "", err
	}
	if err := l.checkBlocked(ctx); err != nil {
		return "", err
	}
	if err := l.install(ctx); err != nil {
		return "", errors.Join(err, l.disown(ctx))
	}
	return proto.Copying, nil
}

// checkBlocked holds a job that has not begun to what Inspect finds.
func (l *leader) checkBlocked(ctx context.Context) error {
	found, err := (&Job{l.cfg}).Inspect(ctx)
	if err != nil || !Blocked(found) {
		return err
	}
	return &BlockedError{slices.DeleteFunc(found, func(f Finding) bool { return f.Severity != Block })}
}

// install makes the shards, the triggers and the rows of the job.
func (l *leader) install(ctx context.Context) error {
	if err := l.own(ctx); err != nil {
		return err
	}
	if err := l.makeTargets(ctx); err != nil {
		return err
	}
	shards, err := l.targetIdentities(ctx)
	if err != nil {
		return err
	}
	if err := l.makeCapture(ctx); err != nil {
		return err
	}
	err = l.onSource(ctx, func(s *backend.Session) error {
		if err := l.register(ctx, s); err != nil {
			return err
		}
		return l.noteTargets(ctx, s, shards)
	})
	if errors.Is(err, errOwned) { // another job was faster
		err = errors.Join(err, l.dropTraces(ctx))
	}
	return err
}

func (l *leader) readPhase(ctx context.Context) (phase proto.Phase, err error) {
	err = l.Source.Do(ctx, func(s *backend.Session) error {
		phase, err = l.phase(ctx, s)
		return err
	})
	return phase, err
}

// register makes the rows of a job whose triggers are in place.
func (l *leader) register(ctx context.Context, s *backend.Session) error {
	if err := l.lockJobs(ctx, s); err != nil {
		return err
	}
	if err := checkOwner(ctx, s, l.Name, l.Tables.Names()); err != nil {
		return err
	}
	for _, t := range l.Tables {
		identity, err := s.Database.Identity(ctx, s, t.Name)
		if err != nil {
			return err
		}
		if err := s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ? AND tbl = ?", l.cfg.Name, t.Number); err != nil {
			return err
		}
		if err := s.Exec(ctx, "INSERT INTO "+backend.SpanTable+" (job, tbl, name, identity, setup) VALUES (?, ?, ?, ?, ?)", l.cfg.Name, t.Number, t.Conf.Name, identity, t.SetupDigest()); err != nil {
			return err
		}
	}
	route, err := l.firstRoute(ctx, s)
	if err != nil {
		return err
	}
	if err := l.setRoute(ctx, s, route); err != nil {
		return err
	}
	return s.Exec(ctx, "INSERT INTO "+backend.JobTable+" (job, phase, servers) VALUES (?, ?, ?)", l.cfg.Name, string(proto.Copying), l.servers())
}

// firstRoute is what the rows of a new job say. After a job that was rolled back
// and aborted, generators go on making the keys.
func (l *leader) firstRoute(ctx context.Context, s *backend.Session) (sharding.Route, error) {
	for _, t := range l.Tables {
		row, err := sharding.ReadRoute(ctx, s, t.Conf.Name)
		if err != nil {
			return "", err
		}
		if row.Route == sharding.Returned {
			return row.Route, nil
		}
	}
	return sharding.OnSource, nil
}
