package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// Tag returns the source of the segments of one biz_tag of leaf_alloc, for
// package segment. It also says the row's step. The row must exist; schema.Seed
// creates it.
func (s *Store) Tag(name string) keygen.Source { return &tag{store: s, name: name} }

// GuardedTag is Tag for a database that may fail over to a replica which has not
// received the latest reservations. Each reservation says, in the same
// statement, which server it is meant for; on another one, the counters of all
// tags are first raised by ten times their step, so that ids which the lost
// server gave are not given again as long as they were fewer than that. The
// first use raises the counters as well.
//
// Everybody who reserves must do it through a GuardedTag: a Leaf, or a Tag,
// would not notice the other server before the counters are raised. It needs the
// table worker_namespace and the right to SELECT, INSERT and UPDATE in it. On
// MySQL and MariaDB, it refuses sessions with binlog_format=STATEMENT, whose
// replicas would ask themselves who they are.
func (s *Store) GuardedTag(name string) keygen.Source {
	return &tag{store: s, name: name, guarded: true}
}

type tag struct {
	store   *Store
	name    string // in messages no longer than the column
	guarded bool
	proven  atomic.Bool // a reservation has raised max_id by what it was to
}

var (
	_ keygen.Source  = (*tag)(nil)
	_ keygen.Stepper = (*tag)(nil)
)

// The new max_id is computed by the database under the row's lock and read from
// the statement's own answer. The condition on max_id keeps it from running out of
// the column, which MySQL may answer by storing less, and SQLite by turning it into
// a float. So a row that meets it is also changed, which clientFoundRows=true does
// not tell: a driver then counts the rows that were found. The
// condition on @@autocommit refuses a connection on which the UPDATE would not
// be committed by itself and could be rolled back after the range was handed
// out. Columns that some Leaf tables name otherwise are left alone.
const (
	mysqlReserve     = `UPDATE "leaf_alloc" SET "max_id" = LAST_INSERT_ID("max_id" + %[1]d) WHERE "biz_tag" = %[2]s AND "max_id" <= %[4]d AND @@autocommit = 1%[3]s`
	returningReserve = `UPDATE "leaf_alloc" SET "max_id" = "max_id" + ?, "update_time" = CURRENT_TIMESTAMP WHERE "biz_tag" = ? AND "max_id" <= ?`
)

// Reserve takes n ids, n at least 1.
func (t *tag) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %.128q: cannot reserve %d ids", t.name, n)
	}
	raise := t.raise
	if !t.proven.Load() {
		raise = t.prove
	}
	end, err := raise(ctx, n)
	if err != nil {
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %.128q: %w", t.name, err)
	}
	span := keygen.Span{First: end - n, Count: n, Step: 1}
	switch {
	case span.First < 0:
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %.128q: %w: max_id was %d; seed the tag above the ids in use", t.name, keygen.ErrRegressed, span.First)
	case span.First == 0 && n == 1:
		return t.Reserve(ctx, n)
	case span.First == 0: // the id 0 is nobody's
		span.First, span.Count = 1, n-1
	}
	return span, nil
}

// prove reserves a tag's first range between two looks at its row. What changes
// max_id on its way into the table, such as a trigger, shows there before an id of
// the range is given; who may not see triggers finds them so, too.
func (t *tag) prove(ctx context.Context, n int64) (end int64, err error) {
	before, err := t.read(ctx, "max_id")
	if err != nil {
		return 0, err
	}
	if end, err = t.raise(ctx, n); err != nil {
		return 0, writable(err)
	}
	after, err := t.read(ctx, "max_id")
	if err != nil {
		return 0, err
	}
	if end-n < before || after < end {
		return 0, meddled(before, after, n, end)
	}
	t.proven.Store(true)
	return end, nil
}

// meddled is the error of a statement that raised max_id by n, where max_id or the
// statement's answer, end, is not what follows from that.
func meddled(before, after, n, end int64) error {
	if after-n >= before {
		return &keygen.SetupError{
			Err: fmt.Errorf("leaf_alloc.max_id was %d and is %d, and the statement that raised it by %d answered with %d: "+
				"a trigger on leaf_alloc hides the answer, as every trigger does on MySQL and MariaDB", before, after, n, end),
			Cure: "drop the trigger",
		}
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("leaf_alloc.max_id was %d, and is %d after a statement that raised it by %d: a trigger on leaf_alloc sets max_id", before, after, n),
		Cure: "drop the trigger, and see that max_id is above the highest id in use",
	}
}

// raise adds n to max_id and returns its new value. For a guarded tag on another
// server, the counters of all tags are raised first.
func (t *tag) raise(ctx context.Context, n int64) (end int64, err error) {
	err = t.store.do(ctx, func(s session) error {
		if err := t.store.lookAtCounters(ctx, s); err != nil {
			return err
		}
		end, err = t.raiseOn(ctx, s, n)
		if errors.Is(err, sql.ErrNoRows) && t.guarded {
			if err = s.jump(ctx, t.store.highest()); err == nil {
				end, err = t.raiseOn(ctx, s, n)
			}
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = t.explain(ctx, s, n)
		}
		return err
	})
	return end, err
}

// guard is a condition that a reservation is subject to.
func (t *tag) guard(server dialect.Server) string {
	if !t.guarded {
		return ""
	}
	return sameServer(server)
}

func (t *tag) raiseOn(ctx context.Context, s session, n int64) (int64, error) {
	if s.server.Name() == mysqlName {
		return t.raiseMySQL(ctx, s, n)
	}
	return t.raiseReturning(ctx, s, n)
}

// plainTag is a biz_tag that can stand in a string literal as it is.
var plainTag = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// raiseMySQL sends a plain tag inside the text, as a statement with parameters
// is prepared first, which is a round trip more.
func (t *tag) raiseMySQL(ctx context.Context, s session, n int64) (int64, error) {
	literal, args := "?", []any{t.name}
	if plainTag.MatchString(t.name) {
		literal, args = "'"+t.name+"'", nil
	}
	res, err := s.conn.ExecContext(ctx, s.text(fmt.Sprintf(mysqlReserve, n, literal, t.guard(s.server), t.store.highest()-n)), args...)
	if err != nil {
		return 0, err
	}
	if rows, err := res.RowsAffected(); err != nil || rows == 0 {
		return 0, errors.Join(err, sql.ErrNoRows)
	}
	return res.LastInsertId()
}

// raiseReturning reads to the end of the answer: only then has the statement
// committed.
func (t *tag) raiseReturning(ctx context.Context, s session, n int64) (end int64, err error) {
	count := 0
	err = s.each(ctx, func(rows *sql.Rows) error {
		count++
		return rows.Scan(&end)
	}, returningReserve+t.guard(s.server)+` RETURNING "max_id"`, n, t.name, t.store.highest()-n)
	switch {
	case err == nil && count == 0:
		err = sql.ErrNoRows
	case count > 1:
		err = errors.Join(err, &keygen.SetupError{Err: errors.New("leaf_alloc has several rows of the tag"), Cure: "make biz_tag its primary key"})
	}
	return end, err
}

// explain says why the UPDATE found no row, or changed none.
func (t *tag) explain(ctx context.Context, s session, n int64) error {
	maxID, err := t.look(ctx, s, "max_id")
	most := t.store.highest()
	switch {
	case err != nil:
		return err
	case maxID > most-n:
		return fmt.Errorf("%w: max_id is %d, and its column ends at %d; a column that is no bigint has to become one, and a counter that was raised by mistake can be lowered to the highest id in use", keygen.ErrExhausted, maxID, most)
	}
	return &keygen.SetupError{
		Err: errors.New("the UPDATE of leaf_alloc did not change max_id: the connection has autocommit off, so that a reserved range could be rolled back, " +
			"or it has binlog_format=STATEMENT and the tag is guarded, or a trigger keeps max_id as it is"),
		Cure: "open the store's database without these settings, and drop the trigger",
	}
}

// Step returns the row's step.
func (t *tag) Step(ctx context.Context) (step int64, err error) {
	step, err = t.read(ctx, "step")
	if err != nil {
		return 0, fmt.Errorf("sqlstore: tag %.128q: read the step: %w", t.name, err)
	}
	return step, nil
}

// read reads a number from the tag's row.
func (t *tag) read(ctx context.Context, name string) (n int64, err error) {
	err = t.store.do(ctx, func(s session) error {
		if err := t.store.lookAtCounters(ctx, s); err != nil {
			return err
		}
		n, err = t.look(ctx, s, name)
		return err
	})
	return n, err
}

// look reads a number from the tag's row, in a transaction, which a session without
// autocommit would otherwise leave open.
func (t *tag) look(ctx context.Context, s session, name string) (n int64, err error) {
	err = s.inTx(ctx, func() (err error) {
		n, err = t.column(ctx, s, name)
		return err
	})
	return n, err
}

// column reads a number from the tag's row.
func (t *tag) column(ctx context.Context, s session, name string) (n int64, err error) {
	err = s.row(ctx, `SELECT "`+name+`" FROM "leaf_alloc" WHERE "biz_tag" = ?`, t.name).Scan(&n)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = fmt.Errorf("%w: leaf_alloc has no row of this biz_tag; create it with schema.Seed", keygen.ErrUnknownTag)
	case err != nil && strings.HasPrefix(err.Error(), "sql: Scan error"):
		err = &keygen.SetupError{Err: fmt.Errorf("leaf_alloc.%s of this biz_tag is NULL or no whole number: %w", name, err), Cure: "set it to one"}
	}
	return n, err
}
