package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/verify"
)

const (
	// fewChanged rows are compared while the slots are closed.
	fewChanged = 500
	// comparedAtOnce is how many rows are compared by one query.
	comparedAtOnce = 500
	// patientPasses are how often the log is gone through to get there.
	patientPasses = 200
)

// compareAll compares the rows of both shards, range by range, while writers go
// on. Rows that differ, and all that changed since it began, are compared again
// until few are left; these are for when the slots are closed. Until then a row
// that changes all the time may differ each time.
func (b *batch) compareAll(ctx context.Context, st *follow.Stream) error {
	b.track()
	for _, t := range b.Tables {
		if err := b.compareTable(ctx, st, t, b.Mover.cfg.Throttle); err != nil {
			return err
		}
	}
	for pass := 1; ; pass++ {
		done, err := st.Pass(ctx)
		if err != nil {
			return err
		}
		differ, err := b.compareChanged(ctx)
		if err != nil {
			return err
		}
		few := len(done.Left) == 0 && done.Applied < fewChanged && differ < fewChanged
		if few && (differ == 0 || pass == patientPasses) {
			b.Mover.cfg.Observe(Step{Name: StepCompared})
			return nil
		}
		if pass == patientPasses {
			return b.notEqual(ctx, st)
		}
		if done.Applied > 0 {
			continue
		}
		if err := backend.Wait(ctx, follow.IdlePause); err != nil {
			return err
		}
	}
}

// track begins to note which rows change.
func (b *batch) track() {
	b.changed = make([]map[int64]bool, len(b.Tables))
	for i := range b.changed {
		b.changed[i] = map[int64]bool{}
	}
}

// notEqual says why the rows do not become equal.
func (b *batch) notEqual(ctx context.Context, st *follow.Stream) error {
	done, err := st.Pass(ctx)
	if err != nil {
		return err
	}
	if len(done.Left) == 0 {
		return fmt.Errorf("%w: writers are faster than their changes are followed", ErrNotReady)
	}
	e := done.Left[0]
	t := b.Tables[e.Table]
	return t.RowError(e.ID, fmt.Errorf("%w: a unique key of %s on %s refuses the row, as another row there has an equal value (%d such rows)", ErrNotReady, t.Targets[0].Name, t.Targets[0].Database.Label, len(done.Left)))
}

// compareTable goes through all rows of the slots once.
func (b *batch) compareTable(ctx context.Context, st *follow.Stream, t *openjob.Table, throttle func(context.Context) error) error {
	for at := (proto.Bound{}); at != proto.Top; {
		if err := throttle(ctx); err != nil {
			return fmt.Errorf("throttled: %w", err)
		}
		end, err := b.copier.End(ctx, t, at)
		if err != nil {
			return err
		}
		chunk := proto.Chunk{After: at, To: end}
		differ, err := b.differing(ctx, t, func(key string) string { return copier.Within(key, chunk) })
		if err != nil {
			return err
		}
		for _, id := range differ {
			b.changed[t.Number][id] = true
		}
		if _, err := st.Pass(ctx); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// compareChanged compares the rows that changed once more and keeps those that
// differ. They are noted in the log too, as the one who should have done so may
// be what is wrong.
func (b *batch) compareChanged(ctx context.Context) (differ int, err error) {
	for _, t := range b.Tables {
		ids := slices.Sorted(maps.Keys(b.changed[t.Number]))
		clear(b.changed[t.Number])
		for part := range slices.Chunk(ids, comparedAtOnce) {
			some, err := b.differing(ctx, t, func(key string) string { return key + " IN (" + backend.IDList(part) + ")" })
			if err != nil {
				return 0, err
			}
			for _, id := range some {
				b.changed[t.Number][id] = true
			}
			if err := b.Source.Note(ctx, b.LogTable(), t.Number, some); err != nil {
				return 0, err
			}
			differ += len(some)
		}
	}
	return differ, nil
}

// differing returns the rows among these that are not the same on both shards
// now.
func (b *batch) differing(ctx context.Context, t *openjob.Table, which condition) ([]int64, error) {
	among := func(key string) string { return which(key) + " AND " + b.among[t.Number](key) }
	want, err := verify.Hashes(ctx, t, &openjob.Target{Database: b.Source, Name: t.Name}, among)
	if err != nil {
		return nil, err
	}
	got, err := verify.Hashes(ctx, t, t.Targets[0], among)
	if err != nil {
		return nil, err
	}
	var differ []int64
	for id, hash := range want {
		if other, there := got[id]; !there || other != hash {
			differ = append(differ, id)
		}
		delete(got, id)
	}
	for id := range got {
		differ = append(differ, id)
	}
	slices.Sort(differ)
	return differ, nil
}

// last brings over what changed before the slots were closed, and compares it.
// After a crash nobody knows what that was: then all is compared.
func (b *batch) last(ctx context.Context) error {
	st := b.stream()
	if b.changed == nil {
		if err := b.compareClosed(ctx, st); err != nil {
			return err
		}
	}
	for range 2 { // what differs at first is written once more
		if err := b.drain(ctx, st); err != nil {
			return err
		}
		differ, err := b.compareChanged(ctx)
		if err != nil {
			return err
		}
		if differ == 0 {
			b.Mover.cfg.Observe(Step{Name: StepDrained})
			return b.unaltered(ctx)
		}
	}
	return fmt.Errorf("%w: rows differ on both shards although nobody changes them", ErrNotReady)
}

func (b *batch) compareClosed(ctx context.Context, st *follow.Stream) error {
	b.track()
	for _, t := range b.Tables {
		if err := b.compareTable(ctx, st, t, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// closedPasses are enough for rows that wait for each other's unique values.
const closedPasses = 5

// drain applies all that the log has: since the slots are closed nothing comes to
// it but changes of other slots, for which nobody has to wait.
func (b *batch) drain(ctx context.Context, st *follow.Stream) error {
	for range closedPasses {
		done, err := st.Pass(ctx)
		if err != nil || len(done.Left) == 0 {
			return err
		}
	}
	return b.notEqual(ctx, st)
}
