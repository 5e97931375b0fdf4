// SPDX-License-Identifier: Apache-2.0

package sqlrun

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

const (
	patience = 10 * time.Second // after it the conflict is returned
	// One try counts at most this long, until twice the patience has passed. A cluster may hold
	// back a COMMIT while it finds out that a member has died, and then roll it back; such a try
	// should be repeated.
	longTry = time.Second

	// The first pause is short, because most locks are. Later pauses are at most as long as the
	// long one, and shrink to the short one while a task ages: so the task that has waited longest
	// tries most often. Growing pauses would keep a member of a cluster away from a row that
	// another member writes without a pause.
	shortPause = 10 * time.Millisecond
	longPause  = 80 * time.Millisecond
	aging      = time.Second
)

// Retry runs f, and again while its error reports a conflict with another writer or wraps busy,
// which may be nil; f must be repeatable. It is needed for a SQLite file without a busy timeout, a
// deadlock on MySQL, a conflict of a cluster's members at COMMIT, and a member that is not ready.
// The pauses are random. If the context ends meanwhile, the error wraps the context's error and the
// last error of f.
func Retry(ctx context.Context, busy error, f func() error) error {
	var contended error
	begin, most := time.Now(), shortPause
	giveUp := begin.Add(patience)
	for {
		tried := time.Now()
		err := f()
		if giveUp = giveUp.Add(max(time.Since(tried)-longTry, 0)); giveUp.Sub(begin) > 2*patience {
			giveUp = begin.Add(2 * patience)
		}
		switch {
		case err != nil && contended != nil && ctx.Err() != nil:
			return errors.Join(contended, ctx.Err())
		case err == nil || !dialect.Contended(err) && !errors.Is(err, busy):
			return err
		}
		contended = err
		select {
		case <-ctx.Done():
			return errors.Join(contended, ctx.Err())
		case <-time.After(time.Until(giveUp)):
			return fmt.Errorf("%w; %s for %v, try again later", err, dialect.InTheWay(err), time.Since(begin).Round(time.Second))
		case <-time.After(rand.N(most)):
		}
		most = longestPause(time.Since(begin))
	}
}

// longestPause returns the longest pause of a task of this age.
func longestPause(age time.Duration) time.Duration {
	youth := max(1-age.Seconds()/aging.Seconds(), 0)
	return max(time.Duration(youth*float64(longPause)), shortPause)
}

// Beginner is the part of *sql.DB and *sql.Conn that InTx needs.
type Beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}

// InTx runs f in its own transaction, and commits unless f fails. So its statements neither join a
// transaction that an autocommit=0 connection has open nor leave one open. nil options are the
// server's defaults.
func InTx(ctx context.Context, on Beginner, options *sql.TxOptions, f func(*sql.Tx) error) error {
	tx, err := on.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

// rollback returns no error if the end of the context, or SQLite itself, has already rolled back.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Each calls scan with each row of a query.
func Each(ctx context.Context, on dialect.Lister, scan func(*sql.Rows) error, query string, args ...any) error {
	return dialect.Each(ctx, on, scan, query, args...)
}
