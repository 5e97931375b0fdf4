package migrate

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// span is how far the copy of a table is.
type span struct {
	low, hig proto.Bound
	identity string
}

// checkEpoch fails unless the runner of this epoch still leads. In a
// transaction the answer holds until its end.
func (w *openJob) checkEpoch(ctx context.Context, s *backend.Session, epoch int64) error {
	query := "SELECT epoch FROM " + s.Database.Fence + " WHERE job = ?"
	if !s.Locked {
		query += s.Database.LockRead()
	}
	fence, err := s.Number(ctx, query, w.cfg.Name)
	if err != nil {
		return err
	}
	return led(s.Database, epoch, fence)
}

// led fails unless the runner of the epoch leads by the fence of this database.
func led(s *backend.Database, epoch, fence int64) error {
	switch {
	case proto.Leads(epoch, fence):
		return nil
	case fence < epoch: // it knew of this runner before
		return fmt.Errorf("%w: database %s is as it was before this runner began: it was restored", ErrChanged, s.Label)
	}
	return ErrFenced
}

// fence reads the epoch of a database, 0 when it has none. A job of the same name
// on another source has its own logs and triggers under the same names.
func (w *openJob) fence(ctx context.Context, s *backend.Session) (epoch int64, err error) {
	var mark string
	err = s.QueryRowContext(ctx, "SELECT epoch, owner FROM "+s.Database.Fence+" WHERE job = ?"+s.Database.LockRead(), w.cfg.Name).Scan(&epoch, &mark)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil && mark != w.mark {
		err = fmt.Errorf("%w: another source has a job %s with shards in this database: give this one another name and tables of its own, "+
			"or, when the other is gone for good, DELETE FROM %s WHERE job = '%s' here", ErrNotReady, w.cfg.Name, s.Database.Fence, w.cfg.Name)
	}
	return epoch, err
}

// raise makes the epoch that of a database, unless a newer one is there.
func (w *openJob) raise(ctx context.Context, s *backend.Session, epoch int64) error {
	return s.Tx(ctx, func() error {
		if err := s.Ensure(ctx, s.Database.Fence, "job, epoch, owner", w.cfg.Name, 0, w.mark); err != nil {
			return err
		}
		if _, err := w.fence(ctx, s); err != nil {
			return err
		}
		if err := s.Exec(ctx, "UPDATE "+s.Database.Fence+" SET epoch = ? WHERE job = ? AND epoch < ?", epoch, w.cfg.Name, epoch); err != nil {
			return err
		}
		return w.checkEpoch(ctx, s, epoch)
	})
}

// readMark reads the job's mark, and makes one when the job is first led.
func (w *openJob) readMark(ctx context.Context, s *backend.Session) error {
	return s.Tx(ctx, func() error {
		if err := s.Ensure(ctx, s.Database.Fence, "job, epoch, owner", w.cfg.Name, 0, rand.Text()); err != nil {
			return err
		}
		return s.QueryRowContext(ctx, "SELECT owner FROM "+s.Database.Fence+" WHERE job = ?", w.cfg.Name).Scan(&w.mark)
	})
}

// phase returns "" for a job that was never begun.
func (w *openJob) phase(ctx context.Context, s *backend.Session) (proto.Phase, error) {
	there, err := s.Database.Exists(ctx, s, backend.JobTable)
	if err != nil || !there {
		return "", err
	}
	var phase string
	err = s.QueryRowContext(ctx, "SELECT phase FROM "+backend.JobTable+" WHERE job = ?", w.cfg.Name).Scan(&phase)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if p := proto.Phase(phase); p.Known() {
		return p, nil
	}
	return "", fmt.Errorf("%w: the job is %q, which this version does not know", ErrPhase, phase)
}

// enter changes the phase; the caller has checked the epoch in the same
// transaction, or holds the lock.
func (w *openJob) enter(ctx context.Context, s *backend.Session, from, to proto.Phase) error {
	if err := proto.Check(from, to); err != nil {
		return fmt.Errorf("%w: %w", ErrPhase, err)
	}
	result, err := s.ExecContext(ctx, "UPDATE "+backend.JobTable+" SET phase = ? WHERE job = ? AND phase = ?", string(to), w.cfg.Name, string(from))
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: the job is not %s any more", ErrPhase, from)
	}
	return err
}

// spans returns how far each table is, in the order of the job.
func (w *openJob) spans(ctx context.Context, s *backend.Session, lock bool) ([]span, error) {
	all := make([]span, len(w.Tables))
	query := "SELECT tbl, low, hig, identity FROM " + backend.SpanTable + " WHERE job = ?"
	if lock && !s.Locked {
		query += s.Database.LockRead()
	}
	found := 0
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var tbl int
		var low, hig sql.NullInt64
		var identity string
		if err := rows.Scan(&tbl, &low, &hig, &identity); err != nil {
			return err
		}
		if tbl >= len(all) {
			return fmt.Errorf("%w: the job was begun with more than %d tables", ErrChanged, len(all))
		}
		found++
		all[tbl] = span{boundOf(low), boundOf(hig), identity}
		return nil
	}, query, w.cfg.Name)
	if err == nil && found != len(all) {
		err = fmt.Errorf("%w: the job was begun with %d tables, not %d", ErrChanged, found, len(all))
	}
	return all, err
}

func boundOf(v sql.NullInt64) proto.Bound { return proto.Bound{Set: v.Valid, ID: v.Int64} }

func boundValue(b proto.Bound) any {
	if !b.Set {
		return nil
	}
	return b.ID
}

// setRoute says where the application finds the tables.
func (l *leader) setRoute(ctx context.Context, s *backend.Session, route sharding.Route) error {
	for _, t := range l.Tables {
		if err := s.Exec(ctx, "DELETE FROM "+backend.RouteTable+" WHERE tbl = ?", t.Conf.Name); err != nil {
			return err
		}
		if err := s.Exec(ctx, "INSERT INTO "+backend.RouteTable+" (tbl, job, epoch, route) VALUES (?, ?, ?, ?)", t.Conf.Name, l.cfg.Name, l.epoch, string(route)); err != nil {
			return err
		}
	}
	return nil
}
