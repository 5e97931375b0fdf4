package migrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/proto"
)

// makeOwnTables creates what is missing of this package's tables. The logs of
// the shards are used after the switch.
func (w *world) makeOwnTables(ctx context.Context) error {
	var phase proto.Phase
	err := w.source.do(ctx, func(s *session) (err error) {
		phase, err = w.phase(ctx, s)
		return err
	})
	if err != nil || phase == proto.Finalized { // which has dropped the logs
		return err
	}
	if err := w.source.do(ctx, func(s *session) error { return s.execAll(ctx, w.sourceTables()) }); err != nil {
		return fmt.Errorf("create the tables of the job on the source: %w", err)
	}
	for _, side := range w.sides {
		if err := side.do(ctx, func(s *session) error { return s.execAll(ctx, side.shardTables(w.backTable())) }); err != nil {
			return fmt.Errorf("create the tables of the job on %s: %w", side.name, err)
		}
	}
	return nil
}

// sourceTables are the definitions of this package's tables on the source.
func (w *world) sourceTables() []string {
	all := w.source.ownTables(w.logTable())
	if w.hasMap() {
		all = append(all, w.source.mapDefinition(w.mapTable()))
	}
	return all
}

func (c *session) execAll(ctx context.Context, statements []string) error {
	for _, text := range statements {
		if err := c.exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// makeTargets creates the shards that are missing, and refuses those that are
// not empty or have other columns.
func (w *world) makeTargets(ctx context.Context) error {
	for _, t := range w.tables {
		served, err := w.mayHaveServed(ctx, t)
		if err != nil {
			return err
		}
		for _, to := range t.targets {
			if err := to.side.do(ctx, func(s *session) error { return w.prepareTarget(ctx, s, t, to, served) }); err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.present(), to.side.name, err)
			}
		}
	}
	return nil
}

// mayHaveServed: an earlier job of the table has left its route, so that somebody
// may still write to the shards that it led to.
func (w *world) mayHaveServed(ctx context.Context, t *table) (bool, error) {
	rows := int64(0)
	err := w.source.do(ctx, func(s *session) error {
		there, err := s.side.exists(ctx, s, routeTable)
		if err != nil || !there {
			return err
		}
		rows, err = s.number(ctx, "SELECT COUNT(*) FROM "+routeTable+" WHERE tbl = ?", t.conf.Name)
		return err
	})
	return rows > 0, err
}

// prepareTarget has an empty shard ready. One that may have served is closed, so
// that nobody but the runner writes to it before the switch.
func (w *world) prepareTarget(ctx context.Context, s *session, t *table, to *target, served bool) error {
	if err := to.look(ctx, s); err != nil {
		return err
	}
	open, err := s.side.exists(ctx, s, to.name)
	if err != nil {
		return err
	}
	switch {
	case open && served:
		if err = w.checkTarget(ctx, s, t, to); err == nil { // nothing but an empty shard is renamed
			err = s.exec(ctx, s.side.rename(to.name, sealed(to.name)))
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
func (w *world) makeTarget(ctx context.Context, s *session, t *table, name string) error {
	if s.side.Name() != w.source.Name() {
		return fmt.Errorf("%w: it is a %s, the source a %s; create the table by hand", ErrUnsupported, s.side.Name(), w.source.Name())
	}
	var statements []string
	err := w.source.do(ctx, func(from *session) (err error) {
		statements, err = w.source.targetDefinition(ctx, from, t.shape, name)
		return err
	})
	if err != nil {
		return err
	}
	return s.execAll(ctx, statements)
}

func (w *world) checkTarget(ctx context.Context, s *session, t *table, to *target) error {
	found, err := s.side.describe(ctx, s, to.present())
	if err != nil {
		return err
	}
	for _, c := range t.columns {
		if _, ok := found.column(c.name); !ok {
			return fmt.Errorf("%w: it has no column %s; drop this table, and it is made anew, or add the column", ErrNotReady, c.name)
		}
	}
	if len(found.columns) != len(t.columns) || !strings.EqualFold(found.key, t.key) {
		return fmt.Errorf("%w: its columns or its key are not those of table %s; drop this table, and it is made anew, or alter it", ErrNotReady, t.name)
	}
	if len(found.parents) > 0 {
		return fmt.Errorf("%w: it has foreign keys, which would delete rows when others are rewritten; add them after Finalize", ErrNotReady)
	}
	rows, err := s.list(ctx, "SELECT "+s.side.Quote(t.key)+" FROM "+s.side.Quote(to.present())+" LIMIT 1")
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%w: it is not empty", ErrNotReady)
	}
	return err
}

// makeCapture puts the triggers on the source's tables.
func (w *world) makeCapture(ctx context.Context) error {
	return w.source.do(ctx, func(s *session) error {
		for _, t := range w.tables {
			err := s.makeTriggersUnderWriters(ctx, s.side.capture(w.capturing(t)))
			if err != nil && s.side.mayPass(err) {
				w.observe(StepBlocked, t, 0)
			}
			if err != nil {
				return fmt.Errorf("triggers on table %s: %w", t.name, err)
			}
		}
		return nil
	})
}

// dropCapture drops the triggers that note changes of the source's tables.
func (w *world) dropCapture(ctx context.Context, s *session) error {
	for _, t := range w.tables {
		if err := w.dropCaptureOf(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

// dropCaptureOf goes by the triggers that there are, not by those that the table
// would get now: these depend on its foreign keys.
func (w *world) dropCaptureOf(ctx context.Context, s *session, t *table) error {
	return s.dropTriggersNamed(ctx, w.triggerName("s", t.ord, ""), s.side.barrier(w.capturing(t)))
}

func (w *world) capturing(t *table) capturing {
	return capturing{
		below: w.descents(t),
		table: t.name, log: w.logTable(), tbl: t.ord, key: t.key, uniques: t.uniques,
		name: func(event string) string { return w.triggerName("s", t.ord, event) },
	}
}

// descents are the rows that have to be looked at when one of the table's
// changes: those that the database changes along with it, and those that lie
// where it lies.
func (w *world) descents(t *table) []descent {
	all := w.below(t, nil)
	for _, d := range w.routedBelow(t) {
		same := func(other descent) bool { return other.tbl == d.tbl && slices.EqualFunc(other.path, d.path, link.is) }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].watch, all[i].routed = d.watch, true
		} else {
			all = append(all, d)
		}
	}
	return all
}

// below finds what foreign keys change along with a table.
func (w *world) below(t *table, path []link) []descent {
	var all []descent
	for _, fk := range t.children {
		child := fk.other
		if !fk.cascading || child == nil || child == t {
			continue
		}
		refers := make([]string, len(fk.refers))
		for i, column := range fk.refers {
			refers[i] = cmp.Or(column, t.key)
		}
		d := descent{tbl: child.ord, key: child.key, path: append([]link{{w.bodyName(child), fk.columns, refers}}, path...)}
		d.watch = d.top().refers
		all = append(all, d)
		if len(d.path) < len(w.tables) {
			all = append(all, w.below(child, d.path)...)
		}
	}
	return all
}

// backCapturing is for changes on the shards after the switch.
func (w *world) backCapturing(t *table, to int) capturing {
	return capturing{
		table: t.targets[to].present(), log: w.backTable(), tbl: t.ord, key: t.key, uniques: t.uniques,
		name: func(event string) string { return w.triggerName(fmt.Sprintf("b%d_", t.ord), to, event) },
	}
}

// makeTriggers makes those that are not there as they should be: a run may have
// been killed in the middle of making them, and a new table of the name may have
// none.
func (c *session) makeTriggers(ctx context.Context, all []trigger) error {
	missing, err := c.missingTriggers(ctx, all)
	if err != nil {
		return err
	}
	return c.replaceTriggers(ctx, missing)
}

// makeTriggersUnderWriters is for a table that others write to.
func (c *session) makeTriggersUnderWriters(ctx context.Context, all []trigger) error {
	missing, err := c.missingTriggers(ctx, all)
	if err != nil || len(missing) == 0 {
		return err
	}
	return c.side.aside(ctx, c, missing[0].table, func() error { return c.replaceTriggers(ctx, missing) })
}

func (c *session) missingTriggers(ctx context.Context, all []trigger) ([]trigger, error) {
	var missing []trigger
	for _, t := range all {
		there, err := c.side.hasTrigger(ctx, c, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if !there {
			missing = append(missing, t)
		}
	}
	return missing, nil
}

func (c *session) replaceTriggers(ctx context.Context, all []trigger) error {
	if err := c.dropTriggers(ctx, all); err != nil {
		return err
	}
	for _, t := range all {
		if err := c.exec(ctx, t.create); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// dropTriggersNamed drops the triggers whose names are this and an event, but for
// those that stay. Others may be using their table.
func (c *session) dropTriggersNamed(ctx context.Context, prefix string, stay []trigger) error {
	names, err := c.side.triggers(ctx, c, prefix)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.Contains(name[len(prefix):], "_") || // of a job whose name begins like this
			slices.ContainsFunc(stay, func(t trigger) bool { return strings.EqualFold(t.name, name) })
	})
	if len(names) == 0 {
		return nil
	}
	return c.side.briefly(ctx, c, func() error {
		for _, name := range names {
			if err := c.exec(ctx, "DROP TRIGGER IF EXISTS "+c.side.Quote(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *session) dropTriggers(ctx context.Context, all []trigger) error {
	for _, t := range all {
		if err := c.exec(ctx, "DROP TRIGGER IF EXISTS "+c.side.Quote(t.name)); err != nil {
			return err
		}
	}
	return nil
}
