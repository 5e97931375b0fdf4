package migrate

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

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
func (j *Job) checkEpoch(ctx context.Context, s *session, epoch int64) error {
	query := "SELECT epoch FROM " + s.side.fence + " WHERE job = ?"
	if !s.locked {
		query += s.side.lockRead()
	}
	fence, err := s.number(ctx, query, j.cfg.Name)
	if err != nil {
		return err
	}
	return s.side.led(epoch, fence)
}

// led fails unless the runner of the epoch leads by the fence of this database.
func (s *side) led(epoch, fence int64) error {
	switch {
	case proto.Leads(epoch, fence):
		return nil
	case fence < epoch: // it knew of this runner before
		return fmt.Errorf("%w: database %s is as it was before this runner began: it was restored", ErrChanged, s.name)
	}
	return ErrFenced
}

// fence reads the epoch of a database, 0 when it has none. A job of the same name
// on another source has its own logs and triggers under the same names.
func (w *world) fence(ctx context.Context, s *session) (epoch int64, err error) {
	var mark string
	err = s.QueryRowContext(ctx, "SELECT epoch, owner FROM "+s.side.fence+" WHERE job = ?"+s.side.lockRead(), w.cfg.Name).Scan(&epoch, &mark)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil && mark != w.mark {
		err = fmt.Errorf("%w: another source has a job %s with shards in this database: give this one another name and tables of its own, "+
			"or, when the other is gone for good, DELETE FROM %s WHERE job = '%s' here", ErrNotReady, w.cfg.Name, s.side.fence, w.cfg.Name)
	}
	return epoch, err
}

// raise makes the epoch that of a database, unless a newer one is there.
func (w *world) raise(ctx context.Context, s *session, epoch int64) error {
	return s.tx(ctx, func() error {
		if err := s.ensure(ctx, s.side.fence, "job, epoch, owner", w.cfg.Name, 0, w.mark); err != nil {
			return err
		}
		if _, err := w.fence(ctx, s); err != nil {
			return err
		}
		if err := s.exec(ctx, "UPDATE "+s.side.fence+" SET epoch = ? WHERE job = ? AND epoch < ?", epoch, w.cfg.Name, epoch); err != nil {
			return err
		}
		return w.checkEpoch(ctx, s, epoch)
	})
}

// readMark reads the job's mark, and makes one when the job is first led.
func (w *world) readMark(ctx context.Context, s *session) error {
	return s.tx(ctx, func() error {
		if err := s.ensure(ctx, s.side.fence, "job, epoch, owner", w.cfg.Name, 0, rand.Text()); err != nil {
			return err
		}
		return s.QueryRowContext(ctx, "SELECT owner FROM "+s.side.fence+" WHERE job = ?", w.cfg.Name).Scan(&w.mark)
	})
}

// ensure inserts a row unless there is one with the first of the values, which is
// the key.
func (c *session) ensure(ctx context.Context, table, columns string, values ...any) error {
	key, _, _ := strings.Cut(columns, ",")
	n, err := c.number(ctx, "SELECT COUNT(*) FROM "+table+" WHERE "+key+" = ?", values[0])
	if err != nil || n > 0 {
		return err
	}
	err = c.exec(ctx, "INSERT INTO "+table+" ("+columns+") VALUES (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	if c.side.duplicate(err) {
		return nil // another runner was faster
	}
	return err
}

// phase returns "" for a job that was never begun.
func (w *world) phase(ctx context.Context, s *session) (proto.Phase, error) {
	there, err := s.side.exists(ctx, s, jobTable)
	if err != nil || !there {
		return "", err
	}
	var phase string
	err = s.QueryRowContext(ctx, "SELECT phase FROM "+jobTable+" WHERE job = ?", w.cfg.Name).Scan(&phase)
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
func (w *world) enter(ctx context.Context, s *session, from, to proto.Phase) error {
	if err := proto.Check(from, to); err != nil {
		return fmt.Errorf("%w: %w", ErrPhase, err)
	}
	result, err := s.ExecContext(ctx, "UPDATE "+jobTable+" SET phase = ? WHERE job = ? AND phase = ?", string(to), w.cfg.Name, string(from))
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
func (w *world) spans(ctx context.Context, s *session, lock bool) ([]span, error) {
	all := make([]span, len(w.tables))
	query := "SELECT tbl, low, hig, identity FROM " + spanTable + " WHERE job = ?"
	if lock && !s.locked {
		query += s.side.lockRead()
	}
	found := 0
	err := s.each(ctx, func(rows *sql.Rows) error {
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
func (l *lead) setRoute(ctx context.Context, s *session, route sharding.Route) error {
	for _, t := range l.tables {
		if err := s.exec(ctx, "DELETE FROM "+routeTable+" WHERE tbl = ?", t.conf.Name); err != nil {
			return err
		}
		if err := s.exec(ctx, "INSERT INTO "+routeTable+" (tbl, job, epoch, route) VALUES (?, ?, ?, ?)", t.conf.Name, l.cfg.Name, l.epoch, string(route)); err != nil {
			return err
		}
	}
	return nil
}
