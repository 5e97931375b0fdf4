// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// Tag returns the source of segments of one biz_tag of leaf_alloc, for package segment. Its
// step is the row's. The row must exist; schema.Seed creates it.
func (s *Store) Tag(name string) keygen.Source { return newTag(s, leafAlloc, name) }

// GuardedTag is Tag for a database that may fail over to a replica which lacks the latest
// reservations. Each reservation names, in the same statement, the server for which it is
// meant. On another server, the package first raises the counters of all tags by ten times
// their step, or by ten times the largest number of ids that a GuardedTag has reserved at a
// time, if that is more. So ids that the lost server reserved are not reserved again, provided
// that they were fewer than that. The first use raises the counters as well.
//
// All processes must reserve through a GuardedTag: Leaf, or a Tag, would reserve on the other
// server before the counters are raised. GuardedTag needs the table worker_namespace and the
// right to SELECT, INSERT and UPDATE in it. On MySQL and MariaDB it refuses sessions with
// binlog_format=STATEMENT, because a replica would replay the statement with its own identity.
func (s *Store) GuardedTag(name string) keygen.Source {
	t := newTag(s, leafAlloc, name)
	t.guarded = true
	return t
}

var leafAlloc = &counterTable{
	kind: leafKind, name: "leaf_alloc", key: "biz_tag", value: "max_id",
	also: map[string]string{postgresName: setUpdateTime, sqliteName: setUpdateTime},
	seed: "create it with schema.Seed or an INSERT",
}

// setUpdateTime sets the time of the change in databases whose column does not do so by itself.
const setUpdateTime = `, "update_time" = CURRENT_TIMESTAMP`

// tag is one counter of a table.
type tag struct {
	store   *Store
	table   *counterTable
	name    string // messages cut it to the length of the column
	guarded bool
	proven  atomic.Bool // a reservation was checked against the row

	// Ids have this remainder modulo delta, so a range contains one id per delta numbers. Fixed
	// means that the row must have the same delta and remainder.
	delta, remainder int64
	fixed            bool

	within *within // when reservations are allowed; nil for always
}

func newTag(s *Store, of *counterTable, name string) *tag {
	return &tag{store: s, table: of, name: name, delta: 1}
}

var (
	_ keygen.Source  = (*tag)(nil)
	_ keygen.Stepper = (*tag)(nil)
)

// The database computes the new value under the row's lock, and the statement itself returns
// it. The condition on the value keeps it within the column: beyond that, MySQL may store a
// lower number, and SQLite turns the value into a float. Every row that matches the condition
// is also changed, so the number of affected rows is right even with clientFoundRows=true,
// which makes a driver count matched rows. The condition on @@autocommit refuses a connection
// on which the UPDATE would not commit by itself: a later rollback could undo the reservation
// after its ids were issued. The statement does not touch columns whose names differ among
// Leaf's tables.
const (
	mysqlReserve     = `UPDATE "%[1]s" SET "%[2]s" = LAST_INSERT_ID("%[2]s" + %[3]d)%[4]s WHERE %[5]s AND @@autocommit = 1`
	mysqlLock        = `SELECT "%s" FROM "%s" WHERE %s FOR UPDATE`
	mysqlRaise       = `UPDATE "%[1]s" SET "%[2]s" = %[3]d%[4]s WHERE %[5]s AND "%[2]s" = %[6]d`
	returningReserve = `UPDATE "%[1]s" SET "%[2]s" = "%[2]s" + ?%[3]s WHERE "%[4]s" = ? AND "%[2]s" <= ?%[5]s RETURNING "%[2]s"`
)

// Reserve reserves n ids, n at least 1.
func (t *tag) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if n < 1 || n > math.MaxInt64/t.delta {
		return keygen.Span{}, fmt.Errorf("sqlstore: %s: cannot reserve %d ids", t, n)
	}
	span, err := t.reserve(ctx, n)
	if err != nil {
		return keygen.Span{}, fmt.Errorf("sqlstore: %s: %w", t, err)
	}
	return span, nil
}

// String names the counter in messages.
func (t *tag) String() string {
	if t.table == leafAlloc {
		return fmt.Sprintf("tag %.128q", t.name)
	}
	return fmt.Sprintf("%s %.128q", t.table.name, t.name)
}

func (t *tag) reserve(ctx context.Context, n int64) (keygen.Span, error) {
	width := n * t.delta
	raise := t.raise
	if !t.proven.Load() {
		raise = t.proveFirst
	}
	end, err := raise(ctx, width)
	if err != nil {
		return keygen.Span{}, err
	}
	old := end - width
	first := old + t.table.next
	first += ((t.remainder-first)%t.delta + t.delta) % t.delta
	span := keygen.Span{First: first, Count: n, Step: t.delta}
	switch {
	case old < 0:
		return keygen.Span{}, fmt.Errorf("%w: %s was %d; seed the tag above the ids in use", keygen.ErrRegressed, t.table.value, old)
	case span.First == 0 && n == 1:
		return t.reserve(ctx, n)
	case span.First == 0: // 0 is not an id
		span.First, span.Count = t.delta, n-1
	}
	return span, nil
}

// proveFirst reserves a tag's first range and reads its row before and after. That detects a
// trigger or the like that changes the value, before an id of the range is issued. It also
// works for users who may not list triggers.
func (t *tag) proveFirst(ctx context.Context, width int64) (end int64, err error) {
	before, err := t.read(ctx, t.table.value)
	if err != nil {
		return 0, err
	}
	if end, err = t.raise(ctx, width); err != nil {
		return 0, writable(err)
	}
	after, err := t.read(ctx, t.table.value)
	if err != nil {
		return 0, err
	}
	if end-width < before || after < end {
		return 0, t.table.triggerError(before, after, width, end)
	}
	t.proven.Store(true)
	return end, nil
}

// triggerError is the error of a statement that raised a value by width, when the value or the
// statement's answer, end, does not agree with that.
func (of *counterTable) triggerError(before, after, width, end int64) error {
	if after-width >= before {
		return &keygen.SetupError{
			Err: fmt.Errorf("%s.%s was %d and is %d, and the statement that raised it by %d answered with %d: "+
				"a trigger on %[1]s hides the answer, as every trigger does on MySQL and MariaDB", of.name, of.value, before, after, width, end),
			Cure: "drop the trigger",
		}
	}
	return &keygen.SetupError{
		Err: fmt.Errorf("%s.%s was %d, and is %d after a statement that raised it by %d: a trigger on %[1]s sets %[2]s",
			of.name, of.value, before, after, width),
		Cure: fmt.Sprintf("drop the trigger, and make sure that %s is above the highest id in use", of.value),
	}
}

// raise adds width to the value and returns the new value. When a guarded tag finds another
// server, it first raises the counters of all tags; see admit.
func (t *tag) raise(ctx context.Context, width int64) (end int64, err error) {
	err = t.store.do(ctx, func(s session) error {
		if err := t.checkOnce(ctx, s); err != nil {
			return err
		}
		end, err = t.raiseOn(ctx, s, width)
		if errors.Is(err, sql.ErrNoRows) && t.guarded {
			if err = s.admit(ctx, width, t.store.highest(t.table)); err == nil {
				end, err = t.raiseOn(ctx, s, width)
			}
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = t.explain(ctx, s, width)
			if err == nil { // the row was inserted meanwhile, or its period has begun
				end, err = t.raiseOn(ctx, s, width)
			}
			if errors.Is(err, sql.ErrNoRows) {
				err = t.table.unchanged()
			}
		}
		return t.table.explained(err)
	})
	return end, err
}

// checkOnce checks once what the reservations need of the server and of the table.
func (t *tag) checkOnce(ctx context.Context, s session) error {
	if t.guarded {
		if err := needs(s.server, "a guarded tag", plainTags); err != nil {
			return err
		}
	}
	return t.store.checkCounters(ctx, s, t.table)
}

// guard is the additional condition of a reservation.
func (t *tag) guard(server dialect.Server, width int64) string {
	switch {
	case t.guarded:
		return sameServer(server, width)
	case t.fixed:
		return fmt.Sprintf(` AND "delta" = %d AND "remainder" = %d`, t.delta, t.remainder)
	case t.within != nil:
		return t.within.condition(server)
	}
	return ""
}

func (t *tag) raiseOn(ctx context.Context, s session, width int64) (int64, error) {
	if s.server.Name() == mysqlName {
		return t.raiseMySQL(ctx, s, width)
	}
	return t.raiseReturning(ctx, s, width)
}

// plainTag matches a biz_tag that needs no quoting in a string literal.
var plainTag = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// raiseMySQL reads the new value from the statement's own answer. Once a proxy has refused that,
// it reads the value under a lock instead.
func (t *tag) raiseMySQL(ctx context.Context, s session, width int64) (end int64, err error) {
	if !t.store.answersWithheld.Load() {
		end, err = t.raiseAtOnce(ctx, s, width)
		if !dialect.AnswersWithheld(err) {
			return end, err
		}
		t.store.answersWithheld.Store(true)
	}
	err = s.within(ctx, []string{"START TRANSACTION"}, func() error {
		end, err = t.raiseLocked(ctx, s, width)
		return err
	})
	return end, err
}

func (t *tag) raiseAtOnce(ctx context.Context, s session, width int64) (int64, error) {
	of := t.table
	where, args := t.row(s, width)
	res, err := s.conn.ExecContext(ctx, s.text(fmt.Sprintf(mysqlReserve, of.name, of.value, width, of.also[mysqlName], where)), args...)
	if err != nil {
		return 0, err
	}
	if rows, err := res.RowsAffected(); err != nil || rows == 0 {
		return 0, errors.Join(err, sql.ErrNoRows)
	}
	return res.LastInsertId()
}

// raiseLocked reads the value under a lock of its row, in a transaction. A proxy that shares
// sessions among clients refuses LAST_INSERT_ID(expr), which would change the session. The
// UPDATE compares the value with the one that was read, so a lock that was lost in between, with
// the proxy's connection, does no harm.
func (t *tag) raiseLocked(ctx context.Context, s session, width int64) (int64, error) {
	of, old := t.table, int64(0)
	where, args := t.row(s, width)
	if err := s.row(ctx, fmt.Sprintf(mysqlLock, of.value, of.name, where), args...).Scan(&old); err != nil {
		return 0, err
	}
	raised, err := s.changed(ctx, fmt.Sprintf(mysqlRaise, of.name, of.value, old+width, of.also[mysqlName], where, old), args...)
	if err == nil && !raised {
		err = errLockLost
	}
	return old + width, err
}

// row returns the condition on a tag's row that can be raised. It writes a plain tag into the
// text, because a statement with parameters is prepared first, which costs another round trip.
func (t *tag) row(s session, width int64) (where string, args []any) {
	literal, args := "?", []any{t.name}
	if plainTag.MatchString(t.name) {
		literal, args = "'"+t.name+"'", nil
	}
	of, guard := t.table, t.guard(s.server, width)
	if t.within != nil {
		guard += sameText(of.key, literal)
		args = append(args, args...)
	}
	return fmt.Sprintf(`"%s" = %s AND "%s" <= %d%s`, of.key, literal, of.value, t.store.highest(of)-width, guard), args
}

// raiseReturning reads to the end of the answer, because the statement has committed only then.
func (t *tag) raiseReturning(ctx context.Context, s session, width int64) (end int64, err error) {
	of, count, guard := t.table, 0, t.guard(s.server, width)
	if s.server.Name() == postgresName {
		guard += " AND " + awaitsLog
	}
	text := fmt.Sprintf(returningReserve, of.name, of.value, of.also[s.server.Name()], of.key, guard)
	err = s.each(ctx, func(rows *sql.Rows) error {
		count++
		return rows.Scan(&end)
	}, text, width, t.name, t.store.highest(of)-width)
	switch {
	case err == nil && count == 0:
		err = sql.ErrNoRows
	case count > 1:
		err = errors.Join(err, &keygen.SetupError{Err: fmt.Errorf("%s has several rows of this %s", of.name, of.key), Cure: "make " + of.key + " its primary key, or give it a unique index"})
	}
	return end, err
}

// explain returns the reason why the UPDATE found or changed no row, nil if it would find and
// change one now.
func (t *tag) explain(ctx context.Context, s session, width int64) error {
	of, most := t.table, t.store.highest(t.table)
	value, err := t.look(ctx, s, of.value)
	switch {
	case err != nil:
		return err
	case value > most-width:
		return fmt.Errorf("%w: %s is %d, and its column ends at %d; change a narrower column to a bigint; if somebody raised the counter by mistake, end all processes that hold ids of it in memory, and lower it to the highest id in use", keygen.ErrExhausted, of.value, value, most)
	}
	return t.conditions(ctx, s)
}

// unchanged is the error of an UPDATE that changes no row although all its conditions hold.
func (of *counterTable) unchanged() error {
	return &keygen.SetupError{
		Err: fmt.Errorf("the UPDATE of %s did not change %s: the connection has autocommit off, so that a reserved range could be rolled back, "+
			"or it has binlog_format=STATEMENT and the tag is guarded, or a trigger keeps %[2]s as it is", of.name, of.value),
		Cure: "open the store's database without these settings, and drop the trigger",
	}
}

// conditions returns an error that names the unmet condition of the tag, nil when all hold.
func (t *tag) conditions(ctx context.Context, s session) error {
	switch {
	case t.fixed:
		return t.sameFamily(ctx, s)
	case t.within != nil:
		if err := t.inTime(ctx, s); err != nil {
			return err
		}
		return t.ownRow(ctx, s)
	}
	return nil
}

// Step returns the row's step.
func (t *tag) Step(ctx context.Context) (step int64, err error) {
	step, err = t.read(ctx, "step")
	if err != nil {
		return 0, fmt.Errorf("sqlstore: %s: read the step: %w", t, err)
	}
	return step, nil
}

// read reads a number from the tag's row, on a connection of its own.
func (t *tag) read(ctx context.Context, name string) (n int64, err error) {
	err = t.store.do(ctx, func(s session) error {
		if err := t.checkOnce(ctx, s); err != nil {
			return err
		}
		n, err = t.look(ctx, s, name)
		return t.table.explained(err)
	})
	return n, err
}

// look reads a number from the tag's row in a transaction, because a session without autocommit
// would leave one open otherwise.
func (t *tag) look(ctx context.Context, s session, name string) (n int64, err error) {
	err = s.inTx(ctx, func() (err error) {
		n, err = t.column(ctx, s, name)
		return err
	})
	return n, err
}

// column reads a number from the tag's row.
func (t *tag) column(ctx context.Context, s session, name string) (n int64, err error) {
	of := t.table
	err = s.row(ctx, fmt.Sprintf(`SELECT "%s" FROM "%s" WHERE "%s" = ?`, name, of.name, of.key), t.name).Scan(&n)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = fmt.Errorf("%w: %s has no row of this %s; %s", keygen.ErrUnknownTag, of.name, of.key, of.seed)
	case err != nil && strings.HasPrefix(err.Error(), "sql: Scan error"):
		err = &keygen.SetupError{Err: fmt.Errorf("%s.%s of this %s is NULL or not a whole number: %w", of.name, name, of.key, err), Cure: "set it to a whole number"}
	}
	return n, err
}
