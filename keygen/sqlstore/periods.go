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

// Periods keeps counters that begin at 1 in each day, month or year, for package
// periodic. It is safe for concurrent use.
//
// A counter is a row of leaf_alloc whose biz_tag is "order/shop7/2026-11", made when its
// first number is wanted: that takes the right to INSERT besides those of a [Store.Tag].
// A name of more than 128 characters is refused. So is, on MySQL and MariaDB, a key whose
// counter the collation of the table takes for another one's, as those of Shop7 and
// shop7: the table that schema.Apply makes keeps them apart, one that Leaf made may not.
//
// Rows of periods that have ended for more than Config.Skew of package periodic may be
// deleted. A row of the present period that is deleted begins at 1 again: only a process
// that has given numbers of it notices ([keygen.ErrRegressed]). The same holds for rows
// that a replica or a backup lacks: there is no guard, as numbers that begin at 1 leave no
// room to jump over those that were lost. Where a Leaf runs on the table, it keeps a
// little memory for each row, so give Periods a database of its own for many keys.
type Periods struct {
	store  *Store
	proven atomic.Bool // a reservation has raised max_id by what it was to
}

// Periods returns the counters of periods of a database.
func (s *Store) Periods() *Periods { return &Periods{store: s} }

// within is the time, by the database's clock, in which a reservation may be made.
type within struct{ from, to time.Time }

const maxTag = 128 // characters of a biz_tag

// Reserve takes n numbers of a group's counter in a period, by a statement that compares
// the database's clock with from and to. It implements periodic.Counters.
func (p *Periods) Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	name := group + "/" + period
	if length := utf8.RuneCountInString(name); length > maxTag || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return keygen.Span{}, &keygen.SetupError{
			Err:  fmt.Errorf("sqlstore: the counter's name %.128q has %d characters; leaf_alloc takes UTF-8 text without NUL of %d at most", name, length, maxTag),
			Cure: "give other keys",
		}
	}
	t := newTag(p.store, leafAlloc, name)
	t.within = &within{from, to}
	t.proven.Store(p.proven.Load())
	span, err := t.Reserve(ctx, n)
	if errors.Is(err, keygen.ErrUnknownTag) {
		if err := t.begin(ctx); err != nil {
			return keygen.Span{}, fmt.Errorf("sqlstore: %s: begin it: %w", t, err)
		}
		span, err = t.Reserve(ctx, n)
	}
	if err == nil {
		p.proven.Store(true)
	}
	return span, err
}

// beginCounter makes a row unless there is one.
const (
	beginCounter      = `INSERT INTO "leaf_alloc" ("biz_tag", "max_id", "step") VALUES (?, 1, 1)`
	beginCounterMySQL = beginCounter + ` ON DUPLICATE KEY UPDATE "biz_tag" = "biz_tag"`
	beginCounterElse  = beginCounter + ` ON CONFLICT DO NOTHING`
)

// begin makes the counter's row.
func (t *tag) begin(ctx context.Context) error {
	return writable(t.store.do(ctx, func(s session) error {
		if err := t.inTime(ctx, s); err != nil {
			return err
		}
		text := beginCounterElse
		if s.server.Name() == mysqlName {
			text = beginCounterMySQL
		}
		return s.alone(ctx, text, t.name)
	}))
}

// inTime tells why nothing may be reserved at this time, nil when it may.
func (t *tag) inTime(ctx context.Context, s session) error {
	p, err := s.present(ctx)
	if err != nil {
		return err
	}
	if now := time.UnixMicro(p.micros); now.Before(t.within.from) || !now.Before(t.within.to) {
		return fmt.Errorf("%w: numbers of it are given from %v to %v, and by the database's clock it is %v; set the clock that is wrong",
			keygen.ErrClockRollback, t.within.from.UTC(), t.within.to.UTC(), now.UTC())
	}
	return nil
}

// condition compares the server's clock with the time.
func (w within) condition(server dialect.Server) string {
	return fmt.Sprintf(" AND %s BETWEEN %d AND %d", serverMicros[server.Name()], w.from.UnixMicro(), w.to.UnixMicro()-1)
}

// sameText compares a column with a literal on MySQL and MariaDB by what they say, where
// the column's collation may take other texts for equal.
func sameText(column, literal string) string {
	return fmt.Sprintf(` AND CONVERT("%s" USING utf8mb4) COLLATE utf8mb4_bin = CONVERT(%s USING utf8mb4)`, column, literal)
}

// ownRow tells whether the counter's row is not the one of a name that the column's
// collation takes for equal.
func (t *tag) ownRow(ctx context.Context, s session) error {
	var name string
	err := s.inTx(ctx, func() error {
		return s.row(ctx, `SELECT "biz_tag" FROM "leaf_alloc" WHERE "biz_tag" = ?`, t.name).Scan(&name)
	})
	if err != nil || name == t.name {
		return err
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("leaf_alloc has the counter %.128q, which the collation of biz_tag takes for equal, and both would count together", name),
		Cure: "ALTER TABLE leaf_alloc MODIFY biz_tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''; or give keys that differ by more than case and accents",
	}
}
