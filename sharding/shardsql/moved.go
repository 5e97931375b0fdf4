// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// refusedBefore returns the refusal of a text that would be sent after slots of its tables have moved, or have been copied, or may have: it
// may have waited for a connection since it was planned, and would read rows of such slots twice, or not at all, or write rows that
// have left.
func refusedBefore(ctx context.Context, e execution) error {
	if !mayMove(e.plan) || e.to.Kind == plan.Home || e.to.Kind == plan.Copies {
		return nil
	}
	now, err := compared(e)
	if err != nil {
		return err
	}
	return overtaken(ctx, e, now)
}

// refusedAfter returns the refusal of a text that was executed, and may have been on its way for so long that its rows had left: then the
// old shard has found none that it could refuse. A text that reached its shard in time has read all of its rows, however long it takes: they
// stay until no process plans by an older map. A query of several shards, which may take longer than slots need to move, is not repeated.
func refusedAfter(e execution) error {
	if !mayMove(e.plan) || e.to.Kind != plan.One && e.to.Kind != plan.Several || e.plan.Statement.Explains {
		return nil
	}
	_, err := compared(e)
	return err
}

// inTime returns the result of a query. If rows may have left the shard before the query reached it, it closes the result and returns
// the refusal.
func inTime(e execution, rows driver.Rows) (driver.Rows, error) {
	if err := refusedAfter(e); err != nil {
		return nil, dialect.JoinErrors(err, rows.Close())
	}
	return rows, nil
}

// needsTransaction reports whether a write of one shard, whose slots may move at any time, is executed in a transaction. If rows have left
// before it reaches the shard, the transaction is rolled back. That is necessary where the write may change other rows: it writes rows of
// several slots, reads others, or has CTEs that write; and where the answer does not say whether it has changed any: drivers count no
// rows that are returned, and a query shows no others. An INSERT of values needs none, because the triggers of the shard refuse it.
func needsTransaction(e execution, isQuery bool) bool {
	p := e.plan
	if !mayMove(p) || e.to.Kind != plan.One || e.to.Nowhere || p.Statement.ReadsOnly() || p.Statement.Explains {
		return false
	}
	return p.Statement.Writes != nil || plan.ReadsShards(p) || plan.Returns(p) != isQuery || p.Insert == nil && !plan.SlotsOf(p, unwrapped(e.args)).One
}

// compared returns the first table of a statement as it is now. It refuses the statement if slots of it have moved since it was planned, or
// may have, or if it is for several targets and slots have been copied.
func compared(e execution) (*sharding.Table, error) {
	planned := plan.First(e.plan)
	now, err := present(e.session.database, planned, e.plan.Snapshot)
	if err == nil && now.Map.Version() != planned.Map.Version() && (hasMoved(e, planned, now) || isNewlyShared(planned, now, e.to)) {
		err = sharding.ErrSlotMoving
	}
	if err != nil {
		return nil, e.plan.Refusal(now.Name, err, "")
	}
	return now, nil
}

// present returns the table of a snapshot, or of none, as it is now, and sharding.ErrStaleMap after the end of its lease.
func present(d *database, of *sharding.Table, was *sharding.Snapshot) (*sharding.Table, error) {
	now := of
	if s := d.router.Snapshot(); s != was {
		now, _ = s.Lookup(of.Name) // a router keeps its tables
	}
	if _, err := now.On(0); errors.Is(err, sharding.ErrStaleMap) {
		return now, err
	}
	return now, nil
}

// unmoved returns the refusal of a statement during whose search slots of a table have moved, or may have.
func unmoved(d *database, of *sharding.Table) error {
	if !of.Map.Leased() {
		return nil
	}
	now, err := present(d, of, nil)
	if err == nil && now.Map.Version() != of.Map.Version() && hasLeft(of, now, func(sharding.Slot, sharding.Target) bool { return true }) {
		err = sharding.ErrSlotMoving
	}
	if err != nil {
		return &sharding.RouteError{Op: "look-up", Table: of.Name, Err: err}
	}
	return nil
}

// areMoving reports whether rows of a query are being moved, or have been moved a short time ago: until they are deleted where they were.
func areMoving(e execution) bool {
	shared := plan.First(e.plan).Map.Shared()
	return len(shared) > 0 && (e.to.IsSpread() || slices.ContainsFunc(shared, plan.SlotsOf(e.plan, unwrapped(e.args)).Has))
}

// overtaken returns the refusal of a statement of a transaction that began before slots of the statement moved.
func overtaken(ctx context.Context, e execution, now *sharding.Table) error {
	if !precedes(ctx, e, now) {
		return nil
	}
	return e.plan.Refusal(now.Name, sharding.ErrSlotMoving, "it has moved since the transaction began: roll back, and run the transaction again")
}

// isOutdated reports whether a statement was refused because its slots move or have moved, or may have: it may be executed later.
func isOutdated(err error) bool {
	return errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, sharding.ErrStaleMap)
}

// mayMove reports whether slots of the tables of a statement may move at any time. If a map has no lease, the program itself exchanges
// maps, and knows when.
func mayMove(p *plan.Plan) bool {
	first := plan.First(p)
	return first != nil && first.Map.Leased()
}

// hasMoved reports whether slots of a statement have moved since it was planned: from its target, or if it has several, from any.
func hasMoved(e execution, planned, now *sharding.Table) bool {
	slots := plan.SlotsOf(e.plan, unwrapped(e.args))
	at, _, err := e.plan.Snapshot.Hinted(planned.Name, sharding.Hint{On: e.to.Target}) // the route may name another table of the group
	isAnywhere := err != nil || e.to.IsSpread()
	return hasLeft(planned, now, func(slot sharding.Slot, was sharding.Target) bool {
		return (isAnywhere || was == at) && slots.Has(slot)
	})
}

// hasLeft reports whether a slot that matches has left the target that it had.
func hasLeft(planned, now *sharding.Table, matches func(slot sharding.Slot, was sharding.Target) bool) bool {
	for slot := range sharding.Slot(planned.Rule.Slots()) {
		was, _ := planned.Map.Target(slot)
		if at, _ := now.Map.Target(slot); at != was && matches(slot, was) {
			return true
		}
	}
	return false
}

// isNewlyShared reports whether slots have been copied since a statement for several targets was planned.
func isNewlyShared(planned, now *sharding.Table, to *plan.Route) bool {
	isNew := func(slot sharding.Slot) bool { return !slices.Contains(planned.Map.Shared(), slot) }
	return to.IsSpread() && slices.ContainsFunc(now.Map.Shared(), isNew)
}

// precedes reports whether slots of a statement have moved since a part of its transaction began, and the statement would not do what
// it would do in one database. Their rows may have been read or locked where they were, and have been changed since elsewhere. And
// where they are now, the transaction may see the rows as they were before they came, which writes and locking queries of MySQL
// and MariaDB do not.
func precedes(ctx context.Context, e execution, now *sharding.Table) bool {
	t, server := e.session.tx, e.session.database.server.Name()
	if t == nil || !mayMove(e.plan) {
		return false
	}
	changes := e.plan.Locks || !e.plan.Statement.ReadsOnly()
	return slices.ContainsFunc(t.parts, func(part *txPart) bool {
		was, ok := part.since.Lookup(now.Name)
		if !ok || was.Map.Version() == now.Map.Version() {
			return false
		}
		left, came := movedSince(e, part, was, now)
		if left && (changes || !t.spans) {
			return true
		}
		return (left || came && !(changes && server == "mysql") && e.plan.Insert == nil) && part.isRepeatable(ctx, t, server, !e.beside)
	})
}

// movedSince reports whether slots that a statement may concern have left the database of a part of its transaction since the part
// began, and whether such slots have come there.
func movedSince(e execution, part *txPart, was, now *sharding.Table) (left, came bool) {
	isSpread, slots := e.to.IsSpread(), plan.SlotsOf(e.plan, unwrapped(e.args))
	isIn := func(at sharding.Target) bool { return e.session.database.poolOrHome(at.DB) == part.pool }
	for slot := range sharding.Slot(now.Rule.Slots()) {
		old, _ := was.Map.Target(slot)
		is, _ := now.Map.Target(slot)
		isOver := isSpread && slices.Contains(was.Map.Shared(), slot) && !slices.Contains(now.Map.Shared(), slot)
		leaves, comes := is != old && isIn(old), isOver || is != old && isIn(is)
		if (leaves && !left || comes && !came) && slots.Has(slot) {
			left, came = left || leaves, came || comes
		}
	}
	return left, came
}

// slotOf is a slot of a table.
type slotOf struct {
	table string
	slot  sharding.Slot
}

// noteLocks records the slots of rows that a query of a transaction has locked: when one has moved, another transaction can lock the same
// rows on the new shard. A write of a row keeps its slot where it is until its transaction ends, because it locks the row of the fence, so
// noteLocks then forgets the slot.
func noteLocks(e execution, answer any) {
	t := e.session.tx
	if t == nil || e.session.inside || !mayMove(e.plan) || e.to.Kind == plan.Home || e.to.Kind == plan.Copies || e.to.Nowhere || e.plan.Statement.Explains {
		return
	}
	of, isQuery := plan.First(e.plan), e.plan.Statement.ReadsOnly()
	switch {
	case isQuery && e.plan.Locks:
		recordLocks(t, of, plan.SlotsOf(e.plan, unwrapped(e.args)))
	case !isQuery && len(t.locked) > 0 && plan.WritesShards(e.plan) && hasWritten(answer):
		slots := plan.SlotsOf(e.plan, unwrapped(e.args)) // of several it is not known in which one it has written
		maps.DeleteFunc(t.locked, func(s slotOf, _ sharding.Target) bool {
			return slots.One && s.slot == slots.Only && e.plan.Snapshot.SameGroup(s.table, of.Name)
		})
	}
}

// hasWritten reports whether the answer to a write says that it has written a row.
func hasWritten(answer any) bool {
	switch a := answer.(type) {
	case driver.Result:
		n, err := a.RowsAffected()
		return err == nil && n > 0
	case *writtenRows:
		return a.err == nil
	case *resultset.Held:
		return len(a.Rows) > 0
	}
	return false
}

// recordLocks records slots of a table with their targets.
func recordLocks(t *transaction, of *sharding.Table, slots proof.Slots) {
	if t.locked == nil {
		t.locked = map[slotOf]sharding.Target{}
	}
	list := slots.List()
	for slot := sharding.Slot(0); slots.All && int(slot) < of.Rule.Slots(); slot++ {
		list = append(list, slot)
	}
	for _, slot := range list {
		t.locked[slotOf{of.Name, slot}], _ = of.Map.Target(slot)
	}
}

// checkLocks refuses the COMMIT of a transaction whose locked rows another one may have locked on another shard since.
func checkLocks(t *transaction) error {
	for s, was := range t.locked {
		of, _ := t.session.database.router.Snapshot().Lookup(s.table) // a router keeps its tables
		at, err := of.On(s.slot)
		if err == nil && at != was {
			err = sharding.ErrSlotMoving
		}
		if err != nil {
			return &sharding.RouteError{Op: "commit", Table: of.Name, Err: err,
				Hint: "the transaction is rolled back, because another one may lock the same rows on the new shard of their slot; run it again"}
		}
	}
	return nil
}
