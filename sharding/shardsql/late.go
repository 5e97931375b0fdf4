// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// writtenRows are the rows of a write. MariaDB executes it while they are read, so the refusal of a slot's former shard comes with them:
// with the first one, unless rows of other slots come before.
type writtenRows struct {
	resultset.Described

	first []driver.Value // nil when it was returned
	err   error          // of the first row
}

// readWritten reads the first row. It closes the rows if their error is that a slot is moving, and if there are none, after which left
// is asked for a refusal.
func readWritten(rows driver.Rows, left func() error) (driver.Rows, error) {
	first := make([]driver.Value, len(rows.Columns()))
	err := sharding.SlotMoving(rows.Next(first))
	failed := err
	if resultset.IsEOF(err) {
		failed = left()
	}
	if errors.Is(failed, sharding.ErrSlotMoving) || errors.Is(failed, sharding.ErrStaleMap) {
		_ = rows.Close() // its error is the same, or does not matter
		return nil, failed
	}
	return &writtenRows{resultset.Described{Rows: rows}, first, err}, nil
}

func (r *writtenRows) Next(dest []driver.Value) error {
	if r.first == nil {
		return sharding.SlotMoving(r.Rows.Next(dest))
	}
	copy(dest, r.first)
	r.first = nil
	return r.err
}

func (r *writtenRows) Close() error { return sharding.SlotMoving(r.Rows.Close()) }

// slotWait is how a statement waits while slots that it needs are moving. The zero value has not waited yet.
type slotWait struct {
	home  *sql.Conn // that the session had at home before the statement
	began time.Time
	again time.Duration // after which a statement is sent again that a shard's database has refused
}

// outlast waits until a statement that was refused because slots are moving may be planned again, and returns nil. It returns
// any other error, and nil, as it is. A switch holds slots for a moment, and the map says for how long to wait for
// that; slots that are shared are not waited for, as they stay so until all of their rows are copied. A statement on a lookup table
// does not wait, because the statement to which it belongs may have locked rows: that one begins again.
func (w *slotWait) outlast(ctx context.Context, s *session, p *plan.Plan, sent *sharding.Snapshot, failed error) error {
	if failed == nil || !errors.Is(failed, sharding.ErrSlotMoving) {
		return failed
	}
	t := plan.First(p)
	var refusal *sharding.RouteError
	isHeld := errors.As(failed, &refusal)
	if isHeld {
		if of, known := sent.Lookup(refusal.Table); known { // it may be a lookup table
			t = of
		}
	}
	if t == nil || t.Map.Patience() <= 0 || s.inside || !mayBeginAgain(s) {
		return failed
	}
	var committed *sharding.PartialCommitError
	isPresent := s.database.router.Snapshot() == sent
	if isHeld && len(t.Map.Held()) == 0 && isPresent || errors.As(failed, &committed) || !p.Single() {
		return failed
	}
	if err := startAgain(s.tx); err != nil {
		return errors.Join(failed, err)
	}
	if w.home == nil { // others need it meanwhile, such as the store of the map
		_ = leaveHome(s) // the error of a broken connection does not matter
	}
	if w.began.IsZero() {
		w.began = time.Now()
	}
	limited, cancel := context.WithDeadline(ctx, w.began.Add(t.Map.Patience()))
	defer cancel()
	var resend <-chan time.Time // nil for never: the router itself has refused the statement
	if !isHeld {
		w.again = min(max(2*w.again, 20*time.Millisecond), time.Second)
		soon := time.NewTimer(w.again)
		defer soon.Stop()
		resend = soon.C
	}
	if s.tx != nil {
		defer context.AfterFunc(s.tx.ctx, cancel)()
	}
	select {
	case <-s.database.router.Replaced(sent):
	case <-resend:
	case <-limited.Done():
		cause := context.Cause(ctx)
		if s.tx != nil {
			cause = cmp.Or(cause, context.Cause(s.tx.ctx))
		}
		return &waitedError{failed, cause, time.Since(w.began)}
	}
	return nil
}

// waitedError is that slots were still moving at the end of a wait. Nothing is tried any more.
type waitedError struct {
	failed, cause error // cause is nil at the end of the patience
	waited        time.Duration
}

func (e *waitedError) Error() string {
	text := fmt.Sprintf("%v; waited %s", e.failed, e.waited.Round(time.Millisecond))
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *waitedError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.failed}
	}
	return []error{e.failed, e.cause}
}

// mayRewrite reports whether a refused statement may be sent in another form.
func mayRewrite(err error) bool {
	var waited *waitedError
	return isRefusal(err) && !errors.As(err, &waited)
}

// late returns the refusal of a text that would be sent after slots of its tables have moved, or have been copied, or may have: it may
// have waited for a connection since it was planned, and would read rows of such slots twice, or not at all, or write rows that
// have left.
func late(ctx context.Context, e execution) error {
	if !mayMove(e.plan) || e.to.Kind == plan.Home || e.to.Kind == plan.Copies {
		return nil
	}
	now, err := atPresent(e)
	if err == nil && isNewlyShared(plan.First(e.plan), now, e.to) {
		err = e.plan.Refusal(now.Name, sharding.ErrSlotMoving, "")
	}
	if err != nil {
		return err
	}
	return overtaken(ctx, e, now)
}

// left returns the refusal of a text that was executed, and may have been on its way for so long that its rows had left: then the old
// shard has found none that it could refuse. A text that reached its shard in time has read all of its rows, however long it takes: they
// stay until no process plans by an older map. A query of several shards, which may take longer than slots need to move, is not repeated.
func left(e execution) error {
	if !mayMove(e.plan) || e.to.Kind != plan.One && e.to.Kind != plan.Several {
		return nil
	}
	_, err := atPresent(e)
	return err
}

// mayPart reports whether a write of one shard concerns rows of several slots, of which some may have left when it is executed. It needs a
// transaction then, because the shard changes the others. A shard refuses new rows of slots that have left.
func mayPart(e execution) bool {
	if !mayMove(e.plan) || e.to.Kind != plan.One || e.plan.Insert != nil {
		return false
	}
	of := plan.Concerned(e.plan, unwrapped(e.args))
	return !of.One && !of.Empty()
}

// atPresent returns the first table of a statement as it is now, and the refusal of a statement that a target gets after slots of
// the statement have moved from there, or may have.
func atPresent(e execution) (*sharding.Table, error) {
	planned := plan.First(e.plan)
	now := planned
	if s := e.session.database.router.Snapshot(); s != e.plan.Snapshot {
		now, _ = s.Lookup(planned.Name) // a router keeps its tables
	}
	switch _, err := now.On(0); {
	case errors.Is(err, sharding.ErrStaleMap):
		return now, e.plan.Refusal(now.Name, err, "")
	case now != planned && hasMoved(e, planned, now):
		return now, e.plan.Refusal(now.Name, sharding.ErrSlotMoving, "")
	}
	return now, nil
}

// overtaken returns the refusal of a statement of a transaction that began before slots of the statement moved.
func overtaken(ctx context.Context, e execution, now *sharding.Table) error {
	if !precedes(ctx, e, now) {
		return nil
	}
	return e.plan.Refusal(now.Name, sharding.ErrSlotMoving, "it has moved since the transaction began: roll back, and run the transaction again")
}

// mayMove reports whether slots of the tables of a statement may move at any time. If a map has no lease, the program itself exchanges
// maps, and knows when.
func mayMove(p *plan.Plan) bool {
	first := plan.First(p)
	return first != nil && first.Map.Leased()
}

// hasMoved reports whether slots that a statement may concern have moved since it was planned: from its target, or if it has several, from any.
func hasMoved(e execution, planned, now *sharding.Table) bool {
	args := unwrapped(e.args)
	return hasLeft(planned, now, func(slot sharding.Slot, was sharding.Target) bool {
		return (e.to.IsSpread() || was == e.to.Target) && plan.MayConcern(e.plan, args, slot)
	})
}

// hasLeft reports whether a slot for which is returns true has left the target that it had.
func hasLeft(planned, now *sharding.Table, is func(slot sharding.Slot, was sharding.Target) bool) bool {
	if now.Map.Version() == planned.Map.Version() {
		return false
	}
	for slot := range sharding.Slot(planned.Rule.Slots()) {
		was, _ := planned.Map.Target(slot)
		if at, _ := now.Map.Target(slot); at != was && is(slot, was) {
			return true
		}
	}
	return false
}

// isNewlyShared reports whether slots have been copied since a statement for several targets was planned.
func isNewlyShared(planned, now *sharding.Table, to *plan.Route) bool {
	isNew := func(slot sharding.Slot) bool { return !slices.Contains(planned.Map.Shared(), slot) }
	return to.IsSpread() && now.Map.Version() != planned.Map.Version() && slices.ContainsFunc(now.Map.Shared(), isNew)
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
	isSpread, args := e.to.IsSpread(), unwrapped(e.args)
	isIn := func(at sharding.Target) bool { return e.session.database.poolOrHome(at.DB) == part.pool }
	for slot := range sharding.Slot(now.Rule.Slots()) {
		old, _ := was.Map.Target(slot)
		is, _ := now.Map.Target(slot)
		isOver := isSpread && slices.Contains(was.Map.Shared(), slot) && !slices.Contains(now.Map.Shared(), slot)
		leaves, comes := is != old && isIn(old), isOver || is != old && isIn(is)
		if (leaves && !left || comes && !came) && plan.MayConcern(e.plan, args, slot) {
			left, came = left || leaves, came || comes
		}
	}
	return left, came
}

// levels are the queries for the isolation level of a transaction that has begun with the default one. SQLite has one level.
var levels = map[string]string{
	"mysql":    "SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')",
	"postgres": "SELECT '', current_setting('transaction_isolation')",
}

// isRepeatable reports whether all queries of the part see the same rows. A server has its own default isolation level, for which it is
// asked once, and not if mayAsk is false. The answer is yes if the server does not tell.
func (b *txPart) isRepeatable(ctx context.Context, t *transaction, server string, mayAsk bool) bool {
	query, level := levels[server], sql.IsolationLevel(t.options.Isolation)
	if query == "" || level != sql.LevelDefault {
		return query == "" || level >= sql.LevelRepeatableRead
	}
	if b.level == "" && mayAsk {
		var name string
		if err := b.inner.SQL.QueryRowContext(ctx, query).Scan(&name, &b.level); err != nil {
			b.level = ""
		}
	}
	return !strings.HasPrefix(strings.ToLower(b.level), "read")
}

// A write keeps its slot where it is until its transaction ends, because it locks the row of the fence. A query that locks rows does not:
// when the slot has moved, another transaction can lock the same rows on the new shard.

// slotOf is a slot of a table.
type slotOf struct {
	table string
	slot  sharding.Slot
}

// noteLocks records the slots of rows that a query of a transaction has locked, and forgets those that a write keeps where they are.
func noteLocks(e execution, answer any) {
	t := e.session.tx
	if t == nil || e.session.inside || !mayMove(e.plan) || e.to.Kind == plan.Home || e.to.Kind == plan.Copies || e.to.Nowhere {
		return
	}
	isLock := e.plan.Statement.Verb == sqlparse.Select
	if isLock && !e.plan.Locks || !isLock && len(t.locked) == 0 {
		return
	}
	of, slots := plan.First(e.plan), plan.Concerned(e.plan, unwrapped(e.args))
	if isLock {
		lock(t, of, slots)
		return
	}
	if r, is := answer.(driver.Result); is {
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return
		}
	}
	if slots.One { // otherwise the rows may be of any of them
		maps.DeleteFunc(t.locked, func(s slotOf, _ sharding.Target) bool {
			return s.slot == slots.Only && e.plan.Snapshot.SameGroup(s.table, of.Name)
		})
	}
}

// lock records slots of a table.
func lock(t *transaction, of *sharding.Table, slots proof.Slots) {
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

// unlocked refuses the COMMIT of a transaction whose locked rows another one may have locked on another shard since.
func unlocked(t *transaction) error {
	for s, was := range t.locked {
		of, _ := t.session.database.router.Snapshot().Lookup(s.table) // a router keeps its tables
		at, err := of.On(s.slot)
		if err == nil && at != was {
			err = sharding.ErrSlotMoving
		}
		if err != nil {
			return &sharding.RouteError{Op: "commit", Table: of.Name, Err: err, Hint: "it is rolled back, because others may have locked its rows on another shard; run the transaction again"}
		}
	}
	return nil
}
