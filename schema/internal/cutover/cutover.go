// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/preflight"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// Cutover makes the shards serve, or finishes an earlier attempt. The phase must be
// proto.Following. After an error made by TooLong, everything is as before.
func (l *Stage) Cutover(ctx context.Context, maxPause time.Duration) (Result, error) {
	repair, err := l.Repair(ctx)
	if err != nil || repair == proto.Flip {
		return Result{Epoch: l.Epoch()}, err
	}
	unchanged := func(context.Context) error { return nil } // the tables are closed already, so there is nothing to check
	if repair == proto.Nothing {
		unchanged = l.conf.Unchanged
		if err := l.conf.MoveIn(ctx, proto.Following); err != nil {
			return Result{}, err
		}
		if err := l.ready(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := l.makeBackCapture(ctx); err != nil {
		return Result{}, err
	}
	if err := follow.CatchUp(ctx, maxPause, unchanged, l.streams.Forward()); err != nil {
		return Result{}, err
	}
	needs, err := l.rehearseCutover(ctx)
	if err != nil {
		return Result{}, err
	}
	done, err := l.SwitchOver(ctx, maxPause, needs)
	if err == nil {
		return done, l.CloseRetired(ctx)
	}
	repair, again := l.Repair(ctx)
	switch {
	case again != nil:
	case repair == proto.Flip:
		err = nil // the connection was lost after all tables were renamed
	case repair == proto.Nothing:
		err = errors.Join(err, l.DropBackCapture(ctx))
	}
	return done, err
}

// Repair finishes a switch that lacks only the route.
func (l *Stage) Repair(ctx context.Context) (repair proto.Repair, err error) {
	err = l.Source.Do(ctx, func(s *backend.Session) error {
		if err := s.Database.Settle(ctx, s, l.Tables.Names()); err != nil {
			return err
		}
		if repair, err = diagnose(ctx, l.Tables.Names(), s); err == nil && repair == proto.Unclear {
			return unclear(ctx, l.Tables.Names(), s)
		}
		return err
	})
	if err != nil {
		return repair, err
	}
	if repair == proto.Flip {
		if err := l.open(ctx); err != nil {
			return repair, err
		}
		return repair, l.CloseRetired(ctx)
	}
	return repair, nil
}

// unclear names the tables for which diagnose returned proto.Unclear.
func unclear(ctx context.Context, tables []string, s *backend.Session) error {
	var found []string
	for _, name := range tables {
		current, err := s.Database.Exists(ctx, s, name)
		if err != nil {
			return err
		}
		retired, err := s.Database.Exists(ctx, s, backend.Retired(name))
		if err != nil {
			return err
		}
		switch {
		case current && retired:
			found = append(found, fmt.Sprintf("both %s and %s exist", name, backend.Retired(name)))
		case !current && !retired:
			found = append(found, fmt.Sprintf("neither %s nor %s exists", name, backend.Retired(name)))
		}
	}
	return fmt.Errorf("%w: %s; rename back what somebody has renamed, or drop what somebody has created", openjob.ErrUnclear, strings.Join(found, ", "))
}

// ready makes the checks that need no lock.
func (l *Stage) ready(ctx context.Context) error {
	err := l.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error { return t.Targets[i].Look(ctx, s) })
	if err != nil {
		return err
	}
	if err := l.conf.Unchanged(ctx); err != nil {
		return err
	}
	return l.Source.Do(ctx, func(s *backend.Session) error {
		found, err := s.Database.Blockers(ctx, s, l.Tables.Names())
		if err == nil {
			err = l.Tables.MayReturn(ctx, s)
		}
		if err != nil {
			return err
		}
		if found = append(found, l.Edges()...); len(found) > 0 {
			return fmt.Errorf("%w: %s", backend.ErrNotReady, strings.Join(found, "; "))
		}
		return unprepared(ctx, l.Source, s, backend.PreparedPatience)
	})
}

// SwitchOver is the time in which writers wait. needs is how long it takes from the first
// rename on.
func (l *Stage) SwitchOver(ctx context.Context, maxPause, needs time.Duration) (Result, error) {
	p, err := l.newPause(maxPause, needs, slices.ContainsFunc(l.Tables, (*openjob.Table).IsRetired))
	if err != nil {
		return Result{}, err
	}
	c := &cutover{pause: p}
	p.direction = direction{
		sides: []*backend.Database{l.Source}, tables: c.lockedTables, changes: []*follow.Stream{l.streams.Forward()},
		refused: c.refusedBy, check: c.checkUnderLock, close: c.firstRename,
		locking: "waiting for the lock on the tables", draining: "bringing the last changes over", closing: "renaming the tables",
	}
	err = c.hold(ctx)
	if err != nil && c.renaming {
		c.lookAgain(ctx)
	}
	if err == nil || c.renamed > 0 {
		err = c.finish(ctx)
	}
	if unlockErr := c.release(ctx, err == nil); err == nil {
		err = unlockErr
	}
	if err == nil && c.Source.Undoes() {
		err = c.open(ctx)
	}
	return c.result(), err
}

// cutover is the state of a cutover while writers wait.
type cutover struct {
	*pause

	renaming bool // all changes are copied and checked, and the renames have begun
	renamed  int  // number of tables renamed
}

// source returns the connection that holds the lock on the source.
func (c *cutover) source() *backend.Session { return c.locked[c.Source] }

// lockedTables are the source's tables under their present names.
func (c *cutover) lockedTables(*backend.Database) backend.Locking {
	all := backend.Locking{Own: []string{c.LogTable(), backend.JobTable, backend.SpanTable, backend.RouteTable, backend.FenceTable}}
	if c.Tables.HasMap() {
		all.Own = append(all.Own, string(c.MapTable()))
	}
	for _, t := range c.Tables {
		all.Tables = append(all.Tables, t.Name)
	}
	return all
}

func (c *cutover) refusedBy(left []follow.Entry) error {
	e := left[0]
	t := c.Tables[e.Table]
	why := "a unique key of its shard refuses the row: another row of the shard has an equal value there, by the shard's collation"
	if t.Conf.Via != "" {
		why += "; or the row that " + t.Conf.Via + " refers to is missing"
	}
	return t.RowError(e.ID, fmt.Errorf("%w: %s (%d such entries are in %s)", backend.ErrNotReady, why, len(left), c.LogTable()))
}

func (c *cutover) checkUnderLock(ctx context.Context) error {
	if err := c.at("checking the tables"); err != nil {
		return err
	}
	s := c.source()
	spans, err := c.Spans(ctx, s, false)
	if err != nil {
		return err
	}
	for _, sp := range spans {
		if sp.Low != proto.Top {
			return fmt.Errorf("%w: not everything is copied", backend.ErrNotReady)
		}
	}
	if err := c.CheckIdentities(ctx, s); err != nil {
		return err
	}
	if err := preflight.CheckWriters(ctx, s); err != nil {
		return err
	}
	if err := c.checkFilled(ctx); err != nil {
		return err
	}
	if err := c.at("asking Config.Ready"); err != nil {
		return err
	}
	return c.ask(ctx)
}

// checkFilled runs after the last change. If the source has rows and the shards have none,
// somebody emptied the shards.
func (c *cutover) checkFilled(ctx context.Context) error {
	filled := make([]bool, len(c.Tables))
	err := c.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) (err error) {
		if !filled[t.Number] {
			filled[t.Number], err = hasRows(ctx, s, t.Targets[i].Present())
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range c.Tables {
		if filled[t.Number] {
			continue
		}
		there, err := hasRows(ctx, c.source(), t.Name)
		if err == nil && there {
			err = fmt.Errorf("%w: table %s has rows, but its shards have none: somebody emptied them", openjob.ErrChanged, t.Conf.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasRows reports whether the table has a row.
func hasRows(ctx context.Context, c *backend.Session, name string) (bool, error) {
	row, err := c.List(ctx, "SELECT 1 FROM "+c.Database.Quote(name)+" LIMIT 1")
	return len(row) > 0, err
}

// ask calls Config.Ready, which may refuse the cutover.
func (c *cutover) ask(ctx context.Context) error {
	if c.conf.Ready == nil {
		return nil
	}
	highest := make(map[string]int64, len(c.Tables))
	err := c.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error {
		id, err := s.Number(ctx, "SELECT MAX("+s.Database.Quote(t.Key)+") FROM "+s.Database.Quote(t.Targets[i].Present()))
		highest[t.Conf.Name] = max(highest[t.Conf.Name], id)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.conf.Ready(ctx, highest); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrNotReady, err)
	}
	return nil
}

// lookAgain checks how many tables were renamed: an error may have come after a rename,
// unless the end of the lock undoes it.
func (c *cutover) lookAgain(ctx context.Context) {
	if c.Source.Undoes() && c.undo(ctx) {
		return
	}
	c.renamed = 0
	for _, t := range c.Tables {
		if gone, err := c.Source.Exists(ctx, c.source(), backend.Retired(t.Conf.Name)); err == nil && gone {
			t.Name, c.renamed = backend.Retired(t.Conf.Name), c.renamed+1
		}
	}
}

// firstRename is the last point at which the switch can be given up.
func (c *cutover) firstRename(ctx context.Context) error {
	if err := c.source().ForbidKills(ctx); err != nil {
		return err
	}
	return c.rename(ctx)
}

// rename closes the tables for writers on every connection. After an error it is unknown
// whether the table was renamed, so lookAgain decides how to continue.
func (c *cutover) rename(ctx context.Context) error {
	c.renaming, c.renamed = true, 0
	for _, t := range c.Tables {
		if t.IsRetired() {
			c.renamed++
			continue // an earlier attempt renamed it
		}
		err := c.source().Exec(ctx, c.Source.Rename(t.Name, backend.Retired(t.Conf.Name)))
		gone, existsErr := c.Source.Exists(ctx, c.source(), backend.Retired(t.Conf.Name))
		if gone {
			t.Name, c.renamed = backend.Retired(t.Conf.Name), c.renamed+1
		}
		if err = errors.Join(err, existsErr); err != nil {
			return err
		}
	}
	c.Observe(openjob.StepRenamed, nil, 0)
	return nil
}

// finish continues after the first rename. When the time is over, it goes on or back,
// whichever is shorter.
func (c *cutover) finish(ctx context.Context) error {
	if c.spent() > c.max && c.backIsShorter() && c.undo(ctx) {
		return c.tooLong(undone, 0)
	}
	if err := c.rename(ctx); err != nil {
		return err
	}
	if c.spent() > c.max && c.backIsShorter() && c.undo(ctx) {
		return c.tooLong(undone, 0)
	}
	if err := c.closeToKeys(ctx); err != nil {
		return err
	}
	if c.Source.Undoes() {
		return nil // until the renames are committed, the source may serve again, and shards that are open would accept writes
	}
	return c.open(ctx)
}

// closeToKeys makes the tables refuse, from the end of the lock on, changes by foreign
// keys: a rename does not stop those.
func (c *cutover) closeToKeys(ctx context.Context) error {
	if !c.Source.Undoes() {
		return nil
	}
	for _, t := range c.Tables {
		if !c.Tables.CarriedInto(t) {
			continue
		}
		if err := c.source().MakeTriggers(ctx, c.Source.Barrier(c.Capture(t))); err != nil {
			return err
		}
	}
	return nil
}

// open opens the shards, and changes the route for the application and the other runners. The
// source can no longer serve.
func (l *Stage) open(ctx context.Context) error {
	if err := l.unseal(ctx); err != nil {
		return err
	}
	err := l.OnSource(ctx, func(s *backend.Session) error {
		if err := l.SetRoute(ctx, s, sharding.OnShards); err != nil {
			return err
		}
		return l.Enter(ctx, s, proto.Following, proto.Switched)
	})
	if err == nil {
		l.Observe(openjob.StepFlipped, nil, 0)
	}
	return err
}

// backIsShorter compares the numbers of statements of both ways. Where one ROLLBACK undoes
// everything, it is true.
func (c *cutover) backIsShorter() bool {
	if c.Source.Undoes() {
		return true
	}
	on := len(c.Tables) - c.renamed + 1 // one more for the route
	for _, t := range c.Tables {
		if slices.ContainsFunc(t.Targets, func(to *openjob.Target) bool { return to.Sealed }) {
			on++
			break
		}
	}
	return c.renamed < on
}

const undone = "renaming the tables, which was undone"

// undo gives the tables their former names, under the lock. In all trials MariaDB has
// refused this; then the switch goes on.
func (c *cutover) undo(ctx context.Context) bool {
	for _, t := range c.Tables {
		if !t.IsRetired() {
			continue
		}
		if !c.Source.Undoes() {
			if err := c.source().Exec(ctx, c.Source.Rename(t.Name, t.Conf.Name)); err != nil {
				return false
			}
		}
		t.Name = t.Conf.Name
		c.renamed--
	}
	return true
}

// CloseRetired replaces the triggers of the retired tables by ones that refuse writers who
// use the new name.
func (l *Stage) CloseRetired(ctx context.Context) error {
	return l.Define(ctx, l.Source, func(s *backend.Session) error {
		for _, t := range l.Tables {
			t.Name = backend.Retired(t.Conf.Name)
			if there, err := s.Database.Exists(ctx, s, t.Name); err != nil {
				return err
			} else if !there {
				return fmt.Errorf("%w: the shards serve, and the source has no table %s, so somebody has renamed it: rename it back", openjob.ErrUnclear, t.Name)
			}
			if err := l.DropCaptureOf(ctx, s, t); err != nil {
				return err
			}
			if err := s.MakeTriggers(ctx, s.Database.Barrier(l.Capture(t))); err != nil {
				return err
			}
		}
		return nil
	})
}

// makeBackCapture creates triggers on the shards that note changes, before anybody else can
// write there, and the source's own triggers.
func (l *Stage) makeBackCapture(ctx context.Context) error {
	for _, side := range l.Shards {
		// Entries of an earlier attempt are obsolete.
		if err := l.On(ctx, side, func(s *backend.Session) error { return s.Exec(ctx, "DELETE FROM "+s.Database.Quote(l.BackTable())) }); err != nil {
			return err
		}
	}
	return l.Tables.EachTarget(ctx, l.Define, func(s *backend.Session, t *openjob.Table, i int) error {
		return openjob.MakeBackCapture(ctx, s, l.Job, t, i)
	})
}
