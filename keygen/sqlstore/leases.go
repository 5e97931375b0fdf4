// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// Leases returns the ledger of leased worker ids, stored in worker_namespace and worker_lease,
// for [workerid.NewLeased]. Its clock is the database's, in microseconds (SQLite's has
// milliseconds), so units of layouts must be whole microseconds; otherwise the error wraps
// [keygen.ErrLayout]. Worker_namespace stores the layout of each namespace in a column that
// tables of earlier versions lack: the error is then a [keygen.SetupError] with the ALTER TABLE
// to run.
func (s *Store) Leases() workerid.Ledger { return &ledger{store: s} }

type ledger struct {
	store *Store
	given atomic.Bool // a lease was granted, so this process has started already
}

var _ workerid.Ledger = (*ledger)(nil)

// Take implements workerid.Ledger.
func (l *ledger) Take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	t := acquisition{claim: c}
	if t.ticks, err = check(c); err == nil {
		err = l.store.do(ctx, func(s session) error {
			if err := l.store.checkLeases(ctx, s); err != nil {
				return err
			}
			e, err = t.run(ctx, s)
			return err
		})
	}
	if err != nil && !l.given.Load() {
		err = writable(err)
	}
	if err != nil {
		return workerid.Entry{}, fmt.Errorf("sqlstore: take a lease: %w", err)
	}
	l.given.Store(true)
	return e, nil
}

// Renew implements workerid.Ledger.
func (l *ledger) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	ticks, err := check(c)
	if err == nil {
		err = l.store.do(ctx, func(s session) error {
			return s.inTx(ctx, func() (err error) {
				ceiling, err = s.renew(ctx, ticks, c, e)
				return err
			})
		})
	}
	if err != nil {
		return 0, fmt.Errorf("sqlstore: renew a lease: %w", err)
	}
	l.given.Store(true) // perhaps to a former process, see LeasedConfig.File
	return ceiling, nil
}

const raiseCeiling = `UPDATE "worker_lease" SET "ceiling" = ? WHERE "namespace" = ? AND "worker_id" = ? AND "owner" = ? AND "generation" = ?`

// renew reads the present before it locks the row, so the time is never later than the lock.
func (s session) renew(ctx context.Context, ticks ticks, c workerid.Claim, e workerid.Entry) (int64, error) {
	p, err := s.present(ctx)
	if err != nil {
		return 0, err
	}
	h, sp, err := s.namespace(ctx, c.Namespace)
	if err != nil {
		return 0, err
	}
	r, found, err := s.lock(ctx, c.Namespace, e.Worker, forUpdate(s.server))
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, fmt.Errorf("%w: somebody has deleted the row of worker id %d from worker_lease", keygen.ErrWorkerLost, e.Worker)
	case r.owner != c.Owner || r.generation != e.Generation:
		return 0, fmt.Errorf("%w: worker id %d is held by %q now", keygen.ErrWorkerLost, e.Worker, r.holder)
	case sp != nil && sp.layout != "" && sp.layout != c.Layout.Fingerprint():
		return 0, fmt.Errorf("%w: the layout of namespace %q is %q now", keygen.ErrWorkerLost, c.Namespace, sp.layout)
	case !p.isServer(h.identity) || r.era != h.safeFrom:
		if err := s.confirm(ctx); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: the database failed over since worker id %d was leased", keygen.ErrWorkerLost, e.Worker)
	}
	ceiling := max(r.ceiling, ticks.at(p.micros)+ticks.in(c.Term))
	if ceiling == r.ceiling {
		return ceiling, nil
	}
	return ceiling, s.exec(ctx, raiseCeiling, ceiling, c.Namespace, e.Worker, c.Owner, e.Generation)
}

const giveBack = `UPDATE "worker_lease" SET "owner" = NULL, "ceiling" = ? WHERE "namespace" = ? AND "worker_id" = ? AND "owner" = ? AND "generation" = ?`

// Return implements workerid.Ledger.
func (l *ledger) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	err := l.store.do(ctx, func(s session) error {
		return s.execCommitted(ctx, giveBack, end, c.Namespace, e.Worker, c.Owner, e.Generation)
	})
	if err != nil {
		return fmt.Errorf("sqlstore: return a lease: %w", err)
	}
	return nil
}

const (
	maxName   = 64 // characters of a namespace or owner
	maxHolder = 128
)

// check refuses names that the columns would cut, and namespaces that guards use.
func check(c workerid.Claim) (ticks, error) {
	for name, value := range map[string]string{"namespace": c.Namespace, "owner": c.Owner} {
		if n := utf8.RuneCountInString(value); n == 0 || n > maxName || !utf8.ValidString(value) {
			return ticks{}, fmt.Errorf("the %s has %d characters; it must be UTF-8 text of 1 to %d", name, n, maxName)
		}
	}
	if c.Namespace == segmentsRow || c.Namespace == nodesRow {
		return ticks{}, fmt.Errorf("the namespace %q is reserved for a guard; choose another", c.Namespace)
	}
	return newTicks(c.Layout)
}

// truncatedHolder returns a holder's name in the length of the column.
func truncatedHolder(holder string) string {
	holder = strings.ToValidUTF8(holder, "?")
	for utf8.RuneCountInString(holder) > maxHolder {
		_, n := utf8.DecodeRuneInString(holder)
		holder = holder[n:]
	}
	return holder
}
