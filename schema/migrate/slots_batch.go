package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// condition makes the SQL of one from a column of ids.
type condition func(column string) string

// batch are slots that go from one shard to another together.
type batch struct {
	*Mover
	*leader

	from, to int
	version  int64            // of the map as it is known here
	slots    []slotstore.Slot // as of then
	among    []condition      // by table: the condition that a row is of the slots

	// changed are the rows that were written since the comparison began, by table;
	// nil before.
	changed []map[int64]bool
	done    Moved
}

// run leads the slots from whatever state they are in to the end of their move.
func (b *batch) run(ctx context.Context) error {
	w, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	if b.leader, err = w.lead(ctx); err != nil {
		return err
	}
	defer b.Release()
	before := b.slots[0]
	if err := b.refresh(ctx); err != nil {
		return err
	}
	if b.slots[0] != before {
		return errOvertaken // by the one who led until now
	}
	if err := b.repeat(ctx); err != nil {
		return err
	}
	return b.goOn(ctx)
}

// repeat makes the step that led here once more: the one who began it may have
// ended before the shards knew of it.
func (b *batch) repeat(ctx context.Context) error {
	switch b.state() {
	case slotstore.Copying:
		return b.step(ctx, b.copyStep())
	case slotstore.Fenced:
		return b.step(ctx, (*slotstore.Store).Fence)
	case slotstore.Moved:
		return b.step(ctx, (*slotstore.Store).Switch)
	case slotstore.Aborted:
		return b.step(ctx, (*slotstore.Store).Abort)
	}
	return nil
}

// goOn makes one step after another until the slots are like all others.
func (b *batch) goOn(ctx context.Context) (err error) {
	var failed error
	for ended := false; !ended; {
		switch b.state() {
		case slotstore.Active:
			err = b.announce(ctx)
		case slotstore.Copying:
			err = b.bring(ctx)
		case slotstore.Fenced:
			failed, err = b.switchOver(ctx)
		default:
			err, ended = b.clean(ctx), true
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

func (b *batch) state() slotstore.State { return b.slots[0].State }

// refresh reads the slots anew.
func (b *batch) refresh(ctx context.Context) error {
	v, err := b.Mover.cfg.Store.Load(ctx)
	if err != nil {
		return err
	}
	now := make([]slotstore.Slot, len(b.slots))
	for i, slot := range b.slots {
		now[i] = v.Slots[slot.Slot]
		if now[i].State != now[0].State || now[i].Shard != now[0].Shard || now[i].Other != now[0].Other {
			return fmt.Errorf("%w: slots %d and %d have parted", sharding.ErrStaleMap, now[0].Slot, now[i].Slot)
		}
	}
	b.version, b.slots = v.Version, now
	return nil
}

// change is one of the steps of a store.
type change func(s *slotstore.Store, ctx context.Context, slots ...sharding.Slot) error

// step changes the slots in the map, as soon as everybody knows the present one.
func (b *batch) step(ctx context.Context, do change) error {
	numbers := make([]sharding.Slot, len(b.slots))
	for i, slot := range b.slots {
		numbers[i] = slot.Slot
	}
	for {
		if err := b.Mover.cfg.Store.Settle(ctx); err != nil {
			return err
		}
		if err := b.stillLeads(ctx); err != nil {
			return err
		}
		err := do(b.Mover.cfg.Store.AsOf(b.version), ctx, numbers...)
		if errors.Is(err, slotstore.ErrLeased) {
			continue // somebody moves other slots
		}
		if err != nil {
			return err
		}
		return b.refresh(ctx)
	}
}

func (b *batch) stillLeads(ctx context.Context) error {
	return b.OnSource(ctx, func(*backend.Session) error { return nil })
}

// announce makes what is missing on the new shard and has everybody know which
// slots move.
func (b *batch) announce(ctx context.Context) error {
	for _, t := range b.Tables {
		if err := b.checkFree(ctx, t); err != nil {
			return err
		}
	}
	return b.step(ctx, b.copyStep())
}

func (b *batch) copyStep() change {
	return func(s *slotstore.Store, ctx context.Context, slots ...sharding.Slot) error {
		return s.Copy(ctx, b.to, slots...)
	}
}

// checkFree: a row that strayed to the new shard long ago might be the only one
// of its key.
func (b *batch) checkFree(ctx context.Context, t *openjob.Table) error {
	to := t.Targets[0]
	return to.Database.Do(ctx, func(s *backend.Session) error {
		key := s.Database.Quote(t.Key)
		found, err := s.List(ctx, "SELECT "+key+" FROM "+s.Database.Quote(to.Name)+" WHERE "+b.among[t.Number](key)+" LIMIT 1")
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("%w: %s on %s has the row %s of a slot that is to move there; Doctor lists such rows: move or delete them", ErrNotReady, to.Name, to.Database.Label, found[0])
		}
		return err
	})
}

// switchOver is the pause. A failure that is no crash puts the slots back.
func (b *batch) switchOver(ctx context.Context) (failed, err error) {
	began := time.Now()
	b.Mover.cfg.Observe(Step{Name: StepFenced})
	limited, cancel := context.WithDeadline(ctx, began.Add(b.Mover.cfg.MaxPause))
	defer cancel()
	err = b.last(limited)
	if err == nil {
		err = b.Mover.cfg.Store.Settle(limited)
	}
	if err == nil {
		err = b.step(ctx, (*slotstore.Store).Switch)
	}
	b.done.Pause = max(b.done.Pause, time.Since(began))
	switch {
	case err == nil:
		b.done.Slots += len(b.slots)
		b.Mover.cfg.Observe(Step{Name: StepSwitched})
		return nil, nil
	case ctx.Err() != nil || !b.mustGoBack(limited, err):
		return nil, err
	case limited.Err() != nil:
		err = &PauseError{Max: b.Mover.cfg.MaxPause, Step: "moving slots"}
	}
	return err, b.step(ctx, (*slotstore.Store).Abort)
}

// mustGoBack: another try would not do better, and keys are refused meanwhile.
func (*batch) mustGoBack(limited context.Context, err error) bool {
	return limited.Err() != nil || errors.Is(err, ErrNotReady) || errors.Is(err, ErrChanged)
}

// clean deletes what is left behind on the slots' other shard.
func (b *batch) clean(ctx context.Context) error {
	if err := b.Mover.cfg.Store.Settle(ctx); err != nil {
		return err
	}
	if err := b.forget(ctx); err != nil {
		return err
	}
	for _, t := range b.Tables {
		if err := b.sweep(ctx, t, proto.Chunk{To: proto.Top}, b.Mover.cfg.Throttle); err != nil {
			return err
		}
	}
	if err := b.step(ctx, (*slotstore.Store).Finish); err != nil {
		return err
	}
	b.Mover.cfg.Observe(Step{Name: StepFinished})
	return nil
}

// forget removes what followed the source. The log stays, empty: a statement
// that had seen the triggers may still want it.
func (b *batch) forget(ctx context.Context) error {
	return b.Source.Do(ctx, func(s *backend.Session) error {
		if err := b.dropCapture(ctx, s); err != nil {
			return err
		}
		if err := s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ?", b.leader.cfg.Name); err != nil {
			return err
		}
		return s.Exec(ctx, "DELETE FROM "+s.Database.Quote(b.LogTable()))
	})
}

// open describes the tables of both shards, and makes those that the new one
// lacks.
func (b *batch) open(ctx context.Context) (*openJob, error) {
	store := b.Mover.cfg.Store
	cfg := Config{
		Name:      fmt.Sprintf("slots_%s_%d_%d", store.Name(), b.from, b.to),
		ChunkRows: b.Mover.cfg.ChunkRows, Throttle: b.Mover.cfg.Throttle, Observe: b.Mover.cfg.Observe,
	}
	source, err := backend.Open(ctx, shardName(b.from), backend.FenceTable, store.DB(b.from))
	if err != nil {
		return nil, err
	}
	w := newOpenJob(openjob.New(cfg.known(), source), cfg)
	to, err := w.AddShards(ctx, shardName(b.to), store.DB(b.to))
	if err != nil {
		return nil, err
	}
	for _, conf := range store.Tables() {
		w.AddTable(openjob.TableConfig{Table: conf}).AddTarget(store.Target(conf, b.to), to)
	}
	if err := b.look(ctx, w); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func shardName(n int) string { return "shard " + strconv.Itoa(n) }

// look describes the tables.
func (b *batch) look(ctx context.Context, w *openJob) error {
	b.among = nil
	for _, t := range w.Tables {
		name := b.Mover.cfg.Store.Target(t.Conf.Table, b.from).Table
		err := w.Source.Do(ctx, func(s *backend.Session) (err error) {
			t.Table, err = s.Database.Describe(ctx, s, name)
			return err
		})
		if err != nil {
			return err
		}
		if err := openjob.CheckTriggers(t.Table); err != nil {
			return err
		}
		to := t.Targets[0]
		if err := to.Database.Do(ctx, func(s *backend.Session) error { return w.makeOrCompare(ctx, s, t, to) }); err != nil {
			return fmt.Errorf("table %s on %s: %w", to.Name, to.Database.Label, err)
		}
		b.among = append(b.among, b.ofSlots(w, t))
	}
	return b.checkEdges(w)
}

// ofSlots is the condition that a row is of the slots.
func (b *batch) ofSlots(w *openJob, t *openjob.Table) condition {
	slot, ok := slotstore.SlotSQL(t.Conf.Rule, w.Source.Quote(t.Conf.Key))
	if !ok {
		panic("bug: a store has taken a rule that SQL cannot say")
	}
	list := make([]string, len(b.slots))
	for i, s := range b.slots {
		list[i] = strconv.Itoa(int(s.Slot))
	}
	among := slot + " IN (" + strings.Join(list, ", ") + ")"
	return func(string) string { return among }
}

// makeOrCompare makes a table like the source's, or compares the one that is
// there.
func (w *openJob) makeOrCompare(ctx context.Context, s *backend.Session, t *openjob.Table, to *openjob.Target) error {
	there, err := s.Database.Exists(ctx, s, to.Name)
	if err != nil {
		return err
	}
	if !there {
		return w.makeTarget(ctx, s, t, to.Name)
	}
	found, err := s.Database.Describe(ctx, s, to.Name)
	if err != nil {
		return err
	}
	for _, c := range t.Columns {
		if _, ok := found.Column(c.Name); !ok {
			return fmt.Errorf("%w: it has no column %s", ErrNotReady, c.Name)
		}
	}
	if len(found.Columns) != len(t.Columns) || !strings.EqualFold(found.Key, t.Key) {
		return fmt.Errorf("%w: its columns or its key are not those of table %s", ErrNotReady, t.Name)
	}
	return openjob.CheckTriggers(found)
}

// checkEdges refuses foreign keys that lead out of the map, as the rows at their
// other end stay, and those by which InnoDB changes rows that no trigger sees.
func (*batch) checkEdges(w *openJob) error {
	inside := func(name string) bool {
		return slices.ContainsFunc(w.Tables, func(t *openjob.Table) bool { return strings.EqualFold(t.Name, name) })
	}
	for _, t := range w.Tables {
		for _, fk := range append(slices.Clone(t.Parents), t.Children...) {
			if !inside(fk.Table) {
				return fmt.Errorf("%w: a foreign key connects %s with %s, which does not move along; take it into the map or drop the key", ErrUnsupported, t.Name, fk.Table)
			}
			if fk.Cascades() && w.Source.Name() == "mysql" {
				return fmt.Errorf("%w: a foreign key between %s and %s changes rows by itself, which no trigger sees; drop it", ErrUnsupported, t.Name, fk.Table)
			}
		}
	}
	return nil
}
