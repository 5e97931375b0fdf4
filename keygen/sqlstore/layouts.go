// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// A change of a namespace's layout has three steps, each committed by itself.
//
// First, the namespace's row is marked. A process that has not locked its row yet takes no
// lease any more. One that has locked it finds the mark when it reads the namespace again
// (acquisition.write). A version that does not store layouts does not read it again, but
// refuses the marked row from then on, because its unit is negative. Such a process may still
// be between its read of the namespace and its lock on a worker id.
//
// So, second, a row with the highest number (lastRow) keeps such a process from adding rows.
// Third, all rows are locked, including those that it may be about to add. If none of them has
// a lease in force, they get a ceiling above the present: such a process finds no worker id
// that is free at the time it read, unless the database's clock was set back in between. All
// earlier leases are then lost, whatever the clocks say.

// lastRow is not a worker id. Versions that do not store layouts add rows above the highest
// one, up to the largest worker id, and so add none above this one.
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

// resolveLayout returns the namespace with the claim's layout, or the statement that must run
// first.
func (t acquisition) resolveLayout(ctx context.Context, s session, sp namespaceRow, p present) (namespaceRow, *statement, error) {
	relation := t.claim.Relation(sp.layout)
	ceilingTicks, err := t.ceilingTicks(relation)
	switch {
	case err != nil:
		return sp, nil, err
	case relation == workerid.Foreign:
		return sp, nil, t.claim.Refuse(sp.layout)
	case sp.ticks != ceilingTicks:
		return sp, nil, fmt.Errorf("%w: namespace %q counts %v, not %v; package workerid says how to change layouts", keygen.ErrLayout, t.claim.Namespace, sp.ticks, ceilingTicks)
	case relation == workerid.Past:
		return t.change(ctx, s, sp, p)
	}
	own := namespaceRow{layout: t.claim.Layout.Fingerprint(), fenced: true, ticks: t.ticks, floor: sp.floor, rows: sp.rows}
	if sp != own { // the row has no layout yet, or an unfinished change of it
		return sp, t.layoutUpdate(sp, own), nil
	}
	return sp, nil, nil
}

// ceilingTicks returns the ticks in which a namespace of that relation counts its ceilings.
func (t acquisition) ceilingTicks(relation workerid.LayoutRelation) (ticks, error) {
	if relation == workerid.Past && t.claim.Former.Unit != 0 {
		return newTicks(t.claim.Former)
	}
	return t.ticks, nil
}

// layoutUpdate returns the statement that changes a namespace's row, unless another process has
// changed it since it was read.
func (t acquisition) layoutUpdate(old, sp namespaceRow) *statement {
	return &statement{noteLayout, []any{
		sp.text(), sp.ticks.epoch, sp.unit(), sp.floor,
		t.claim.Namespace, old.text(), old.ticks.epoch, old.unit(), old.floor,
	}}
}

// unit is the value of the row's column unit_ns.
func (sp namespaceRow) unit() int64 {
	if sp.fenced {
		return -sp.ticks.unit * 1000
	}
	return sp.ticks.unit * 1000
}

// change gives the namespace the claim's layout if no lease is in force.
func (t acquisition) change(ctx context.Context, s session, sp namespaceRow, p present) (namespaceRow, *statement, error) {
	if _, err := t.begin(ctx, s, sp, p); err != nil {
		return sp, nil, err
	}
	if !sp.changing || !sp.fenced {
		marked := sp
		marked.changing, marked.fenced = true, true
		return sp, t.layoutUpdate(sp, marked), nil
	}
	var last int
	if err := s.row(ctx, hasLastRow, t.claim.Namespace, lastRow).Scan(&last); err != nil {
		return sp, nil, err
	}
	if last == 0 {
		return sp, &statement{addLastRow, []any{t.claim.Namespace, lastRow}}, nil
	}
	next, err := t.finishChange(ctx, s, sp, p)
	return next, nil, err
}

// finishChange locks all rows of the namespace, checks again whether a lease is in force, and
// ends all earlier leases.
func (t acquisition) finishChange(ctx context.Context, s session, sp namespaceRow, p present) (namespaceRow, error) {
	first, err := s.rows(ctx, t.claim.Namespace)
	if err != nil {
		return sp, err
	}
	add := t.addRowsOf(sp.ticks, sp, first, first+newRows-1)
	if err := s.exec(ctx, s.ignoreExisting(add.text), add.args...); err != nil {
		return sp, err
	}
	if err := s.exec(ctx, lockRows, t.claim.Namespace, lastRow); err != nil {
		return sp, err
	}
	floor, err := t.begin(ctx, s, sp, p)
	if err != nil {
		return sp, err
	}
	next := namespaceRow{layout: t.claim.Layout.Fingerprint(), fenced: true, ticks: t.ticks, floor: floor.UnixMicro(), rows: sp.rows}
	if err := s.exec(ctx, clearRows, t.ticks.at(next.floor), t.claim.Namespace, lastRow); err != nil {
		return sp, err
	}
	noted := t.layoutUpdate(sp, next)
	changed, err := s.changed(ctx, noted.text, noted.args...)
	if err == nil && !changed {
		err = errSkipped
	}
	return next, err
}

// begin returns the time at which leases of the claim's layout begin, or an error that names
// the leases in force.
func (t acquisition) begin(ctx context.Context, s session, sp namespaceRow, p present) (time.Time, error) {
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
