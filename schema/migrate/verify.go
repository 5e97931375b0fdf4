package migrate

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/schema/migrate/internal/proto"
)

// Verify compares every row that was copied with the shards, without a lock and
// while writers and the runner go on, once from the first id to the last,
// strays below and above them included. It reads ranges of rows and their
// sums, and looks at single rows only where sums differ. A row that differs
// although no change of it is under way is reported, and noted in the log so
// that the runner writes it again: a second pass tells whether that helped.
//
// After Cutover the shards are what counts, and the retired tables are compared
// with them: what differs there is brought back again by Follow.
//
// It may run beside Run or Follow, in this process or another. Divergences are
// no error.
func (j *Job) Verify(ctx context.Context) (Verification, error) {
	w, err := j.open(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.close()
	v := &verifier{world: w, result: Verification{Complete: true, Divergences: []Divergence{}}}
	if err := v.run(ctx); err != nil {
		return Verification{}, fmt.Errorf("migrate: job %s: verify: %w", j.cfg.Name, err)
	}
	return v.result, nil
}

// verifier is one pass.
type verifier struct {
	*world

	behind bool // the shards serve; the retired tables are what is to be right
	result Verification
}

func (v *verifier) run(ctx context.Context) error {
	spans, err := v.copied(ctx)
	if err != nil {
		return err
	}
	for _, t := range v.tables {
		if err := v.table(ctx, t, spans[t.ord].low); err != nil {
			return fmt.Errorf("table %s: %w", t.conf.Name, err)
		}
	}
	return nil
}

// copied returns how far the tables are copied.
func (v *verifier) copied(ctx context.Context) (spans []span, err error) {
	err = v.source.do(ctx, func(s *session) error {
		phase, err := v.phase(ctx, s)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Copying, proto.Following:
		case proto.Switched:
			v.behind = true
		default:
			return fmt.Errorf("%w: the job is %q; rows can be compared from the begin of Run until Finalize", ErrPhase, phase)
		}
		spans, err = v.spans(ctx, s, false)
		return err
	})
	return spans, err
}

// keys are the ids above after and up to to. Without after they begin below
// every id; Top ends above every id.
type keys struct{ after, to proto.Bound }

// where is the condition that a column of ids lies among the keys.
func (k keys) where(column string) string {
	head, tail := "TRUE", "TRUE"
	if k.after.Set {
		head = fmt.Sprintf("%s > %d", column, k.after.ID)
	}
	if k.to != proto.Top {
		tail = fmt.Sprintf("%s <= %d", column, k.to.ID)
	}
	return head + " AND " + tail
}

// rangesPerChunk makes the ranges that are compared larger than the chunks that
// are copied: fewer queries go to the shards, and no lock is held.
const rangesPerChunk = 8

// table goes through the ids of a table in ranges. The table was copied up to
// low, which only grows.
func (v *verifier) table(ctx context.Context, t *table, low proto.Bound) error {
	v.result.Complete = v.result.Complete && low == proto.Top
	if t.rewrites != nil {
		return v.renumbered(ctx, t, low)
	}
	for at := (proto.Bound{}); at != low; {
		end, err := v.rangeEnd(ctx, t, at)
		if err != nil {
			return err
		}
		if low.Less(end) {
			end = low
		}
		if err := v.compare(ctx, t, keys{at, end}); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// rangeEnd is where the range after a bound ends: at the source's last row, it
// is open.
func (v *verifier) rangeEnd(ctx context.Context, t *table, after proto.Bound) (end proto.Bound, err error) {
	key := v.source.Quote(t.key)
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d",
		key, v.source.Quote(t.name), keys{after, proto.Top}.where(key), v.cfg.ChunkRows*rangesPerChunk-1)
	err = v.source.do(ctx, func(s *session) error {
		end = proto.Top
		return s.each(ctx, func(rows *sql.Rows) error {
			end.Set = true
			return rows.Scan(&end.ID)
		}, query)
	})
	return end, err
}

// compare compares a range of ids, and its rows one by one when it differs.
func (v *verifier) compare(ctx context.Context, t *table, k keys) error {
	v.result.Ranges++
	want, got, err := v.totals(ctx, t, k)
	if err != nil {
		return err
	}
	v.result.Rows += want[len(t.targets)].rows
	same := want[len(t.targets)].rows == 0
	for i := range t.targets {
		v.result.Rows += want[i].rows
		same = same && got[i] == want[i]
	}
	if same {
		return nil
	}
	return v.drill(ctx, t, k)
}

// totals reads the sums of the source, by target and beyond them, and those of
// the targets, all databases at once.
func (v *verifier) totals(ctx context.Context, t *table, k keys) (want, got []total, err error) {
	got = make([]total, len(t.targets))
	tasks := []func(context.Context) error{func(ctx context.Context) (err error) {
		want, err = v.sourceTotals(ctx, t, k)
		return err
	}}
	for _, side := range v.sides {
		tasks = append(tasks, func(ctx context.Context) (err error) {
			for i, target := range t.targets {
				if target.side == side && err == nil {
					got[i], err = v.targetTotal(ctx, t, target, k)
				}
			}
			return err
		})
	}
	err = together(ctx, tasks...)
	return want, got, err
}

// drill finds the rows of a range that differ now, and settles them.
func (v *verifier) drill(ctx context.Context, t *table, k keys) error {
	seen, err := v.look(ctx, t, selection{where: k.where})
	if err != nil {
		return err
	}
	return v.settleAll(ctx, t, seen.differing())
}
