// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// acquisition acquires one lease. Statements that commit by themselves create missing rows of
// the ledger. Then one transaction locks the row of a free worker id and writes the lease into
// it. So a process that hangs in the middle blocks no other.
type acquisition struct {
	claim        workerid.Claim
	ticks        ticks
	present      present
	header       header
	namespaceRow namespaceRow // set once its layout is the claim's
}

// maxRounds bounds how often something may have to be created first: normally once each the
// header, the namespace and the rows.
const maxRounds = 10

func (t acquisition) run(ctx context.Context, s session) (e workerid.Entry, err error) {
	for range maxRounds {
		var due *statement
		err := s.inTx(ctx, func() (err error) {
			e, due, err = t.take(ctx, s)
			return err
		})
		if err != nil || due == nil {
			return e, err
		}
		if err := s.make(ctx, due); err != nil {
			return e, err
		}
	}
	return e, errSkipped
}

// take returns the lease, or the statement that must run first.
func (t acquisition) take(ctx context.Context, s session) (e workerid.Entry, due *statement, err error) {
	p, err := s.present(ctx)
	if err != nil {
		return e, nil, err
	}
	h, sp, err := s.namespace(ctx, t.claim.Namespace)
	if err != nil {
		return e, nil, err
	}
	if h.found && !p.isServer(h.identity) {
		if err := s.confirm(ctx); err != nil {
			return e, nil, err
		}
	}
	if due := h.due(p, t.claim.Term.Microseconds()); due != nil {
		return e, due, nil
	}
	t.present, t.header = p, h
	if sp == nil {
		due, err := t.addNamespace(ctx, s)
		return e, due, err
	}
	if t.ticks.at(p.micros) < 0 {
		return e, nil, fmt.Errorf("%w: the database's clock reads %v, before the layout's epoch", keygen.ErrLayout, time.UnixMicro(p.micros).UTC())
	}
	t.namespaceRow, due, err = t.resolveLayout(ctx, s, *sp, p)
	if due != nil || err != nil {
		return e, due, err
	}
	if due, err := t.noteRows(ctx, s); due != nil || err != nil {
		return e, due, err
	}
	return t.choose(ctx, s, t.ticks.at(p.micros))
}

const noteRows = `UPDATE "worker_namespace" SET "longest_us" = ? WHERE "namespace" = ? AND "longest_us" < ?`

// noteRows returns the statement that stores how many rows of worker_lease the namespace has, nil
// when that many are stored. Rows that somebody deletes later are then known to be missing.
func (t acquisition) noteRows(ctx context.Context, s session) (*statement, error) {
	count, err := s.rows(ctx, t.claim.Namespace)
	if err != nil || count <= t.namespaceRow.rows {
		return nil, err
	}
	return &statement{noteRows, []any{count, t.claim.Namespace, count}}, nil
}

const addSpace = `INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us", "layout")
	VALUES (?, ?, ?, '', 0, 0, ?)`

// addNamespace refuses a namespace that has leases already, because nobody knows which times
// their ceilings mean. Another process may have added both since the namespace was read, so
// addNamespace reads it again.
func (t acquisition) addNamespace(ctx context.Context, s session) (*statement, error) {
	add := &statement{addSpace, []any{t.claim.Namespace, t.ticks.epoch, -t.ticks.unit * 1000, t.claim.Layout.Fingerprint()}}
	count, err := s.rows(ctx, t.claim.Namespace)
	if err != nil || count == 0 {
		return add, err
	}
	_, sp, err := s.namespace(ctx, t.claim.Namespace)
	if err == nil && sp == nil {
		err = fmt.Errorf("%w: worker_lease has rows of namespace %q, but its row in worker_namespace is missing; restore it, or delete the rows of worker_lease when no process runs and a term has passed", keygen.ErrLayout, t.claim.Namespace)
	}
	return add, err
}

// choose takes the first free worker id that no other process has locked.
func (t acquisition) choose(ctx context.Context, s session, now int64) (e workerid.Entry, due *statement, err error) {
	ids, fresh, err := t.free(ctx, s, t.freeAt(now))
	if err != nil {
		return e, nil, err
	}
	if t.claim.Sticky && !fresh {
		if due, err := t.unused(ctx, s); due != nil || err != nil {
			return e, due, err
		}
	}
	for _, id := range ids {
		r, found, err := s.lock(ctx, t.claim.Namespace, id, skipLocked(s.server))
		if err != nil {
			return e, nil, err
		}
		if found && (r.owner == t.claim.Owner || t.claim.Sticky && r.holder == truncatedHolder(t.claim.Holder) || r.ceiling <= t.freeAt(now)) {
			e, err := t.write(ctx, s, r, now)
			return e, nil, err
		}
	}
	due, err = t.addRows(ctx, s, now)
	return e, due, err
}

// freeAt is the highest ceiling of a free worker id. After a change of the layout all ceilings
// are at the floor, which lies a tick ahead.
func (t acquisition) freeAt(now int64) int64 { return max(now, t.floor()) }

// floor is the first tick with which leases of the namespace may begin.
func (t acquisition) floor() int64 {
	if t.namespaceRow.floor == 0 {
		return 0
	}
	return t.ticks.at(t.namespaceRow.floor)
}

// candidates is the number of free worker ids that are tried. More processes than that hardly
// ever take one in the same millisecond.
const candidates = 64

// The rows are in the order of the ledger's contract: the owner's own, then the one that has
// been free longest, then one that was never used. For sticky holders the order is: the owner's
// own, the one that the holder had last, one that was never used, the one that has been free
// longest.
const (
	freeRows = `SELECT "worker_id", 1 FROM "worker_lease"
	WHERE "namespace" = ? AND ("owner" = ? OR "ceiling" <= ? AND "worker_id" <= ?)
	ORDER BY CASE WHEN "owner" = ? THEN 0 WHEN "generation" > 0 THEN 1 ELSE 2 END, "ceiling", "worker_id" LIMIT ?`

	stickyRows = `SELECT "worker_id", CASE WHEN "owner" = ? OR "holder" = ? OR "generation" = 0 THEN 1 ELSE 0 END FROM "worker_lease"
	WHERE "namespace" = ? AND ("owner" = ? OR "holder" = ? AND "worker_id" <= ? OR "ceiling" <= ? AND "worker_id" <= ?)
	ORDER BY CASE WHEN "owner" = ? THEN 0 WHEN "holder" = ? THEN 1 WHEN "generation" = 0 THEN 2 ELSE 3 END, "ceiling", "worker_id" LIMIT ?`
)

// free returns worker ids that were free a moment ago; the lock on a row decides. Fresh means
// that the first of them is the owner's or holder's, or was never used.
func (t acquisition) free(ctx context.Context, s session, now int64) (ids []int64, fresh bool, err error) {
	c, text := t.claim, freeRows
	args := []any{c.Namespace, c.Owner, now, c.Most, c.Owner, candidates}
	if c.Sticky {
		holder := truncatedHolder(c.Holder)
		text = stickyRows
		args = []any{c.Owner, holder, c.Namespace, c.Owner, holder, c.Most, now, c.Most, c.Owner, holder, candidates}
	}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var id, is int64
		err := rows.Scan(&id, &is)
		fresh = fresh || len(ids) == 0 && is == 1
		ids = append(ids, id)
		return err
	}, text, args...)
	return ids, fresh, err
}

// unused returns the statement that creates rows for worker ids that were never used, nil when
// all have one.
func (t acquisition) unused(ctx context.Context, s session) (*statement, error) {
	first, err := s.rows(ctx, t.claim.Namespace)
	if err != nil || first > t.claim.Most {
		return nil, err
	}
	return t.addRowsOf(t.ticks, t.namespaceRow, first, min(first+newRows-1, t.claim.Most)), nil
}

// lease is a row of worker_lease: the owner of a worker id, the ceiling, and the era in which
// the owner took it. Generation 0 means that the worker id was never used.
type lease struct {
	worker        int64
	owner, holder string
	era           int64
	generation    int64
	ceiling       int64
}

const readLease = `SELECT "worker_id", "owner", "holder", "era", "generation", "ceiling" FROM "worker_lease"
	WHERE "namespace" = ? AND "worker_id" = ?`

// lock locks a row and returns its present content.
func (s session) lock(ctx context.Context, namespace string, worker int64, how string) (r lease, found bool, err error) {
	var owner sql.NullString
	err = s.row(ctx, readLease+how, namespace, worker).Scan(&r.worker, &owner, &r.holder, &r.era, &r.generation, &r.ceiling)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	r.owner = owner.String
	return r, true, err
}

const writeLease = `UPDATE "worker_lease" SET "owner" = ?, "holder" = ?, "era" = ?, "generation" = ?, "ceiling" = ?
	WHERE "namespace" = ? AND "worker_id" = ? AND "generation" = ?`

// write gives the locked row r to the claim's owner. It reads the layout again. A process that
// changes the layout marks the namespace before it locks the rows, so either write finds the
// mark or that process finds the lease.
func (t acquisition) write(ctx context.Context, s session, r lease, now int64) (workerid.Entry, error) {
	if _, sp, err := s.namespace(ctx, t.claim.Namespace); err != nil {
		return workerid.Entry{}, err
	} else if sp == nil || *sp != t.namespaceRow || r.worker >= sp.rows {
		return workerid.Entry{}, errSkipped
	}
	e := workerid.Entry{
		Worker:     r.worker,
		Generation: r.generation + 1,
		NotBefore:  max(now, t.ticks.at(t.header.safeFrom), t.floor(), r.ceiling),
	}
	e.Ceiling = max(now+t.ticks.in(t.claim.Term), e.NotBefore)
	written, err := s.changed(ctx, writeLease, t.claim.Owner, truncatedHolder(t.claim.Holder), t.header.safeFrom, e.Generation, e.Ceiling,
		t.claim.Namespace, r.worker, r.generation)
	if err == nil && !written {
		err = changedUnderLock(s.server)
	}
	return e, err
}

// changedUnderLock is the error of a locked row that has changed. A member of a cluster writes
// what another member has committed whoever holds the lock, and may answer one more statement of
// the holder's transaction before it says that this is rolled back.
func changedUnderLock(server dialect.Server) error {
	if server.Cluster != dialect.NoCluster {
		return errOverruled
	}
	return &keygen.SetupError{Err: errors.New("the row changed although it was locked"), Cure: "make worker_lease a table with row locks (InnoDB)"}
}

// newRows is the number of worker ids that get a row at a time, so that processes which start
// together rarely wait for each other.
const newRows = 16

// addRows returns the statement that creates rows for worker ids that were never used.
func (t acquisition) addRows(ctx context.Context, s session, now int64) (*statement, error) {
	due, err := t.unused(ctx, s)
	if due == nil && err == nil {
		err = t.noWorker(ctx, s, now)
	}
	return due, err
}

// deletedRow is the holder of a row that was created again.
const deletedRow = "somebody whose row in worker_lease was deleted"

// addRowsOf returns the statement that creates the rows of the worker ids first to last, with
// ceilings in the ticks of. If a row was there before, somebody has deleted it, and a process may
// still have its lease: so the worker id is free when the longest term has passed.
func (t acquisition) addRowsOf(of ticks, sp namespaceRow, first, last int64) *statement {
	lost := of.at(t.present.micros) + of.in(time.Duration(t.header.longest)*time.Microsecond)
	due := &statement{text: `INSERT INTO "worker_lease" ("namespace", "worker_id", "owner", "holder", "era", "generation", "ceiling") VALUES `}
	for id := first; id <= last; id++ {
		if id > first {
			due.text += ", "
		}
		due.text += "(?, ?, NULL, ?, 0, 0, ?)"
		holder, ceiling := "", t.floor()
		if id < sp.rows {
			holder, ceiling = deletedRow, max(ceiling, lost)
		}
		due.args = append(due.args, t.claim.Namespace, id, holder, ceiling)
	}
	return due
}

// rows returns how many worker ids of a namespace have a row; they are consecutive from 0.
func (s session) rows(ctx context.Context, namespace string) (n int64, err error) {
	err = s.row(ctx, `SELECT COALESCE(MAX("worker_id") + 1, 0) FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" < ?`, namespace, lastRow).Scan(&n)
	return n, err
}

// noWorker returns an error that says how many worker ids are held and by whom. If some are not
// held, other processes are just taking them, or created their rows meanwhile.
func (t acquisition) noWorker(ctx context.Context, s session, now int64) error {
	const counts = `SELECT COUNT(*), COUNT(CASE WHEN "ceiling" > ? THEN 1 END) FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" <= ?`
	var all, held int
	if err := s.row(ctx, counts, t.freeAt(now), t.claim.Namespace, t.claim.Most).Scan(&all, &held); err != nil {
		return err
	}
	if held < all {
		return errSkipped
	}
	holders, err := t.holders(ctx, s)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: all %d worker ids of namespace %q are held, by %s; end some of these processes, wait until the leases of dead ones have ended, or change to a layout with more worker bits as package workerid describes",
		keygen.ErrNoWorker, held, t.claim.Namespace, holders)
}

// holders returns the names of some holders of worker ids.
func (t acquisition) holders(ctx context.Context, s session) (string, error) {
	const named = `SELECT "holder" FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" <= ? ORDER BY "worker_id" LIMIT 4`
	var names []string
	err := s.each(ctx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, named, t.claim.Namespace, t.claim.Most)
	if len(names) == 4 {
		names[3] = "others"
	}
	return strings.Join(names, ", "), err
}
