// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// Periods are counters that begin at 1 in each day, month or year, for package periodic. It is
// safe for concurrent use.
//
// A counter is a row of leaf_alloc whose biz_tag is "order/shop7/2026-11". The package inserts
// the row when the first number is wanted, which takes the right to INSERT besides the rights
// of a [Store.Tag]. It refuses a name of more than 128 characters. On MySQL and MariaDB it also
// refuses a key whose counter is equal to another one's under the table's collation, as Shop7
// and shop7 may be: a table that schema.Apply created distinguishes them, a table that Leaf
// created may not.
//
// You may delete rows of periods that ended more than Config.Skew (of package periodic) ago, but
// not of periods to which the clocks of a process and of the database could both be set back: a
// counter whose row was deleted begins at 1 again, and only a process that has issued numbers of
// it detects that ([keygen.ErrRegressed]). The same holds for rows that a replica or a backup
// lacks. There is no guard against it, because numbers that begin at 1 leave no room to skip
// those that were lost. A Leaf that runs on the table keeps a little memory for each
// row, so use a separate database for Periods with many keys.
type Periods struct {
	store  *Store
	proven atomic.Bool // a reservation was checked against the row
}

// Periods returns the counters of periods of a database.
func (s *Store) Periods() *Periods { return &Periods{store: s} }

// within is the time, by the database's clock, in which reservations are allowed.
type within struct{ from, to time.Time }

const maxTag = 128 // characters of a biz_tag

// Reserve reserves n numbers of a group's counter in a period, by a statement that compares the
// database's clock with from and to. It implements periodic.Counters.
func (p *Periods) Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	name := group + "/" + period
	if length := utf8.RuneCountInString(name); length > maxTag || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return keygen.Span{}, &keygen.SetupError{
			Err:  fmt.Errorf("sqlstore: the counter's name %.128q has %d characters; leaf_alloc takes UTF-8 text without NUL of %d at most", name, length, maxTag),
			Cure: "use shorter keys in valid UTF-8",
		}
	}
	t := newTag(p.store, leafAlloc, name)
	t.within = &within{from, to}
	t.proven.Store(p.proven.Load())
	span, err := t.Reserve(ctx, n)
	if errors.Is(err, keygen.ErrUnknownTag) {
		if err := t.begin(ctx); err != nil {
			return keygen.Span{}, fmt.Errorf("sqlstore: %s: create its row: %w", t, err)
		}
		span, err = t.Reserve(ctx, n)
	}
	if err == nil {
		p.proven.Store(true)
	}
	return span, err
}

// beginCounter inserts a row unless it exists.
const (
	beginCounter      = `INSERT INTO "leaf_alloc" ("biz_tag", "max_id", "step") VALUES (?, 1, 1)`
	beginCounterMySQL = beginCounter + ` ON DUPLICATE KEY UPDATE "biz_tag" = "biz_tag"`
	beginCounterElse  = beginCounter + ` ON CONFLICT DO NOTHING`
)

// begin inserts the counter's row.
func (t *tag) begin(ctx context.Context) error {
	return writable(t.store.do(ctx, func(s session) error {
		if err := t.inTime(ctx, s); err != nil {
			return err
		}
		text := beginCounterElse
		if s.server.Name() == mysqlName {
			text = beginCounterMySQL
		}
		return s.execCommitted(ctx, text, t.name)
	}))
}

// inTime returns nil when a reservation is allowed at this time, otherwise an error that says
// why not.
func (t *tag) inTime(ctx context.Context, s session) error {
	p, err := s.present(ctx)
	if err != nil {
		return err
	}
	if now := time.UnixMicro(p.micros); now.Before(t.within.from) || !now.Before(t.within.to) {
		return fmt.Errorf("%w: the period's numbers are issued from %v to %v, but the database's clock reads %v; correct the wrong clock",
			keygen.ErrClockRollback, t.within.from.UTC(), t.within.to.UTC(), now.UTC())
	}
	return nil
}

// condition is the SQL condition that the server's clock is within the time.
func (w within) condition(server dialect.Server) string {
	return fmt.Sprintf(" AND %s BETWEEN %d AND %d", serverMicros[server.Name()], w.from.UnixMicro(), w.to.UnixMicro()-1)
}

// sameText is a condition for MySQL and MariaDB that compares a column with a literal byte by
// byte, because the column's collation may treat different texts as equal.
func sameText(column, literal string) string {
	return fmt.Sprintf(` AND CONVERT("%s" USING utf8mb4) COLLATE utf8mb4_bin = CONVERT(%s USING utf8mb4)`, column, literal)
}

// ownRow returns an error when the row found belongs to another counter whose name is equal
// under the column's collation.
func (t *tag) ownRow(ctx context.Context, s session) error {
	var name string
	err := s.inTx(ctx, func() error {
		return s.row(ctx, `SELECT "biz_tag" FROM "leaf_alloc" WHERE "biz_tag" = ?`, t.name).Scan(&name)
	})
	if err != nil || name == t.name {
		return err
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("leaf_alloc has the counter %.128q, which is equal under the collation of biz_tag: both would share one row", name),
		Cure: "ALTER TABLE leaf_alloc MODIFY biz_tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''; or use keys that differ in more than case and accents",
	}
}
