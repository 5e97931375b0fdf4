package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// The layout of a namespace is changed in three steps, each committed by itself.
//
// First the row is marked, so that nobody takes a lease who has not locked its row
// yet: who has finds the mark when he looks again (taking.write). A version that
// notes no layouts does not look again, but refuses the row from then on, as its
// unit is negative. Such a process may still be between its look at the namespace
// and its lock on a worker id. So, second, a row that is the last one keeps it from
// adding others, and third, all rows are locked, with those that it may be about to
// add. When none of them is of a lease in force, they are given a ceiling above the
// present: such a process finds nothing that is free by the time it read, unless the
// database's clock was set back in between. All leases of before are lost then,
// whatever the clocks say.

// lastRow is no worker id. Versions that note no layout add rows above the highest
// one up to the largest worker id, and so add none above this one.
const lastRow int64 = 1 << 62

const (
	noteLayout = `UPDATE "worker_namespace" SET "layout" = ?, "epoch_us" = ?, "unit_ns" = ?, "safe_from_us" = ?
		WHERE "namespace" = ? AND "layout" = ? AND "epoch_us" = ? AND "unit_ns" = ? AND "safe_from_us" = ?`
	addLastRow = `INSERT INTO "worker_lease" ("namespace", "worker_id", "owner", "holder", "era", "generation", "ceiling")
		VALUES (?, ?, NULL, 'no worker id: keeps versions that note no layout from adding rows', 0, 0, 9223372036854775807)`
	hasLastRow = `SELECT COUNT(*) FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" = ?`

	lockRows  = `UPDATE "worker_lease" SET "generation" = "generation" + 1 WHERE "namespace" = ? AND "worker_id" < ?`
	clearRows = `UPDATE "worker_lease" SET "owner" = NULL, "ceiling" = ? WHERE "namespace" = ? AND "worker_id" < ?`
	inForce   = `SELECT COUNT(CASE WHEN "owner" IS NOT NULL AND "ceiling" > ? THEN 1 END),
		COALESCE(MAX(CASE WHEN "owner" IS NOT NULL AND "ceiling" > ? THEN "holder" END), ''), COALESCE(MAX("ceiling"), 0)
		FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" < ?`
)

// settle returns the namespace with the claim's layout, or the statement that has to
// be run before.
func (t taking) settle(ctx context.Context, s session, sp space, p present) (space, *statement, error) {
	standing := t.claim.Standing(sp.layout)
	counted, err := t.counted(standing)
	switch {
	case err != nil:
		return sp, nil, err
	case standing == workerid.Foreign:
		return sp, nil, t.claim.Refuse(sp.layout)
	case sp.ticks != counted:
		return sp, nil, fmt.Errorf("%w: namespace %q counts %v, not %v; package workerid says how to change layouts", keygen.ErrLayout, t.claim.Namespace, sp.ticks, counted)
	case standing == workerid.Past:
		return t.change(ctx, s, sp, p)
	}
	own := space{layout: t.claim.Layout.Fingerprint(), fenced: true, ticks: t.ticks, floor: sp.floor}
	if sp != own { // stated, or its change was given up
		return sp, t.note(sp, own), nil
	}
	return sp, nil, nil
}

// counted returns how the ceilings of a namespace are counted whose layout is so.
func (t taking) counted(standing workerid.Standing) (ticks, error) {
	if standing == workerid.Past && t.claim.Former.Unit != 0 {
		return newTicks(t.claim.Former)
	}
	return t.ticks, nil
}

// note returns the statement that changes a namespace's row, unless another process
// has changed it since it was read.
func (t taking) note(old, sp space) *statement {
	return &statement{noteLayout, []any{
		sp.text(), sp.ticks.epoch, sp.unit(), sp.floor,
		t.claim.Namespace, old.text(), old.ticks.epoch, old.unit(), old.floor,
	}}
}

// unit is what stands in the row's column unit_ns.
func (sp space) unit() int64 {
	if sp.fenced {
		return -sp.ticks.unit * 1000
	}
	return sp.ticks.unit * 1000
}

// change gives the namespace the claim's layout when no lease is in force.
func (t taking) change(ctx context.Context, s session, sp space, p present) (space, *statement, error) {
	if _, err := t.begin(ctx, s, sp, p); err != nil {
		return sp, nil, err
	}
	if !sp.changing || !sp.fenced {
		marked := sp
		marked.changing, marked.fenced = true, true
		return sp, t.note(sp, marked), nil
	}
	var last int
	if err := s.row(ctx, hasLastRow, t.claim.Namespace, lastRow).Scan(&last); err != nil {
		return sp, nil, err
	}
	if last == 0 {
		return sp, &statement{addLastRow, []any{t.claim.Namespace, lastRow}}, nil
	}
	next, err := t.cut(ctx, s, sp, p)
	return next, nil, err
}

// cut locks all rows of the namespace, looks once more whether a lease is in force,
// and ends what was before.
func (t taking) cut(ctx context.Context, s session, sp space, p present) (space, error) {
	first, err := s.rows(ctx, t.claim.Namespace)
	if err != nil {
		return sp, err
	}
	add := t.addRowsOf(first, first+newRows-1)
	if err := s.exec(ctx, s.unlessThere(add.text), add.args...); err != nil {
		return sp, err
	}
	if err := s.exec(ctx, lockRows, t.claim.Namespace, lastRow); err != nil {
		return sp, err
	}
	floor, err := t.begin(ctx, s, sp, p)
	if err != nil {
		return sp, err
	}
	next := space{layout: t.claim.Layout.Fingerprint(), fenced: true, ticks: t.ticks, floor: floor.UnixMicro()}
	if err := s.exec(ctx, clearRows, t.ticks.at(next.floor), t.claim.Namespace, lastRow); err != nil {
		return sp, err
	}
	noted := t.note(sp, next)
	changed, err := s.changed(ctx, noted.text, noted.args...)
	if err == nil && !changed {
		err = errSkipped
	}
	return next, err
}

// begin returns when leases of the claim's layout begin, or an error that says which
// leases are in force.
func (t taking) begin(ctx context.Context, s session, sp space, p present) (time.Time, error) {
	var leases, highest int64
	var holder string
	now := sp.ticks.at(p.micros)
	err := s.row(ctx, inForce, now, now, t.claim.Namespace, lastRow).Scan(&leases, &holder, &highest)
	if err != nil {
		return time.Time{}, err
	}
	end := time.UnixMicro(p.micros)
	if highest > now {
		end = sp.ticks.start(highest)
	}
	if leases > 0 {
		return time.Time{}, t.claim.Hold(sp.layout, leases, holder, end)
	}
	return t.claim.Begin(end)
}
