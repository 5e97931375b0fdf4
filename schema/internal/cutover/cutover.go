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

// Cutover has the shards serve, or finishes what an attempt before has begun. The phase
// is proto.Following. An error that TooLong has made says that everything is as before.
func (l *Stage) Cutover(ctx context.Context, maxPause time.Duration) (Result, error) {
	repair, err := l.Repair(ctx)
	if err != nil || repair == proto.Flip {
		return Result{Epoch: l.Epoch()}, err
	}
	unchanged := func(context.Context) error { return nil } // of tables that are closed already
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
	needs, err := l.cutoverNeeds(ctx)
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
		err = nil // the connection was lost when all was renamed
	case repair == proto.Nothing:
		err = errors.Join(err, l.DropBackCapture(ctx))
	}
	return done, err
}

// Repair finishes a switch of which only the route is missing.
func (l *Stage) Repair(ctx context.Context) (repair proto.Repair, err error) {
	err = l.Source.Do(ctx, func(s *backend.Session) error {
		repair, err = diagnose(ctx, l.Tables.Names(), s)
		return err
	})
	if err != nil {
		return repair, err
	}
	switch repair {
	case proto.Unclear:
		return repair, fmt.Errorf("%w: see which of the tables and their _old ones exist", ErrUnclear)
	case proto.Flip:
		if err := l.unseal(ctx); err != nil {
			return repair, err
		}
		if err := l.OnSource(ctx, func(s *backend.Session) error { return l.flip(ctx, s) }); err != nil {
			return repair, err
		}
		return repair, l.CloseRetired(ctx)
	}
	return repair, nil
}

// ready checks what can be checked before writers are kept waiting.
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
		if err != nil {
			return err
		}
		if found = append(found, l.Edges()...); len(found) > 0 {
			return fmt.Errorf("%w: %s", backend.ErrNotReady, strings.Join(found, "; "))
		}
		return s.Database.Abandoned(ctx, s)
	})
}

// SwitchOver is the pause.
func (l *Stage) SwitchOver(ctx context.Context, maxPause, needs time.Duration) (done Result, err error) {
	s, err := l.Source.NewSession(ctx)
	if err != nil {
		return done, err
	}
	defer s.Close()
	p := &pause{Stage: l, s: s, timing: newTiming(maxPause, needs), needs: needs}
	if p.begun() {
		p.timing = unlimited(maxPause)
	} else if err := l.enough(maxPause, 0, needs); err != nil {
		return done, err
	}
	l.Hold(map[*backend.Database]*backend.Session{l.Source: s})
	defer l.Hold(nil)
	err = s.Database.Watch(ctx, s, p.start, p.rest, func() error { return p.prepare(ctx) })
	if err != nil && p.closing {
		p.lookAgain(ctx)
	}
	switch {
	case err == nil || p.renamed > 0:
		err = p.finish(ctx)
	default:
		err = p.giveUp(ctx, err)
	}
	if unlockErr := p.unlock(ctx, err == nil); err == nil {
		err = unlockErr
	}
	return switched(p.spent(), maxPause, p.drained, l.Epoch()), err
}

func switched(took, allowed time.Duration, drained, epoch int64) Result {
	return Result{Pause: took, Over: max(0, took-allowed), Drained: drained, Epoch: epoch}
}

// pause is the time in which writers wait.
type pause struct {
	*Stage
	*timing

	s       *backend.Session
	needs   time.Duration // from the first rename on
	drained int64
	step    string
	closing bool // everything was brought over and checked, and the renaming has begun
	renamed int  // of the tables
}

func (p *pause) at(step string) error {
	p.step = step
	if p.over() {
		return context.DeadlineExceeded
	}
	return nil
}

// prepare goes up to the first rename; nothing before it changes anything that
// another attempt would not do again.
func (p *pause) prepare(ctx context.Context) error {
	p.startClock()
	limited, cancel := p.within(ctx)
	defer cancel()
	if err := p.getReady(limited); err != nil {
		return err
	}
	if err := p.s.Spare(ctx); err != nil {
		return err
	}
	return p.rename(ctx)
}

// getReady locks the tables, brings over what is left, and checks everything.
func (p *pause) getReady(ctx context.Context) error {
	p.step = "waiting for the lock on the tables"
	if err := p.lock(ctx); err != nil {
		return err
	}
	p.Observe(openjob.StepLocked, nil, 0)
	if err := p.CheckEpoch(ctx, p.s); err != nil {
		return err
	}
	if err := p.drain(ctx); err != nil {
		return err
	}
	if err := p.checkUnderLock(ctx); err != nil {
		return err
	}
	p.Observe(openjob.StepDrained, nil, p.drained)
	return p.at("renaming the tables")
}

// lock locks the tables that are there under their own names.
func (p *pause) lock(ctx context.Context) error {
	tables := []string{p.LogTable(), backend.JobTable, backend.SpanTable, backend.RouteTable, backend.FenceTable}
	if p.Tables.HasMap() {
		tables = append(tables, string(p.MapTable()))
	}
	for _, t := range p.Tables {
		tables = append(tables, t.Name)
	}
	return p.s.Database.Lock(ctx, p.s, tables, p.rest())
}

// drain brings over what is left, through the connection with the lock.
func (p *pause) drain(ctx context.Context) error {
	st := p.streams.Forward()
	for {
		if err := p.at("bringing the last changes over"); err != nil {
			return err
		}
		done, err := st.Pass(ctx)
		if err != nil {
			return err
		}
		p.drained += done.Applied
		if done.Empty() {
			return nil
		}
		if done.Applied == 0 {
			return p.stuck(done.Left)
		}
	}
}

// stuck: nobody writes, and still some rows cannot be written.
func (p *pause) stuck(left []follow.Entry) error {
	e := left[0]
	t := p.Tables[e.Table]
	why := "a unique key of its shard refuses the row: another row of the shard has an equal value there, by the shard's collation"
	if t.Conf.Via != "" {
		why += "; or the row that " + t.Conf.Via + " refers to is missing"
	}
	return t.RowError(e.ID, fmt.Errorf("%w: %s (%d such entries are in %s)", backend.ErrNotReady, why, len(left), p.LogTable()))
}

func (p *pause) checkUnderLock(ctx context.Context) error {
	if err := p.at("checking the tables"); err != nil {
		return err
	}
	spans, err := p.Spans(ctx, p.s, false)
	if err != nil {
		return err
	}
	for _, sp := range spans {
		if sp.Low != proto.Top {
			return fmt.Errorf("%w: not everything is copied", backend.ErrNotReady)
		}
	}
	if err := p.CheckIdentities(ctx, p.s); err != nil {
		return err
	}
	if err := p.s.Database.Abandoned(ctx, p.s); err != nil {
		return err
	}
	if err := preflight.CheckWriters(ctx, p.s); err != nil {
		return err
	}
	if err := p.checkFilled(ctx); err != nil {
		return err
	}
	if err := p.at("asking Config.Ready"); err != nil {
		return err
	}
	if err := p.ask(ctx); err != nil {
		return err
	}
	if err := p.at("renaming the tables"); err != nil {
		return err
	}
	if p.begun() {
		return nil
	}
	return p.enough(p.max, p.spent(), p.needs)
}

// checkFilled: all changes are over, so rows of the source without one on any
// shard mean that somebody emptied the shards.
func (p *pause) checkFilled(ctx context.Context) error {
	filled := make([]bool, len(p.Tables))
	err := p.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) (err error) {
		if !filled[t.Number] {
			filled[t.Number], err = hasRows(ctx, s, t.Targets[i].Present())
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range p.Tables {
		if filled[t.Number] {
			continue
		}
		there, err := hasRows(ctx, p.s, t.Name)
		if err == nil && there {
			err = fmt.Errorf("%w: table %s has rows, but its shards have none: somebody emptied them", openjob.ErrChanged, t.Conf.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasRows: the table has a row.
func hasRows(ctx context.Context, c *backend.Session, name string) (bool, error) {
	row, err := c.List(ctx, "SELECT 1 FROM "+c.Database.Quote(name)+" LIMIT 1")
	return len(row) > 0, err
}

// begun: an attempt before has closed some of the tables, so waiting helps nobody.
func (p *pause) begun() bool {
	return slices.ContainsFunc(p.Tables, (*openjob.Table).IsRetired)
}

// ask lets the configuration say no.
func (p *pause) ask(ctx context.Context) error {
	if p.conf.Ready == nil {
		return nil
	}
	highest := make(map[string]int64, len(p.Tables))
	err := p.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error {
		id, err := s.Number(ctx, "SELECT MAX("+s.Database.Quote(t.Key)+") FROM "+s.Database.Quote(t.Targets[i].Present()))
		highest[t.Conf.Name] = max(highest[t.Conf.Name], id)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.conf.Ready(ctx, highest); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrNotReady, err)
	}
	return nil
}

// lookAgain: an error may have come after the rename it is about.
func (p *pause) lookAgain(ctx context.Context) {
	p.renamed = 0
	for _, t := range p.Tables {
		if gone, err := p.s.Database.Exists(ctx, p.s, backend.Retired(t.Conf.Name)); err == nil && gone {
			t.Name, p.renamed = backend.Retired(t.Conf.Name), p.renamed+1
		}
	}
}

// rename closes the tables, whatever connections writers hold on to. An error
// leaves open whether the table was renamed, which decides what comes next.
func (p *pause) rename(ctx context.Context) error {
	p.closing, p.renamed = true, 0
	for _, t := range p.Tables {
		if t.IsRetired() {
			p.renamed++
			continue // by an attempt before
		}
		err := p.s.Exec(ctx, p.s.Database.Rename(t.Name, backend.Retired(t.Conf.Name)))
		gone, existsErr := p.s.Database.Exists(ctx, p.s, backend.Retired(t.Conf.Name))
		if gone {
			t.Name, p.renamed = backend.Retired(t.Conf.Name), p.renamed+1
		}
		if err = errors.Join(err, existsErr); err != nil {
			return err
		}
	}
	p.Observe(openjob.StepRenamed, nil, 0)
	return nil
}

// finish goes on after the first rename. When the time is over, it takes whichever way
// is the shorter one.
func (p *pause) finish(ctx context.Context) error {
	if p.spent() > p.max && p.backIsShorter() && p.undo(ctx) {
		return p.tooLong(undone, 0)
	}
	if err := p.rename(ctx); err != nil {
		return err
	}
	if p.spent() > p.max && p.backIsShorter() && p.undo(ctx) {
		return p.tooLong(undone, 0)
	}
	if err := p.unseal(ctx); err != nil {
		return err
	}
	if err := p.flip(ctx, p.s); err != nil {
		return err
	}
	p.Observe(openjob.StepFlipped, nil, 0)
	return nil
}

// flip tells the application and the other runners. On a connection without the
// lock it belongs into a transaction.
func (l *Stage) flip(ctx context.Context, s *backend.Session) error {
	if err := l.SetRoute(ctx, s, sharding.OnShards); err != nil {
		return err
	}
	return l.Enter(ctx, s, proto.Following, proto.Switched)
}

// backIsShorter counts statements: what SQLite has renamed is undone by one ROLLBACK.
func (p *pause) backIsShorter() bool {
	if p.s.Database.Name() == "sqlite" {
		return true
	}
	on := len(p.Tables) - p.renamed + 1 // and the route
	for _, t := range p.Tables {
		if slices.ContainsFunc(t.Targets, func(to *openjob.Target) bool { return to.Sealed }) {
			on++
			break
		}
	}
	return p.renamed < on
}

const undone = "renaming the tables, which was undone"

// undo gives the tables their names back, under the lock. On MariaDB the server
// has refused it whenever it was tried; then the switch goes on.
func (p *pause) undo(ctx context.Context) bool {
	for _, t := range p.Tables {
		if !t.IsRetired() {
			continue
		}
		if p.s.Database.Name() != "sqlite" {
			if err := p.s.Exec(ctx, p.s.Database.Rename(t.Name, t.Conf.Name)); err != nil {
				return false
			}
		}
		t.Name = t.Conf.Name
		p.renamed--
	}
	return true
}

func (p *pause) tooLong(step string, needs time.Duration) error {
	return p.conf.TooLong(p.max, step, needs)
}

func (p *pause) giveUp(ctx context.Context, err error) error {
	if ctx.Err() == nil && p.over() {
		return p.tooLong(p.step, 0)
	}
	return err
}

func (p *pause) unlock(ctx context.Context, keep bool) error {
	if !p.s.Locked {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return p.s.Database.Unlock(undo, p.s, keep)
}

// CloseRetired replaces the triggers of the retired tables by ones that refuse
// writers who know the new name.
func (l *Stage) CloseRetired(ctx context.Context) error {
	return l.Source.Do(ctx, func(s *backend.Session) error {
		for _, t := range l.Tables {
			t.Name = backend.Retired(t.Conf.Name)
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

// makeBackCapture has the shards note their changes before anybody but this
// runner can write there, and do what triggers of the source do.
func (l *Stage) makeBackCapture(ctx context.Context) error {
	for _, side := range l.Shards {
		// What an attempt before has left there says nothing any more.
		if err := l.On(ctx, side, func(s *backend.Session) error { return s.Exec(ctx, "DELETE FROM "+s.Database.Quote(l.BackTable())) }); err != nil {
			return err
		}
	}
	return l.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error {
		if err := s.MakeTriggers(ctx, l.Tables.OwnTriggers(t, i)); err != nil {
			return err
		}
		return s.MakeTriggers(ctx, s.Database.Capture(l.BackCapture(t, i)))
	})
}
