package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// taking is the taking of one lease. Rows that the ledger does not have yet are
// made by statements that commit by themselves; then one transaction locks the
// row of a worker id that is free and writes the lease into it. So a process
// that hangs in the middle holds up nobody.
type taking struct {
	claim workerid.Claim
	ticks ticks
	space space // the namespace's, once it is settled
}

// rounds is how often something may have to be made first: normally once each
// the header, the namespace and the rows.
const rounds = 10

func (t taking) run(ctx context.Context, s session) (e workerid.Entry, err error) {
	for range rounds {
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

// take returns the lease, or the statement that has to be run before.
func (t taking) take(ctx context.Context, s session) (e workerid.Entry, due *statement, err error) {
	p, err := s.present(ctx)
	if err != nil {
		return e, nil, err
	}
	h, sp, err := s.namespace(ctx, t.claim.Namespace)
	if err != nil {
		return e, nil, err
	}
	if h.found && !p.knows(h.identity) {
		if err := s.confirm(ctx); err != nil {
			return e, nil, err
		}
	}
	if due := h.due(p, t.claim.Term.Microseconds()); due != nil {
		return e, due, nil
	}
	if sp == nil {
		due, err := t.addNamespace(ctx, s)
		return e, due, err
	}
	if t.ticks.at(p.micros) < 0 {
		return e, nil, fmt.Errorf("%w: by the database's clock it is %v, before the layout's epoch", keygen.ErrLayout, time.UnixMicro(p.micros).UTC())
	}
	t.space, due, err = t.settle(ctx, s, *sp, p)
	if due != nil || err != nil {
		return e, due, err
	}
	return t.choose(ctx, s, h, t.ticks.at(p.micros))
}

const addSpace = `INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us", "layout")
	VALUES (?, ?, ?, '', 0, 0, ?)`

// addNamespace refuses one that has leases already: nobody knows what times
// their ceilings mean. They may have come since we looked for the namespace, so
// it is looked for again.
func (t taking) addNamespace(ctx context.Context, s session) (*statement, error) {
	add := &statement{addSpace, []any{t.claim.Namespace, t.ticks.epoch, -t.ticks.unit * 1000, t.claim.Layout.Fingerprint()}}
	count, err := s.rows(ctx, t.claim.Namespace)
	if err != nil || count == 0 {
		return add, err
	}
	_, sp, err := s.namespace(ctx, t.claim.Namespace)
	if err == nil && sp == nil {
		err = fmt.Errorf("%w: worker_lease has rows of namespace %q, but its row in worker_namespace is gone; restore it, or delete those when no process runs and a term has passed", keygen.ErrLayout, t.claim.Namespace)
	}
	return add, err
}

// choose takes the first of the free worker ids that nobody else is just taking.
func (t taking) choose(ctx context.Context, s session, h header, now int64) (e workerid.Entry, due *statement, err error) {
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
		if found && (r.owner == t.claim.Owner || t.claim.Sticky && r.holder == shown(t.claim.Holder) || r.ceiling <= t.freeAt(now)) {
			e, err := t.write(ctx, s, h, r, now)
			return e, nil, err
		}
	}
	due, err = t.addRows(ctx, s, now)
	return e, due, err
}

// freeAt is the tick up to which the ceilings of free worker ids are. Where the
// layout was just changed they are all at the floor, which is a tick ahead.
func (t taking) freeAt(now int64) int64 { return max(now, t.floor()) }

// floor is the first tick that leases of the namespace may begin with.
func (t taking) floor() int64 {
	if t.space.floor == 0 {
		return 0
	}
	return t.ticks.at(t.space.floor)
}

// candidates is how many free worker ids are looked at; more processes than that
// do not take one in the same millisecond.
const candidates = 64

// The rows come in the order of the contract: the owner's own, the one that rested
// longest, one that nobody ever had. Sticky holders have an order of their own: the
// owner's, the one that the holder had last, one that nobody had, the one that rested.
const (
	freeRows = `SELECT "worker_id", 1 FROM "worker_lease"
	WHERE "namespace" = ? AND ("owner" = ? OR "ceiling" <= ? AND "worker_id" <= ?)
	ORDER BY CASE WHEN "owner" = ? THEN 0 WHEN "generation" > 0 THEN 1 ELSE 2 END, "ceiling", "worker_id" LIMIT ?`

	stickyRows = `SELECT "worker_id", CASE WHEN "owner" = ? OR "holder" = ? OR "generation" = 0 THEN 1 ELSE 0 END FROM "worker_lease"
	WHERE "namespace" = ? AND ("owner" = ? OR "holder" = ? AND "worker_id" <= ? OR "ceiling" <= ? AND "worker_id" <= ?)
	ORDER BY CASE WHEN "owner" = ? THEN 0 WHEN "holder" = ? THEN 1 WHEN "generation" = 0 THEN 2 ELSE 3 END, "ceiling", "worker_id" LIMIT ?`
)

// free returns worker ids that were free a moment ago; whether they are is seen
// when they are locked. Fresh tells that the first of them is the owner's or holder's,
// or that nobody had it.
func (t taking) free(ctx context.Context, s session, now int64) (ids []int64, fresh bool, err error) {
	c, text := t.claim, freeRows
	args := []any{c.Namespace, c.Owner, now, c.Most, c.Owner, candidates}
	if c.Sticky {
		holder := shown(c.Holder)
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

// unused returns the statement that makes rows for worker ids that nobody ever had,
// nil when all have one.
func (t taking) unused(ctx context.Context, s session) (*statement, error) {
	first, err := s.rows(ctx, t.claim.Namespace)
	if err != nil || first > t.claim.Most {
		return nil, err
	}
	return t.addRowsOf(first, min(first+newRows-1, t.claim.Most)), nil
}

// lease is a row of worker_lease: who has a worker id, until when, and in which
// era he took it. Generation 0 means that nobody ever had it.
type lease struct {
	worker        int64
	owner, holder string
	era           int64
	generation    int64
	ceiling       int64
}

const readLease = `SELECT "worker_id", "owner", "holder", "era", "generation", "ceiling" FROM "worker_lease"
	WHERE "namespace" = ? AND "worker_id" = ?`

// lock locks a row and returns it as it then is, whatever was seen before.
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

// write gives the locked row r to the claim's owner. The layout is looked at once
// more: who changes it marks the namespace before he locks the rows, and so either
// we find the mark or he finds our lease.
func (t taking) write(ctx context.Context, s session, h header, r lease, now int64) (workerid.Entry, error) {
	if _, sp, err := s.namespace(ctx, t.claim.Namespace); err != nil {
		return workerid.Entry{}, err
	} else if sp == nil || *sp != t.space {
		return workerid.Entry{}, errSkipped
	}
	e := workerid.Entry{
		Worker:     r.worker,
		Generation: r.generation + 1,
		NotBefore:  max(now, t.ticks.at(h.safeFrom), t.floor(), r.ceiling),
	}
	e.Ceiling = max(now+t.ticks.in(t.claim.Term), e.NotBefore)
	written, err := s.changed(ctx, writeLease, t.claim.Owner, shown(t.claim.Holder), h.safeFrom, e.Generation, e.Ceiling,
		t.claim.Namespace, r.worker, r.generation)
	if err == nil && !written {
		err = &keygen.SetupError{Err: errors.New("the row changed though it was locked"), Cure: "make worker_lease a table with row locks (InnoDB)"}
	}
	return e, err
}

// newRows is how many worker ids get a row at a time, so that processes that
// start together rarely wait for each other's.
const newRows = 16

// addRows returns the statement that makes rows for worker ids that nobody ever
// had.
func (t taking) addRows(ctx context.Context, s session, now int64) (*statement, error) {
	due, err := t.unused(ctx, s)
	if due == nil && err == nil {
		err = t.noWorker(ctx, s, now)
	}
	return due, err
}

// addRowsOf returns the statement that makes the rows of the worker ids first to
// last.
func (t taking) addRowsOf(first, last int64) *statement {
	due := &statement{text: `INSERT INTO "worker_lease" ("namespace", "worker_id", "owner", "holder", "era", "generation", "ceiling") VALUES `}
	for id := first; id <= last; id++ {
		if id > first {
			due.text += ", "
		}
		due.text += "(?, ?, NULL, '', 0, 0, ?)"
		due.args = append(due.args, t.claim.Namespace, id, t.floor())
	}
	return due
}

// rows returns how many worker ids of a namespace have a row, from 0 on.
func (s session) rows(ctx context.Context, namespace string) (n int64, err error) {
	err = s.row(ctx, `SELECT COALESCE(MAX("worker_id") + 1, 0) FROM "worker_lease" WHERE "namespace" = ? AND "worker_id" < ?`, namespace, lastRow).Scan(&n)
	return n, err
}

// noWorker says how many worker ids are held and by whom. Where some are not,
// others are just taking them, or made their rows after we looked.
func (t taking) noWorker(ctx context.Context, s session, now int64) error {
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

// holders names some of those who hold worker ids.
func (t taking) holders(ctx context.Context, s session) (string, error) {
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
