package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

	"github.com/shardid/shardid/keygen"
)

// Tag returns the source of the segments of one biz_tag of leaf_alloc, for
// package segment. It also says the row's step. The row must exist; schema.Seed
// creates it.
func (s *Store) Tag(name string) keygen.Source { return &tag{s, name} }

type tag struct {
	store *Store
	name  string
}

var (
	_ keygen.Source  = (*tag)(nil)
	_ keygen.Stepper = (*tag)(nil)
)

// The new max_id is computed by the database under the row's lock and read from
// the statement's own answer. The condition on max_id keeps it from running out
// of the column, which SQLite would answer by turning it into a float. The
// condition on @@autocommit refuses a connection on which the UPDATE would not
// be committed by itself and could be rolled back after the range was handed
// out. Columns that some Leaf tables name otherwise are left alone.
const (
	mysqlReserve  = "UPDATE `leaf_alloc` SET `max_id` = LAST_INSERT_ID(`max_id` + %d) WHERE `biz_tag` = %s AND `max_id` <= 9223372036854775807 - %[1]d AND @@autocommit = 1"
	sqliteReserve = `UPDATE "leaf_alloc" SET "max_id" = "max_id" + ?, "update_time" = CURRENT_TIMESTAMP WHERE "biz_tag" = ? AND "max_id" <= 9223372036854775807 - ? RETURNING "max_id"`
)

// Reserve takes n ids, n at least 1.
func (t *tag) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 {
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %q: cannot reserve %d ids", t.name, n)
	}
	end, err := t.raise(ctx, n)
	if err != nil {
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %q: %w", t.name, err)
	}
	span := keygen.Span{First: end - n, Count: n, Step: 1}
	switch {
	case span.First < 0:
		return keygen.Span{}, fmt.Errorf("sqlstore: tag %q: %w: max_id was %d; seed the tag above the ids in use", t.name, keygen.ErrRegressed, span.First)
	case span.First == 0 && n == 1:
		return t.Reserve(ctx, n)
	case span.First == 0: // the id 0 is nobody's
		span.First, span.Count = 1, n-1
	}
	return span, nil
}

// raise adds n to max_id and returns its new value.
func (t *tag) raise(ctx context.Context, n int64) (end int64, err error) {
	if t.store.isMySQL() {
		end, err = t.raiseMySQL(ctx, n)
	} else {
		end, err = t.raiseSQLite(ctx, n)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = t.explain(ctx)
	}
	return end, err
}

// plainTag is a biz_tag that can stand in a string literal as it is.
var plainTag = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// raiseMySQL sends a plain tag inside the text, as a statement with parameters
// is prepared first, which is a round trip more.
func (t *tag) raiseMySQL(ctx context.Context, n int64) (int64, error) {
	literal, args := "?", []any{t.name}
	if plainTag.MatchString(t.name) {
		literal, args = "'"+t.name+"'", nil
	}
	res, err := t.store.db.ExecContext(ctx, fmt.Sprintf(mysqlReserve, n, literal), args...)
	if err != nil {
		return 0, err
	}
	if rows, err := res.RowsAffected(); err != nil || rows == 0 {
		return 0, errors.Join(err, sql.ErrNoRows)
	}
	return res.LastInsertId()
}

// raiseSQLite reads to the end of the answer: only then has the statement
// committed.
func (t *tag) raiseSQLite(ctx context.Context, n int64) (end int64, err error) {
	rows, err := t.store.db.QueryContext(ctx, sqliteReserve, n, t.name, n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return 0, errors.Join(rows.Err(), sql.ErrNoRows)
	}
	if err := rows.Scan(&end); err != nil {
		return 0, err
	}
	if rows.Next() {
		return 0, errors.New("leaf_alloc has several rows of the tag; make biz_tag its primary key")
	}
	return end, rows.Err()
}

// explain says why the UPDATE found no row.
func (t *tag) explain(ctx context.Context) error {
	var maxID int64
	err := t.store.db.QueryRowContext(ctx, t.selectColumn("max_id"), t.name).Scan(&maxID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: leaf_alloc has no row of this biz_tag; create it with schema.Seed", keygen.ErrUnknownTag)
	case err != nil:
		return err
	case maxID > 1<<62:
		return fmt.Errorf("%w: max_id is %d, at the end of the column", keygen.ErrRegressed, maxID)
	}
	return errors.New("the connection has autocommit off, so a reserved range could be rolled back; open the store's database without autocommit=0")
}

// Step returns the row's step.
func (t *tag) Step(ctx context.Context) (int64, error) {
	var step int64
	err := t.store.db.QueryRowContext(ctx, t.selectColumn("step"), t.name).Scan(&step)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("sqlstore: tag %q: %w", t.name, t.explain(ctx))
	case err != nil:
		return 0, fmt.Errorf("sqlstore: tag %q: read the step: %w", t.name, err)
	}
	return step, nil
}

func (t *tag) selectColumn(column string) string {
	q := t.store.server.Quote
	return "SELECT " + q(column) + " FROM " + q("leaf_alloc") + " WHERE " + q("biz_tag") + " = ?"
}
