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
	patience = 10 * time.Second // then what was in the way is reported
	// Pauses grow from the one to the other: members of a cluster that write to one row
	// would meet each other again and again.
	shortPause = 5 * time.Millisecond
	longPause  = 80 * time.Millisecond
)

// Retry runs f, and again while another writer is in the way or f's error wraps
// busy, which may be nil; f must be repeatable. A SQLite file without a busy timeout,
// a deadlock on MySQL, a conflict of a cluster's members at COMMIT and a member that is not
// ready need this. The pauses are drawn by lot and grow. When the context ends meanwhile the error
// says both, whatever f made of the context.
func Retry(ctx context.Context, busy error, f func() error) error {
	giveUp := time.NewTimer(patience)
	defer giveUp.Stop()
	var contended error
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		err := f()
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
		case <-giveUp.C:
			return fmt.Errorf("%w; %s for %v, try again later", err, dialect.InTheWay(err), patience)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// Beginner is the part of *sql.DB and *sql.Conn that InTx needs.
type Beginner interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}

// InTx runs f in a transaction of its own, which it commits unless f fails. So
// its statements neither join a transaction that an autocommit=0 connection has
// open nor leave one. nil options are the server's usual ones.
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

// rollback is no error where the end of the context, or SQLite itself, has done
// it already.
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
