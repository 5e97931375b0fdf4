// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// Leader is the leadership of a job: this runner is the newest one. Release it.
type Leader struct {
	*Pulse

	job    *openjob.Job
	state  *State
	term   *term
	holder *backend.Session // holds the lock on the job; only heartbeat uses it
	beats  sync.WaitGroup
	stop   context.CancelFunc                     // ends heartbeat
	held   map[*backend.Database]*backend.Session // connections with the lock of their database, in a switch
}

// Take takes the leadership of the job: it gets a higher epoch than any database has
// stored, and stores it in all of them, so that older runners can no longer write. cause
// returns why the leader is throttled at the moment, "" when it is not; nil never returns a
// cause.
func Take(ctx context.Context, of *State, cause func() string) (*Leader, error) {
	sides := append([]*backend.Database{of.Source}, of.Shards...)
	for _, side := range sides {
		if err := side.CheckPool(); err != nil {
			return nil, err
		}
	}
	if err := makeTables(ctx, of); err != nil {
		return nil, err
	}
	holder, err := of.Source.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	l := &Leader{job: of.Job, state: of, holder: holder}
	ok, err := of.Source.Backend.Lead(ctx, holder, of.Name)
	if err == nil && !ok {
		err = ErrLocked
	}
	if err == nil {
		l.term, err = elect(ctx, of.Job)
	}
	if err != nil {
		holder.Close()
		return nil, err
	}
	for _, side := range sides {
		side.Admit(ctx, l.CheckEpoch) // a runner that was stopped may have lost its connections and the leadership
	}
	ctx, l.stop = context.WithCancel(ctx)
	l.Pulse = newPulse(of.Job, l.term, cause)
	l.beats.Go(func() { l.heartbeat(ctx) })
	l.speak(ctx, false)
	l.beats.Go(func() { l.speaks(ctx) })
	of.Observe(openjob.StepLeading, nil, 0)
	return l, nil
}

// Release releases the lock on the job, and stores that this runner has ended.
func (l *Leader) Release() {
	l.stop()
	l.beats.Wait()
	l.holder.Close()
	l.end()
}

// Epoch is the epoch of this runner.
func (l *Leader) Epoch() int64 { return l.term.epoch }

// CheckEpoch fails unless this runner still leads. In a transaction, the answer stays true
// until the end.
func (l *Leader) CheckEpoch(ctx context.Context, s *backend.Session) error {
	return l.term.check(ctx, s)
}

// Hold routes all statements through connections that hold the lock of their database,
// while a switch keeps the locks; nil ends this.
func (l *Leader) Hold(held map[*backend.Database]*backend.Session) { l.held = held }

// beatEvery is the interval of the heartbeat.
const beatEvery = backend.LeadTerm / 6

// heartbeat keeps the lock while the process runs and reaches the server. Losing the lock
// is safe: another runner may then lead, and fences this one.
func (l *Leader) heartbeat(ctx context.Context) {
	for backend.Wait(ctx, beatEvery) == nil {
		if l.holder.Exec(ctx, "SELECT 1") != nil {
			return
		}
	}
}

// OnSource runs f in a transaction of the source that checks that this runner leads.
func (l *Leader) OnSource(ctx context.Context, f func(*backend.Session) error) error {
	return l.On(ctx, l.job.Source, f)
}

// On runs f in a transaction that checks that this runner leads. It repeats f after
// temporary errors.
func (l *Leader) On(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
	return l.From(side).Do(ctx, func(s *backend.Session) error {
		return s.Tx(ctx, func() error {
			if err := l.CheckEpoch(ctx, s); err != nil {
				return err
			}
			return f(s)
		})
	})
}

// Define runs f, which changes definitions on connections of a database, and keeps other runners
// from beginning to lead until it has ended. It repeats f after temporary errors.
func (l *Leader) Define(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
	return side.Guarded(ctx, func(s *backend.Session) error { return l.CheckEpoch(ctx, s) }, f)
}

// Register inserts the rows of a job whose triggers are in place.
func (l *Leader) Register(ctx context.Context, s *backend.Session) error {
	if err := lockJobs(ctx, s); err != nil {
		return err
	}
	if err := CheckOwner(ctx, s, l.job.Name, l.job.Tables.Names()); err != nil {
		return err
	}
	for _, t := range l.job.Tables {
		identity, err := s.Database.Identity(ctx, s, t.Name)
		if err != nil {
			return err
		}
		if err := s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ? AND tbl = ?", l.job.Name, t.Number); err != nil {
			return err
		}
		if err := s.Exec(ctx, "INSERT INTO "+backend.SpanTable+" (job, tbl, name, identity, setup) VALUES (?, ?, ?, ?, ?)", l.job.Name, t.Number, t.Conf.Name, identity, t.SetupDigest()); err != nil {
			return err
		}
	}
	route, err := firstRoute(ctx, s, l.job)
	if err != nil {
		return err
	}
	if err := l.SetRoute(ctx, s, route); err != nil {
		return err
	}
	return s.Exec(ctx, "INSERT INTO "+backend.JobTable+" (job, phase, servers) VALUES (?, ?, ?)", l.job.Name, string(proto.Copying), l.state.servers())
}

// firstRoute is the route of a new job. After a job that was rolled back and aborted,
// generators continue to make the keys.
func firstRoute(ctx context.Context, s *backend.Session, j *openjob.Job) (sharding.Route, error) {
	for _, t := range j.Tables {
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

// From returns the database, or the connection that holds its lock.
func (l *Leader) From(side *backend.Database) idmap.Doer {
	if s := l.held[side]; s != nil {
		return heldSession{s}
	}
	return side
}

// heldSession is a connection that holds the lock of its database.
type heldSession struct{ s *backend.Session }

func (h heldSession) Do(_ context.Context, f func(*backend.Session) error) error { return f(h.s) }

// IDWriter extends the map table.
func (l *Leader) IDWriter() idmap.Writer {
	return idmap.Writer{Table: l.job.MapTable(), Source: l.job.Source, From: l.From(l.job.Source), OnSource: l.OnSource, Persist: l.persistHeld}
}

// persistHeld commits what was written under the lock of a switch: the switch may be given
// up, while rows with ids of the map table stay on the shards.
func (l *Leader) persistHeld(ctx context.Context) error {
	held := l.held[l.job.Source]
	if held == nil {
		return nil
	}
	if err := l.job.Source.Persist(ctx, held); err != nil {
		return err
	}
	return l.CheckEpoch(ctx, held)
}

// Enter changes the phase. The caller must have checked the epoch in the same transaction,
// or hold the lock.
func (l *Leader) Enter(ctx context.Context, s *backend.Session, from, to proto.Phase) error {
	if err := proto.Check(from, to); err != nil {
		return fmt.Errorf("%w: %w", ErrPhase, err)
	}
	result, err := s.ExecContext(ctx, "UPDATE "+backend.JobTable+" SET phase = ? WHERE job = ? AND phase = ?", string(to), l.job.Name, string(from))
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: the job is not %s any more", ErrPhase, from)
	}
	return err
}

// SetRoute stores the route, by which the application finds the tables.
func (l *Leader) SetRoute(ctx context.Context, s *backend.Session, route sharding.Route) error {
	for _, t := range l.job.Tables {
		if err := s.Exec(ctx, "DELETE FROM "+backend.RouteTable+" WHERE tbl = ?", t.Conf.Name); err != nil {
			return err
		}
		if err := s.Exec(ctx, "INSERT INTO "+backend.RouteTable+" (tbl, job, epoch, route) VALUES (?, ?, ?, ?)", t.Conf.Name, l.job.Name, l.term.epoch, string(route)); err != nil {
			return err
		}
	}
	return nil
}

// Identify stores the present identities of the tables.
func (l *Leader) Identify(ctx context.Context, s *backend.Session) error {
	for _, t := range l.job.Tables {
		identity, err := s.Database.Identity(ctx, s, t.Name)
		if err != nil {
			return err
		}
		if err := s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET identity = ? WHERE job = ? AND tbl = ?", identity, l.job.Name, t.Number); err != nil {
			return err
		}
	}
	return nil
}

// Acknowledge stores the present identities of the tables and servers, after every row was
// verified.
func (l *Leader) Acknowledge(ctx context.Context, s *backend.Session, is Identities) error {
	if err := l.Identify(ctx, s); err != nil {
		return err
	}
	if err := l.NoteTargets(ctx, s, is); err != nil {
		return err
	}
	return s.Exec(ctx, "UPDATE "+backend.JobTable+" SET servers = ? WHERE job = ?", l.state.servers(), l.job.Name)
}
