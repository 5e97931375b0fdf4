// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// WUID returns the source of the high bits in wuid's table on MySQL or MariaDB, for
// [keygen.Sections]:
//
//	highs, err := store.WUID("wuid")
//	source, err := keygen.Sections(highs, 36)
//	ids, err := segment.New(ctx, segment.Config{Source: source})
//
// wuid may take high bits from the same table at any time, because each is one REPLACE. The
// package commits it by itself, whatever the session's autocommit setting. A number that is not
// above those before, because the server lost some, is [keygen.ErrRegressed] in the process
// that saw them.
func (s *Store) WUID(table string) (keygen.Source, error) {
	if err := dialect.CheckIdent(table); err != nil {
		return nil, fmt.Errorf("sqlstore: the table of wuid: %w", err)
	}
	return &wuid{store: s, table: table}, nil
}

type wuid struct {
	store   *Store
	table   string
	highest atomic.Int64
}

// Reserve reserves one number, whatever n is.
func (w *wuid) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("sqlstore: wuid's table %s: cannot reserve %d numbers", w.table, n)
	}
	known := w.highest.Load()
	high, err := w.replace(ctx)
	if err == nil && high <= known {
		err = fmt.Errorf("%w: it gave %d after %d; raise AUTO_INCREMENT above the numbers in use", keygen.ErrRegressed, high, known)
	}
	if err != nil {
		return keygen.Span{}, fmt.Errorf("sqlstore: wuid's table %s: %w", w.table, err)
	}
	for old := w.highest.Load(); high > old && !w.highest.CompareAndSwap(old, high); {
		old = w.highest.Load()
	}
	return keygen.Span{First: high, Count: 1, Step: 1}, nil
}

func (w *wuid) replace(ctx context.Context) (high int64, err error) {
	err = w.store.do(ctx, func(s session) error {
		if s.server.Name() != mysqlName {
			return &keygen.SetupError{Err: errors.New("wuid's table exists only on MySQL and MariaDB, and the database is neither"), Cure: "take the high bits from a Tag of leaf_alloc"}
		}
		if err := s.durable(ctx, w.table, "AUTO_INCREMENT is above the numbers in use"); err != nil {
			return err
		}
		return s.inTx(ctx, func() (err error) {
			high, err = s.numbered(ctx, fmt.Sprintf(`REPLACE INTO "%s" ("x") VALUES (0)`, w.table))
			return err
		})
	})
	switch dialect.FaultOf(err) {
	case dialect.NoTable, dialect.NoColumn:
		err = &keygen.SetupError{Err: err, Cure: "open the store on the database that has wuid's table, and pass its name"}
	case dialect.NoRight:
		err = &keygen.SetupError{Err: err, Cure: "give the user SELECT, INSERT and DELETE on " + w.table}
	}
	if err == nil && high < 1 {
		err = fmt.Errorf("%w: it gave %d", keygen.ErrRegressed, high)
	}
	return high, err
}
