package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
)

// makeOwnTables creates what is missing of this package's tables. The logs of
// the shards are used after the switch.
func (w *openJob) makeOwnTables(ctx context.Context) error {
	var phase proto.Phase
	err := w.source.Do(ctx, func(s *backend.Session) (err error) {
		phase, err = w.phase(ctx, s)
		return err
	})
	if err != nil || phase == proto.Finalized { // which has dropped the logs
		return err
	}
	if err := w.source.Do(ctx, func(s *backend.Session) error { return s.ExecAll(ctx, w.sourceTables()) }); err != nil {
		return fmt.Errorf("create the tables of the job on the source: %w", err)
	}
	for _, side := range w.sides {
		if err := side.Do(ctx, func(s *backend.Session) error { return s.ExecAll(ctx, side.ShardTables(w.backTable())) }); err != nil {
			return fmt.Errorf("create the tables of the job on %s: %w", side.Label, err)
		}
	}
	return nil
}

// sourceTables are the definitions of this package's tables on the source.
func (w *openJob) sourceTables() []string {
	all := w.source.OwnTables(w.logTable())
	if w.hasMap() {
		all = append(all, w.source.MapDefinition(string(w.mapTable())))
	}
	return all
}

// makeTargets creates the shards that are missing, and refuses those that are
// not empty or have other columns.
func (w *openJob) makeTargets(ctx context.Context) error {
	for _, t := range w.tables {
		served, err := w.mayHaveServed(ctx, t)
		if err != nil {
			return err
		}
		for _, to := range t.targets {
			if err := to.side.Do(ctx, func(s *backend.Session) error { return w.prepareTarget(ctx, s, t, to, served) }); err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.present(), to.side.Label, err)
			}
		}
	}
	return nil
}

// mayHaveServed: an earlier job of the table has left its route, so that somebody
// may still write to the shards that it led to.
func (w *openJob) mayHaveServed(ctx context.Context, t *table) (bool, error) {
	rows := int64(0)
	err := w.source.Do(ctx, func(s *backend.Session) error {
		there, err := s.Database.Exists(ctx, s, backend.RouteTable)
		if err != nil || !there {
			return err
		}
		rows, err = s.Number(ctx, "SELECT COUNT(*) FROM "+backend.RouteTable+" WHERE tbl = ?", t.conf.Name)
		return err
	})
	return rows > 0, err
}

// prepareTarget has an empty shard ready. One that may have served is closed, so
// that nobody but the runner writes to it before the switch.
func (w *openJob) prepareTarget(ctx context.Context, s *backend.Session, t *table, to *target, served bool) error {
	if err := to.look(ctx, s); err != nil {
		return err
	}
	open, err := s.Database.Exists(ctx, s, to.name)
	if err != nil {
		return err
	}
	switch {
	case open && served:
		if err = w.checkTarget(ctx, s, t, to); err == nil { // nothing but an empty shard is renamed
			err = s.Exec(ctx, s.Database.Rename(to.name, backend.Sealed(to.name)))
		}
		to.sealed = err == nil
	case !open && !to.sealed:
		to.sealed = served
		err = w.makeTarget(ctx, s, t, to.present())
	}
	if err != nil {
		return err
	}
	return w.checkTarget(ctx, s, t, to)
}

// makeTarget makes a table for rows of the one described.
func (w *openJob) makeTarget(ctx context.Context, s *backend.Session, t *table, name string) error {
	if s.Database.Name() != w.source.Name() {
		return fmt.Errorf("%w: it is a %s, the source a %s; create the table by hand", ErrUnsupported, s.Database.Name(), w.source.Name())
	}
	var statements []string
	err := w.source.Do(ctx, func(from *backend.Session) (err error) {
		statements, err = w.source.TargetDefinition(ctx, from, t.Table, name)
		return err
	})
	if err != nil {
		return err
	}
	return s.ExecAll(ctx, statements)
}

func (w *openJob) checkTarget(ctx context.Context, s *backend.Session, t *table, to *target) error {
	found, err := s.Database.Describe(ctx, s, to.present())
	if err != nil {
		return err
	}
	for _, c := range t.Columns {
		if _, ok := found.Column(c.Name); !ok {
			return fmt.Errorf("%w: it has no column %s; drop this table, and it is made anew, or add the column", ErrNotReady, c.Name)
		}
	}
	if len(found.Columns) != len(t.Columns) || !strings.EqualFold(found.Key, t.Key) {
		return fmt.Errorf("%w: its columns or its key are not those of table %s; drop this table, and it is made anew, or alter it", ErrNotReady, t.Name)
	}
	if len(found.Parents) > 0 {
		return fmt.Errorf("%w: it has foreign keys, which would delete rows when others are rewritten; add them after Finalize", ErrNotReady)
	}
	rows, err := s.List(ctx, "SELECT "+s.Database.Quote(t.Key)+" FROM "+s.Database.Quote(to.present())+" LIMIT 1")
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%w: it is not empty", ErrNotReady)
	}
	return err
}

// makeCapture puts the triggers on the source's tables.
func (w *openJob) makeCapture(ctx context.Context) error {
	return w.source.Do(ctx, func(s *backend.Session) error {
		for _, t := range w.tables {
			err := s.MakeTriggersUnderWriters(ctx, s.Database.Capture(w.capturing(t)))
			if err != nil && s.Database.MayPass(err) {
				w.observe(StepBlocked, t, 0)
			}
			if err != nil {
				return fmt.Errorf("triggers on table %s: %w", t.Name, err)
			}
		}
		return nil
	})
}

// dropCapture drops the triggers that note changes of the source's tables.
func (w *openJob) dropCapture(ctx context.Context, s *backend.Session) error {
	for _, t := range w.tables {
		if err := w.dropCaptureOf(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

// dropCaptureOf goes by the triggers that there are, not by those that the table
// would get now: these depend on its foreign keys.
func (w *openJob) dropCaptureOf(ctx context.Context, s *backend.Session, t *table) error {
	return s.DropTriggersNamed(ctx, w.triggerName("s", t.ord, ""), s.Database.Barrier(w.capturing(t)))
}

func (w *openJob) capturing(t *table) backend.Capture {
	return backend.Capture{
		Below: w.descents(t),
		Table: t.Name, Log: w.logTable(), Number: t.ord, Key: t.Key, Uniques: t.Uniques,
		TriggerName: func(event string) string { return w.triggerName("s", t.ord, event) },
	}
}

// descents are the rows that have to be looked at when one of the table's
// changes: those that the database changes along with it, and those that lie
// where it lies.
func (w *openJob) descents(t *table) []backend.Dependent {
	all := w.below(t, nil)
	for _, d := range w.routedBelow(t) {
		same := func(other backend.Dependent) bool {
			return other.Number == d.Number && slices.EqualFunc(other.Path, d.Path, backend.Link.Is)
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Watch, all[i].Routed = d.Watch, true
		} else {
			all = append(all, d)
		}
	}
	return all
}

// below finds what foreign keys change along with a table.
func (w *openJob) below(t *table, path []backend.Link) []backend.Dependent {
	var all []backend.Dependent
	for _, fk := range t.down {
		child := fk.other
		if !fk.Cascading || child == nil || child == t {
			continue
		}
		refers := make([]string, len(fk.Refers))
		for i, column := range fk.Refers {
			refers[i] = cmp.Or(column, t.Key)
		}
		d := backend.Dependent{Number: child.ord, Key: child.Key, Path: append([]backend.Link{{Child: w.bodyName(child), Columns: fk.Columns, Refers: refers}}, path...)}
		d.Watch = d.Top().Refers
		all = append(all, d)
		if len(d.Path) < len(w.tables) {
			all = append(all, w.below(child, d.Path)...)
		}
	}
	return all
}

// backCapturing is for changes on the shards after the switch.
func (w *openJob) backCapturing(t *table, to int) backend.Capture {
	return backend.Capture{
		Table: t.targets[to].present(), Log: w.backTable(), Number: t.ord, Key: t.Key, Uniques: t.Uniques,
		TriggerName: func(event string) string { return w.triggerName(fmt.Sprintf("b%d_", t.ord), to, event) },
	}
}
