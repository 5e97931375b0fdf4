// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// postgres implements Backend for PostgreSQL. Changes of definitions are transactional
// there, so that a switch is one transaction.
type postgres struct {
	dialect.Postgres
	postgresConnections
	postgresCatalog
	postgresRecognition
	postgresCapture
	postgresExclusion
	postgresExpression
	postgresWriting
}

type (
	postgresConnections struct{}
	postgresCatalog     struct{ dialect.Postgres }
	postgresRecognition struct{ found dialect.Server }
	postgresCapture     struct{ dialect.Postgres }
	postgresExclusion   struct{ dialect.Postgres }
	postgresExpression  struct{ dialect.Postgres }
	postgresWriting     struct{ dialect.Postgres }
)

func newPostgres(found dialect.Server) postgres {
	return postgres{postgresRecognition: postgresRecognition{found}}
}

var _ Backend = postgres{}

// inState also compares the text, as instrumented drivers hide the error's type.
func inState(err error, states ...string) bool {
	if err == nil {
		return false
	}
	state := dialect.SQLState(err)
	return slices.ContainsFunc(states, func(s string) bool {
		return state == s || state == "" && strings.Contains(err.Error(), "SQLSTATE "+s)
	})
}

// noTable reports whether err says that a table in a statement does not exist.
func noTable(err error) bool { return dialect.FaultOf(err) == dialect.NoTable }

// postgresPasses reports temporary errors: a lock that others hold, a server that shuts
// down, starts, has no connection left or is no longer the primary, a transaction that an
// earlier error has aborted, and a plan made before a table was altered.
func postgresPasses(err error) bool {
	return inState(err, "55P03", "57P01", "57P02", "57P03", "57P05", "25P03", "53300", "25006", "25P02", "26000", "08000", "08003", "08006") ||
		inState(err, "0A000") && strings.Contains(err.Error(), "cached plan")
}

func (postgresConnections) begin() string    { return "BEGIN" }
func (postgresConnections) LockRead() string { return " FOR SHARE" }

// commit begins with a SELECT, which fails in an aborted transaction. COMMIT alone would
// roll it back and report no error.
func (postgresConnections) commit() string { return "SELECT 1; COMMIT" }

func (postgresConnections) Duplicate(err error) bool { return inState(err, "23505") }

// postgresSettings are the settings of every connection, in the spelling of pg_settings. A
// server need not know all of them.
var postgresSettings = map[string]string{
	// A copied value must not change.
	"DateStyle":                   "ISO, MDY",
	"IntervalStyle":               "postgres",
	"TimeZone":                    "UTC",
	"extra_float_digits":          "3",
	"bytea_output":                "hex",
	"xmloption":                   "content",
	"array_nulls":                 "on",
	"standard_conforming_strings": "on",
	"quote_all_identifiers":       "off",
	"client_encoding":             "UTF8",
	// Each statement reads committed data.
	"default_transaction_isolation":  "read committed",
	"default_transaction_read_only":  "off",
	"default_transaction_deferrable": "off",
	// An acknowledged commit is durable; log entries are deleted because of it.
	"synchronous_commit": "on",
	// A policy that would hide rows is an error.
	"row_security": "off",
	// Foreign keys and triggers do what they do for others.
	"session_replication_role": "origin",
	// Nothing ends a statement or a transaction early.
	"statement_timeout":                   "0",
	"transaction_timeout":                 "0",
	"idle_in_transaction_session_timeout": "0",
	"lock_timeout":                        lockWait + "000", // ms
	"client_min_messages":                 "warning",
}

// pin sets the search path to one schema, which the functions of triggers keep.
func (m postgresConnections) pin(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "ROLLBACK"); err != nil { // of what a pooled connection may have begun
		return fmt.Errorf("%w: ROLLBACK: %w", ErrSession, err)
	}
	known, err := postgresVariables(ctx, c)
	if err != nil {
		return err
	}
	var schema sql.NullString
	var encoding string
	if err := c.QueryRowContext(ctx, "SELECT current_schema()::text, current_setting('server_encoding')").Scan(&schema, &encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: the database has the encoding %s; only UTF8 is the same on both sides", ErrUnsupported, encoding)
	}
	if !schema.Valid {
		return fmt.Errorf("%w: the search_path names no schema that exists", ErrUnsupported)
	}
	path := dialect.Postgres{}.Quote(schema.String) + ", pg_temp"
	set := []string{"SET search_path = " + path}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if want := postgresSettings[name]; known[name] != want {
			set = append(set, fmt.Sprintf("SET %s = '%s'", name, want))
		}
	}
	if _, err := c.ExecContext(ctx, strings.Join(set, "; ")); err != nil {
		return fmt.Errorf("%w: %w", ErrSession, err)
	}
	if known, err = postgresVariables(ctx, c); err != nil {
		return err
	}
	for name, is := range known {
		if want := postgresSettings[name]; is != want {
			return fmt.Errorf("%w: %s is %q, not %q", ErrSession, name, is, want)
		}
	}
	return nil
}

func postgresVariables(ctx context.Context, c *sql.Conn) (map[string]string, error) {
	known := map[string]string{}
	err := dialect.Each(ctx, c, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		known[name] = value
		return err
	}, "SELECT name, setting FROM pg_settings WHERE name IN ('"+strings.Join(slices.Sorted(maps.Keys(postgresSettings)), "', '")+"')")
	return known, err
}

// Identity is the number of the table's file, which TRUNCATE and every rewrite of the table
// change, and a hash of its definition.
func (m postgresRecognition) Identity(ctx context.Context, s *Session, name string) (string, error) {
	numbers, err := m.Numbers(ctx, s, []string{name})
	if err != nil {
		return "", err
	}
	if numbers[name] == "" {
		return "", fmt.Errorf("table %s: %w", name, ErrNoTable)
	}
	definition, err := postgresCatalog{}.definition(ctx, s, Table{Name: name}, false)
	if err != nil {
		return "", err
	}
	indexes, err := postgresCatalog{}.indexes(ctx, s, name, "it")
	if err != nil {
		return "", err
	}
	return numbers[name] + " " + Digest(strings.Join(append(definition, indexes...), "\n")), nil
}

func (postgresRecognition) Numbers(ctx context.Context, s *Session, names []string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		found, err := s.List(ctx, "SELECT c.oid || '/' || c.relfilenode "+postgresTable, name)
		if err != nil {
			return nil, err
		}
		all[name] = strings.Join(found, "")
	}
	return all, nil
}

// server also fails on a standby, which takes no writes.
func (m postgresRecognition) server(ctx context.Context, s *Session) (name string, err error) {
	var standby bool
	if err := s.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
		return "", err
	}
	if standby {
		return "", fmt.Errorf("%w: the server is a standby, which takes no writes; connect to its primary", ErrNotReady)
	}
	err = s.QueryRowContext(ctx, "SELECT "+m.found.NodeExpr()+" || ' ' || current_database() || ' ' || current_schema()").Scan(&name)
	return name, err
}

// Value reads the value as text, which the database converts back to the same value under
// the settings of each connection.
func (m postgresExpression) Value(qualifier string, c Column) string {
	return qualifier + m.Quote(c.Name) + "::text"
}

// Refused is always 0: Describe refuses column types whose text loses information.
func (postgresExpression) Refused(string, []Column) string { return "0" }

func (postgresExpression) KeyText(expression string, _ Column) string { return expression + "::text" }

// BytesOf converts values to text, including those of types without an order.
func (postgresExpression) BytesOf(expression string, c Column) string {
	if strings.HasPrefix(c.Type, "int") {
		return expression
	}
	return "(" + expression + `::text COLLATE "C")`
}

func (postgresWriting) GrowBuffers(context.Context, *Session) error { return nil }

// Limits of an INSERT, whose arrays are in memory beside its rows.
const (
	postgresRows  = 1024
	postgresBytes = 256 << 10
)

// Batch returns the largest number of rows that the limits allow. One text inserts any number.
func (postgresWriting) Batch(rows []Row) int {
	return fitting(rows[:min(len(rows), postgresRows)], postgresBytes)
}

// Insert sends the values of each column as one array of their texts, because a parameter for each value takes longer
// (BENCHMARKS.md has the time of a copy). In a transaction, a savepoint limits the rollback after an
// error to this statement.
func (m postgresWriting) Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error {
	text, err := m.insertion(ctx, s, columns, name)
	if err != nil {
		return err
	}
	defer func() { clear(s.values) }()
	s.values = s.values[:0]
	for j := range columns {
		s.values = append(s.values, arrayOf(rows, j))
	}
	if !s.began && !s.Locked {
		return s.Exec(ctx, text, s.values...)
	}
	if err := s.Exec(ctx, "SAVEPOINT shardid"); err != nil {
		return err
	}
	err = s.Exec(ctx, text, s.values...)
	if err == nil {
		return s.Exec(ctx, "RELEASE SAVEPOINT shardid")
	}
	_ = s.Exec(ctx, "ROLLBACK TO SAVEPOINT shardid; RELEASE SAVEPOINT shardid") // after a failure, COMMIT fails, too
	return err
}

// postgresColumnTypes selects the types of a table's columns, without lengths, and which of them may be elements of
// an array here: unnest takes an array of arrays apart completely, and a semicolon is between the boxes of an array.
const postgresColumnTypes = "SELECT a.attname, quote_ident(n.nspname) || '.' || quote_ident(t.typname), t.typtype IN ('b', 'e') AND t.typcategory <> 'A' AND t.typdelim = ',' AND t.typarray <> 0" +
	" FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace WHERE a.attrelid = " + postgresOid + " AND a.attnum > 0 AND NOT a.attisdropped"

// insertion returns an INSERT of the rows of as many arrays as there are columns. The connection keeps the text.
func (m postgresWriting) insertion(ctx context.Context, s *Session, columns []Column, name string) (string, error) {
	head := strings.TrimSuffix(insertHead(m, columns, name), " VALUES ")
	if text := s.insertions[head]; text != "" {
		return text, nil
	}
	type kind struct {
		name    string
		element bool
	}
	kinds := map[string]kind{}
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var column string
		var k kind
		err := rows.Scan(&column, &k.name, &k.element)
		kinds[column] = k
		return err
	}, postgresColumnTypes, name)
	if err != nil {
		return "", err
	}
	var selected, arrays, names []string
	for i, c := range columns {
		k, found := kinds[c.Name]
		if !found {
			return "", fmt.Errorf("column %s of table %s: %w", c.Name, name, ErrNoTable)
		}
		of := fmt.Sprintf("c%d", i)
		names = append(names, of)
		if !k.element {
			of, k.name = "CAST("+of+" AS "+k.name+")", "text"
		}
		selected, arrays = append(selected, of), append(arrays, "CAST("+m.Placeholder(i+1)+" AS "+k.name+"[])")
	}
	text := head + " OVERRIDING SYSTEM VALUE SELECT " + strings.Join(selected, ", ") + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS r(" + strings.Join(names, ", ") + ")"
	if s.insertions == nil {
		s.insertions = map[string]string{}
	}
	s.insertions[head] = text
	return text, nil
}

// arrayOf returns the text of an array with a value of each row.
func arrayOf(rows []Row, column int) string {
	size := 2
	for i := range rows {
		text, _ := rows[i].Value(column)
		size += len(text) + len(`"",`)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range rows {
		b.WriteByte("{,"[min(i, 1)])
		text, ok := rows[i].Value(column)
		if !ok {
			b.WriteString("NULL")
			continue
		}
		b.WriteByte('"')
		for {
			at := strings.IndexAny(text, `"\`)
			if at < 0 {
				break
			}
			b.WriteString(text[:at])
			b.WriteByte('\\')
			b.WriteByte(text[at])
			text = text[at+1:]
		}
		b.WriteString(text)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

func (m postgresWriting) Deletion(table, key string, keys []int64, condition string) string {
	text := fmt.Sprintf("DELETE FROM %s WHERE %s = ANY ('{%s}'::bigint[])", m.Quote(table), ColumnOf(m, table, key), IDList(keys))
	if condition != "" {
		text += " AND " + condition
	}
	return text
}

// postgresLead is the key of the lock on a job. Each database has its own advisory locks.
const postgresLead = "('x' || substr(md5('shardid:' || current_schema() || '/' || ?), 1, 16))::bit(64)::bigint"

func (m postgresExclusion) Lead(ctx context.Context, s *Session, job string) (bool, error) {
	// The lock waits for a second: the server releases the lock of a leader that has just
	// ended only once it has noticed the end of the connection.
	if err := s.Exec(ctx, "SET lock_timeout = '1s'"); err != nil {
		return false, err
	}
	err := s.Exec(ctx, "SELECT pg_advisory_lock("+postgresLead+")", job)
	if inState(err, "55P03") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// A host without network must not keep the lock.
	return true, m.LimitIdle(ctx, s, LeadTerm)
}

// LimitIdle cannot limit sessions outside of transactions before PostgreSQL 14.
func (postgresExclusion) LimitIdle(ctx context.Context, s *Session, most time.Duration) error {
	return s.Exec(ctx, fmt.Sprintf("SELECT set_config(name, '%d', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout')", most.Milliseconds()))
}

// postgresLed counts the sessions that hold the lock on a job.
const postgresLed = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1" +
	" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())" +
	" AND ((classid::bigint << 32) | objid::bigint) = " + postgresLead

// furtherLocksFor is how long Lock waits for further tables while it holds the first. It is
// below the default of deadlock_timeout, so that of two sessions that need each other's
// tables the application's continues without an error.
const furtherLocksFor = 200 * time.Millisecond

// Lock begins the transaction that the whole switch is. The job's own tables are left
// alone: nobody adds to a log but writers of the tables, and the epoch is locked by who
// reads it.
func (m postgresExclusion) Lock(ctx context.Context, s *Session, of Locking, most time.Duration) error {
	list := make([]string, len(of.Tables))
	for i, t := range of.Tables {
		list[i] = m.Quote(t)
	}
	// The watch is exact; this is for a server where it does not get through, and for a
	// runner that stands still with the lock in its hands.
	wait := most
	if len(list) > 1 {
		wait = min(most, furtherLocksFor)
	}
	s.lock = fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE",
		max(1, wait.Milliseconds()), min(2*most.Milliseconds()+10_000, math.MaxInt32), strings.Join(list, ", "))
	s.lockFor = most
	return m.lock(ctx, s)
}

// lock takes the locks together, again and again for as long as they may take.
func (postgresExclusion) lock(ctx context.Context, s *Session) error {
	for deadline := time.Now().Add(s.lockFor); ; {
		err := s.Exec(ctx, s.lock)
		if err == nil {
			s.Locked = true
			return nil
		}
		_ = s.Exec(ctx, "ROLLBACK") // who gives up keeps nobody waiting
		if !inState(err, "55P03") || !time.Now().Before(deadline) {
			return err
		}
	}
}

// Undoes: the lock is a transaction.
func (postgresExclusion) Undoes() bool { return true }

// Settle waits for the lock of the transaction that a switch is.
func (m postgresExclusion) Settle(ctx context.Context, s *Session, tables []string) error {
	for _, name := range tables {
		err := s.Exec(ctx, "BEGIN; LOCK TABLE "+m.Quote(name)+" IN ACCESS SHARE MODE; ROLLBACK")
		if err != nil {
			_ = s.Exec(ctx, "ROLLBACK")
		}
		if err != nil && !noTable(err) { // which has another name now
			return err
		}
	}
	return nil
}

func (m postgresExclusion) Unlock(ctx context.Context, s *Session, keep bool) error {
	s.Locked = false
	if keep {
		return s.Exec(ctx, s.Database.commit())
	}
	return s.Exec(ctx, "ROLLBACK")
}

func (m postgresExclusion) Persist(ctx context.Context, s *Session) error {
	if err := m.Unlock(ctx, s, true); err != nil {
		return err
	}
	return m.lock(ctx, s)
}

func (m postgresExclusion) Rename(from, to string) string {
	return "ALTER TABLE " + m.Quote(from) + " RENAME TO " + m.Quote(to)
}

// RenameAll is one step: the server makes a transaction of a text with several statements.
func (m postgresExclusion) RenameAll(all []Rename) []string {
	list := make([]string, len(all))
	for i, r := range all {
		list[i] = m.Rename(r.From, r.To)
	}
	if len(list) == 0 {
		return nil
	}
	return []string{strings.Join(list, "; ")}
}

// Unprepared does nothing: a prepared transaction holds its locks.
func (postgresExclusion) Unprepared(context.Context, *Session, time.Duration, func(error)) error {
	return nil
}

func (postgresExclusion) Watch(ctx context.Context, s *Session, began <-chan struct{}, rest func() time.Duration, f func() error) error {
	id, err := s.Number(ctx, "SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	return watch(ctx, s, fmt.Sprintf("SELECT pg_cancel_backend(%d)", id), began, rest, f)
}

// OtherWriters: the triggers run whatever the session_replication_role is, but a
// subscription replaces rows of a table also without one.
func (postgresExclusion) OtherWriters(ctx context.Context, s *Session) ([]Writers, error) {
	names, err := s.List(ctx, "SELECT subname FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1")
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return []Writers{{Replicated, "the database subscribes to another one (" + strings.Join(names, ", ") + "), whose rows come whatever this one says",
		"have all applications write to this server, then DROP SUBSCRIPTION of each"}}, nil
}
