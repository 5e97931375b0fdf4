// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"database/sql/driver"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Runner sends statements to a database.
type Runner interface {
	// Exec returns how many rows were affected.
	Exec(ctx context.Context, text string, args ...any) (int64, error)
	Query(ctx context.Context, text string, args ...any) ([][]driver.Value, error)
}

// SQL is a lookup table in a database.
type SQL struct {
	Of *sharding.Table
	// Now returns the present snapshot. Slots may move while a statement is executed.
	Now     func() *sharding.Snapshot
	Lookup  *sharding.Lookup
	Dialect dialect.Dialect
	// Entries executes the statements about the lookup table, under its logical name.
	Entries Runner
	// Locks says that Entries is in the caller's transaction. Reads then lock rows, because
	// they must see what others have committed since the transaction began.
	Locks bool
	// On calls f with a connection to the database of a target, where f looks for a row
	// of a key. own says that the connection is in the caller's transaction and sees its
	// uncommitted changes.
	On func(ctx context.Context, at sharding.Target, f func(on Runner, own bool) error) error
	// Absent returns an error if a row of a key that was not found might be there after a rollback of the caller's
	// transaction. It may be nil if a rollback brings no row back.
	Absent func(at sharding.Target, key any) error
	// Committed calls f with another connection than that of the caller's transaction. freed says that the transaction
	// may have taken values from rows of the key. It may be nil if On calls no f with an own connection.
	Committed func(ctx context.Context, at sharding.Target, key any, f func(on Runner, freed bool) error) error
}

var _ Table = (*SQL)(nil)

// Claimed returns an entry with a new random claim. Claims must differ but need not be secret.
func Claimed(value, key any) Entry {
	return Entry{value, key, rand.Int64()}
}

// Sought returns an error that wraps [sharding.ErrLookup] for a column that can have no lookup: one whose values are not found
// as they are read, or that the database changes when a statement changes other columns.
func Sought(ctx context.Context, d dialect.Dialect, db dialect.Querier, table, column string) error {
	c, _, err := dialect.ReadColumn(ctx, db, d, table, column)
	if err != nil {
		return err
	}
	if !c.Finds() {
		return fmt.Errorf("%w: column %s is %s, whose values are not found as they are read", sharding.ErrLookup, column, c.Type)
	}
	own, err := dialect.OwnValues(ctx, db, d, table)
	if is := own[strings.ToLower(column)]; err == nil && (is.Computed || is.Touched) {
		err = fmt.Errorf("%w: the database changes column %s when other columns change", sharding.ErrLookup, column)
	}
	return err
}

// text translates a statement about the lookup table to the dialect. In the statement "l" is
// the table, "v" the column of values, "k" the column of keys and "c" the column of claims.
func (t *SQL) text(statement string) string {
	names := strings.NewReplacer(`"l"`, `"`+t.Lookup.Table+`"`, `"v"`, `"`+t.Lookup.Column+`"`, `"k"`, `"`+t.Of.Key+`"`, `"c"`, `"`+sharding.ClaimColumn+`"`)
	return dialect.Text(t.Dialect, names.Replace(statement))
}

// identified returns the condition that identifies an entry, and its arguments.
func (t *SQL) identified(e Entry) (string, []any) {
	if t.Lookup.Unique {
		return `"v" = ?`, []any{e.Value}
	}
	return `"v" = ? AND "k" = ?`, []any{e.Value, e.Key}
}

// unchanged returns the condition for an entry that is still equal to e, and its arguments.
func (t *SQL) unchanged(e Entry) (string, []any) {
	return `"v" = ? AND "k" = ? AND "c" = ?`, []any{e.Value, e.Key, e.Claim}
}

// Insert lets the database find conflicts. It does not use MySQL's IGNORE, which also turns
// other errors into warnings and cuts a text that is too long for its column.
func (t *SQL) Insert(ctx context.Context, entries []Entry) (int64, error) {
	if t.Dialect.Name() != "mysql" {
		return t.insert(ctx, entries, " ON CONFLICT DO NOTHING")
	}
	added, err := t.insert(ctx, entries, "")
	if !dialect.IsDuplicate(err) {
		return added, err
	}
	_, err = t.insert(ctx, entries, ` ON DUPLICATE KEY UPDATE "c" = "c"`)
	return 0, err // the affected rows depend on the connection's settings; the claims tell what was added
}

// Duplicate inserts without a conflict clause, so that the database reports the conflict.
func (t *SQL) Duplicate(ctx context.Context, e Entry) error {
	_, err := t.insert(ctx, []Entry{e}, "")
	return err
}

// insert executes an INSERT of several entries.
func (t *SQL) insert(ctx context.Context, entries []Entry, end string) (int64, error) {
	args := make([]any, 0, 3*len(entries))
	for _, e := range entries {
		args = append(args, e.Value, e.Key, e.Claim)
	}
	added, err := t.Entries.Exec(ctx, t.text(`INSERT INTO "l" ("v", "k", "c") VALUES (?, ?, ?)`+strings.Repeat(", (?, ?, ?)", len(entries)-1)+end), args...)
	if err != nil && !dialect.IsDuplicate(err) {
		err = fmt.Errorf("lookup table %s: %w", t.Lookup.Table, err)
	}
	return added, err
}

// Claims selects by the values.
func (t *SQL) Claims(ctx context.Context, entries []Entry) ([]int64, error) {
	args := make([]any, len(entries))
	for i, e := range entries {
		args[i] = e.Value
	}
	rows, err := t.Entries.Query(ctx, t.text(`SELECT "c" FROM "l" WHERE "v" IN (?`+strings.Repeat(", ?", len(args)-1)+`)`+t.latest()), args...)
	claims := make([]int64, len(rows))
	for i, row := range rows {
		if claims[i], err = integer(row[0]); err != nil {
			return nil, err
		}
	}
	return claims, err
}

// latest returns the clause with which a transaction reads what others have committed since
// it began.
func (t *SQL) latest() string {
	if t.Locks && t.Dialect.Name() != "sqlite" {
		return " FOR UPDATE"
	}
	return ""
}

// Find returns the entry as it is stored.
func (t *SQL) Find(ctx context.Context, in Entry) (Entry, bool, error) {
	where, args := t.identified(in)
	rows, err := t.Entries.Query(ctx, t.text(`SELECT "k", "c" FROM "l" WHERE `+where+t.latest()), args...)
	if err != nil || len(rows) == 0 {
		return Entry{}, false, err
	}
	claim, err := integer(rows[0][1])
	return Entry{in.Value, rows[0][0], claim}, err == nil, err
}

func integer(v driver.Value) (n int64, err error) {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if _, err := fmt.Sscan(fmt.Sprint(v), &n); err != nil {
		return 0, fmt.Errorf("the claim %v is no integer: %w", v, err)
	}
	return n, nil
}

// Replace compares and exchanges in one statement.
func (t *SQL) Replace(ctx context.Context, old, by Entry) (bool, error) {
	where, args := t.unchanged(old)
	set, values := `"c" = ?`, []any{by.Claim}
	if t.Lookup.Unique {
		set, values = `"k" = ?, "c" = ?`, []any{by.Key, by.Claim}
	}
	n, err := t.Entries.Exec(ctx, t.text(`UPDATE "l" SET `+set+` WHERE `+where), append(values, args...)...)
	return n > 0, err
}

// Delete compares and removes in one statement.
func (t *SQL) Delete(ctx context.Context, old Entry) (bool, error) {
	where, args := t.unchanged(old)
	n, err := t.Entries.Exec(ctx, t.text(`DELETE FROM "l" WHERE `+where), args...)
	return n > 0, err
}

// Together compares the slots of the keys: rows of one slot move together.
func (t *SQL) Together(a, b any) (bool, error) {
	first, err := t.Of.Slot(a)
	if err != nil {
		return false, err
	}
	second, err := t.Of.Slot(b)
	return first == second, err
}

// Has reads with a lock, so that it waits for a writer whose transaction is open. SQLite and
// PostgreSQL have no such read for a row that is not yet committed. On SQLite Has takes the
// write lock of the database. On PostgreSQL it takes the advisory lock of the key, which
// [SQL.Hold] takes for each writer.
//
// A row may have got another key of the same slot since its value was entered. A row of
// another slot may have the value in the same physical table. So Has compares slots. If it
// finds no row and the map has changed meanwhile, it reads again, as the slot may have moved.
func (t *SQL) Has(ctx context.Context, e Entry) (has bool, err error) {
	for {
		now := t.Now()
		at, err := now.Target(t.Of.Name, e.Key)
		if err != nil {
			return false, err
		}
		if has, err = t.hasAt(ctx, at, e); has || err != nil || t.Now() == now {
			return has, err
		}
	}
}

func (t *SQL) hasAt(ctx context.Context, at sharding.Target, e Entry) (has bool, err error) {
	where, args := t.identified(e)
	rows := `SELECT "k" FROM "` + at.Table + `" WHERE ` + where
	var found [][]driver.Value
	err = t.On(ctx, at, func(on Runner, own bool) error {
		switch t.Dialect.Name() {
		case "mysql":
			found, err = on.Query(ctx, t.text(rows+" LIMIT 1 LOCK IN SHARE MODE"), args...)
		case "postgres":
			if err := t.advise(ctx, on, e.Key); err != nil {
				return err
			}
			found, err = on.Query(ctx, t.text(`SELECT "k" FROM (`+rows+` FOR SHARE) held LIMIT 1`), args...)
			if err == nil && len(found) == 0 && own {
				found, err = t.since(ctx, on, at, e.Key, rows, args)
			}
		default:
			found, err = t.alone(ctx, on, own, at, t.text(rows+" LIMIT 1"), args)
		}
		return err
	})
	if err == nil && len(found) > 0 {
		has, err = t.Together(found[0][0], e.Key)
	}
	if err == nil && !has && t.Absent != nil {
		err = t.Absent(at, e.Key)
	}
	return has, err
}

// since looks for a row that was committed after the beginning of the caller's transaction, and which that therefore
// does not see. The transaction holds the advisory lock of the key, so no other one is inserting such a row. A row that
// the transaction has deleted itself is locked, and left out.
func (t *SQL) since(ctx context.Context, own Runner, at sharding.Target, key any, rows string, args []any) (found [][]driver.Value, err error) {
	level, err := own.Query(ctx, "SELECT current_setting('transaction_isolation') IN ('repeatable read', 'serializable')")
	if err != nil || level[0][0] != true {
		return nil, err
	}
	err = t.Committed(ctx, at, key, func(on Runner, freed bool) error {
		lock := " FOR KEY SHARE"
		if freed {
			lock += " SKIP LOCKED"
		}
		found, err = on.Query(ctx, t.text(`SELECT "k" FROM (`+rows+lock+`) held LIMIT 1`), args...)
		return err
	})
	return found, err
}

// alone reads while no other connection can write to the database. Without that, a transaction
// that has read before fails if another one has written since.
func (t *SQL) alone(ctx context.Context, on Runner, own bool, at sharding.Target, text string, args []any) ([][]driver.Value, error) {
	if own {
		if _, err := on.Exec(ctx, t.text(`DELETE FROM "`+at.Table+`" WHERE 1 = 0`)); err != nil {
			return nil, err
		}
		return on.Query(ctx, text, args...)
	}
	if _, err := on.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	rows, err := on.Query(ctx, text, args...)
	if _, failed := on.Exec(context.WithoutCancel(ctx), "ROLLBACK"); err == nil {
		err = failed
	}
	return rows, err
}

// Hold makes others wait who look for rows of these keys, which the caller has written and not
// committed. It does nothing on databases whose locking reads wait already.
func (t *SQL) Hold(ctx context.Context, on Runner, keys []any) error {
	if t.Dialect.Name() != "postgres" {
		return nil
	}
	for some := range slices.Chunk(keys, maxEntries) {
		if err := t.advise(ctx, on, some...); err != nil {
			return err
		}
	}
	return nil
}

// advise takes the advisory locks of keys until the transaction ends. It sorts them, because
// one order for all transactions prevents deadlocks.
func (t *SQL) advise(ctx context.Context, on Runner, keys ...any) error {
	var locks []int64
	for _, key := range keys {
		for _, form := range forms(key) {
			sum := fnv.New64a()
			_, _ = fmt.Fprintf(sum, "shardid\x00%s\x00%v", strings.ToLower(t.Lookup.Table), form) // a hash returns no error
			locks = append(locks, int64(sum.Sum64()))
		}
	}
	slices.Sort(locks)
	values := make([]string, len(locks))
	for i, lock := range locks {
		values[i] = "(" + strconv.FormatInt(lock, 10) + "::bigint)"
	}
	_, err := on.Query(ctx, "SELECT pg_advisory_xact_lock(v.n) FROM (VALUES "+strings.Join(values, ", ")+") v (n)")
	return err
}

// forms returns the forms in one of which PostgreSQL returns a key that was given in any Go type, in any zone, or
// with leading zeros. A driver or the server rounds a time to microseconds.
func forms(key any) []any {
	if plain, err := driver.DefaultParameterConverter.ConvertValue(key); err == nil {
		key = plain
	}
	if text, ok := key.([]byte); ok {
		key = string(text)
	}
	switch k := key.(type) {
	case string:
		if n, err := strconv.ParseInt(k, 10, 64); err == nil {
			return []any{n}
		}
	case time.Time:
		at := k.UTC().Truncate(time.Microsecond)
		if k.Equal(at) {
			return []any{at}
		}
		return []any{at, at.Add(time.Microsecond)}
	}
	return []any{key}
}

// Owners returns the keys that own one of the values, compared in the column's collation. more
// says that there are more keys than wanted; keys then has one more than wanted.
func (t *SQL) Owners(ctx context.Context, values []any, wanted int) (keys []any, more bool, err error) {
	keys, err = keysOf(t.Entries.Query(ctx, t.text(`SELECT "k" FROM "l" WHERE "v" IN (?`+strings.Repeat(", ?", len(values)-1)+`) LIMIT `+strconv.Itoa(wanted+1)), values...))
	return keys, len(keys) > wanted, err
}

// Keys returns the sharding keys of the rows of a target that have a value, at most that many.
func (t *SQL) Keys(ctx context.Context, on Runner, at sharding.Target, value any, most int) (keys []any, err error) {
	return keysOf(on.Query(ctx, t.text(`SELECT DISTINCT "k" FROM "`+at.Table+`" WHERE "v" = ? LIMIT `+strconv.Itoa(most)), value))
}

func keysOf(rows [][]driver.Value, err error) (keys []any, _ error) {
	for _, row := range rows {
		keys = append(keys, row[0])
	}
	return keys, err
}
