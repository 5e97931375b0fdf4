// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// Backend is the set of operations that differ between databases. Each database has one
// family of files.
type Backend interface {
	dialect.Dialect
	connections
	catalog
	recognition
	capture
	exclusion
	lasting
	expression
	writing
}

// writing inserts and deletes rows.
type writing interface {
	// GrowBuffers grows the driver's buffers for statements with many rows.
	GrowBuffers(ctx context.Context, s *Session) error
	// Batch is how many of the rows the next INSERT takes, at least one.
	Batch(rows []Row) int
	// Insert inserts one batch of rows in one statement.
	Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error
	// Deletion returns the statement that deletes the rows with these keys, if they satisfy
	// the condition; "" is no condition. The statement looks up each row by its key and reads
	// no other row, because it would wait for a row that somebody has written and not
	// committed.
	Deletion(table, key string, keys []int64, condition string) string
}

// expression returns SQL expressions that read columns.
type expression interface {
	// Value is the SQL expression that reads a column for a copy.
	Value(qualifier string, c Column) string
	// Refused is the SQL expression of the number, from 1 on, of the first of the columns
	// whose value a copy would change; 0 when it changes none.
	Refused(qualifier string, columns []Column) string
	// KeyText is the SQL expression of a sharding key as text, in the form in which an
	// application gives it to a rule.
	KeyText(expression string, c Column) string
	// BytesOf compares a column's texts by their bytes, so that two texts which a collation
	// treats as equal stay distinct.
	BytesOf(expression string, c Column) string
}

// connections configures connections and transactions.
type connections interface {
	// pin applies the settings that every connection of a migration has, and reads them back.
	pin(ctx context.Context, c *sql.Conn) error
	// begin is the statement that begins a writing transaction.
	begin() string
	// commit is the statement that ends it. It fails unless everything in the transaction is
	// committed.
	commit() string
	// LockRead ends a SELECT whose rows must not change until the transaction
	// ends.
	LockRead() string
	// Duplicate reports whether a unique key of any kind has refused a row.
	Duplicate(err error) bool
}

// definitions creates tables.
type definitions interface {
	// OwnTables are the statements that create this package's tables on the source, and
	// ShardTables those on a database with shards. Both create a log.
	OwnTables(log string) []string
	ShardTables(log string) []string
	// BytesType is the type of byte columns in this package's tables.
	BytesType() string
	// MapDefinition is the statement that creates a map table, which has old and new ids.
	MapDefinition(name string) string
	// TargetDefinition returns the statements that create a table for rows of the described
	// one.
	TargetDefinition(ctx context.Context, s *Session, of Table, name string) ([]string, error)
}

// catalog reads and changes table definitions.
type catalog interface {
	definitions
	// Describe reads the definition of a table.
	Describe(ctx context.Context, s *Session, name string) (Table, error)
	// Exists reports whether there is a table of this name.
	Exists(ctx context.Context, s *Session, name string) (bool, error)
	// Counter is the last id that a table's counter may have given, 0 without a counter.
	// SetCounter makes the counter continue above an id.
	Counter(ctx context.Context, s *Session, name string) (int64, error)
	SetCounter(ctx context.Context, s *Session, name string, id int64) error
	// DropKeys drops these foreign keys of a table. SQLite can drop only all of them.
	DropKeys(ctx context.Context, s *Session, table string, keys []ForeignKey) error
	// Unclosable returns the constraints of a table that prevent renaming it to its retired
	// name.
	Unclosable(ctx context.Context, s *Session, table string) ([]string, error)
	// Blockers returns other objects of the database that depend on the tables.
	Blockers(ctx context.Context, s *Session, tables []string) ([]string, error)
}

// recognition detects that a table or a server was replaced.
type recognition interface {
	// Identity changes when a table's rows were replaced by something else than row
	// statements, such as TRUNCATE or a restored file.
	Identity(ctx context.Context, s *Session, name string) (string, error)
	// Numbers returns, by table name, the part of an identity that an ALTER which keeps the
	// rows in place does not change; "" for a missing table.
	Numbers(ctx context.Context, s *Session, names []string) (map[string]string, error)
	// server returns another value when another server serves the database, for example a
	// replica that took over and may lack the last commits.
	server(ctx context.Context, s *Session) (string, error)
	// mayShow fails when the user may not see a trigger, so that it only seems to be missing.
	mayShow(ctx context.Context, s *Session, trigger string) error
}

// capture creates the triggers of a job.
type capture interface {
	// Capture returns the triggers that note changes of a table. c.TriggerName makes their
	// names from an event.
	Capture(c Capture) []Trigger
	// Barrier returns the triggers that refuse writes to a retired table.
	Barrier(c Capture) []Trigger
	// KeyWatch returns the trigger that refuses changes of columns that foreign keys refer to.
	KeyWatch(w KeyWatch) Trigger
	// dropTrigger is the statement that drops the trigger of this name, if there is one.
	dropTrigger(name string) string
	// triggers returns the names of all triggers in the database that have the prefix.
	triggers(ctx context.Context, s *Session, prefix string) ([]string, error)
	// hasTrigger reports whether the trigger exists on its table with the expected body.
	hasTrigger(ctx context.Context, s *Session, t Trigger) (bool, error)
	// withoutWriters runs f, which creates triggers on the table, so that no statement prepared earlier
	// runs without them.
	withoutWriters(ctx context.Context, s *Session, table string, f func() error) error
	// limitingWaits runs f, which changes definitions of tables in use, and limits each wait for a
	// lock to a second: other users of the tables wait behind it.
	limitingWaits(ctx context.Context, s *Session, f func() error) error
	// PassBarrier allows the session to write to retired tables, or forbids it again.
	PassBarrier(ctx context.Context, s *Session, pass bool) error
	// IgnoreKeys switches the checks and actions of foreign keys off for what the session
	// writes, or on again; the triggers of a job run in both cases. The error is ErrNotReady
	// when the user lacks the right.
	IgnoreKeys(ctx context.Context, s *Session, ignore bool) error
}

// lasting decides whether work done under a lock is kept.
type lasting interface {
	// Undoes reports whether Unlock without keep undoes the work done under the lock.
	Undoes() bool
	// Settle waits for the end of a switch whose connection was lost and whose statement may
	// still run in the server.
	Settle(ctx context.Context, s *Session, tables []string) error
	// Persist commits the work done under the lock at once. It may release the lock for a
	// moment; the log has what others write then.
	Persist(ctx context.Context, s *Session) error
}

// exclusion locks out other runners and writers.
type exclusion interface {
	// Lead makes the session the only leader of the job; false means that another session
	// leads.
	Lead(ctx context.Context, s *Session, job string) (bool, error)
	// LimitIdle makes the server close the session when it has heard nothing from it for so
	// long, and undo its transaction.
	LimitIdle(ctx context.Context, s *Session, most time.Duration) error
	// Lock makes all other writers of the tables wait. The session must not begin a
	// transaction after it. Lock gives up after most.
	Lock(ctx context.Context, s *Session, of Locking, most time.Duration) error
	// Unlock ends the lock. Without keep it undoes the work done under the lock, where the
	// database can do that.
	Unlock(ctx context.Context, s *Session, keep bool) error
	// Rename returns the statement that renames a table; it may run under the lock.
	Rename(from, to string) string
	// RenameAll returns the statements that rename several tables; they run without a lock.
	RenameAll(all []Rename) []string
	// Unprepared waits for at most so long until the transactions have ended that are prepared now and
	// may commit changes that no lock prevents. If one has not, the error is ErrNotReady. It calls waits, unless that is
	// nil, each second with such an error while it waits.
	Unprepared(ctx context.Context, s *Session, most time.Duration, waits func(error)) error
	// OtherWriters returns ways in which rows may change without triggers or despite locks.
	OtherWriters(ctx context.Context, s *Session) ([]Writers, error)
	// Watch runs f, and cancels the session's statements while rest returns no more time. A
	// switch has that time before its first rename. The time starts in f, which closes began.
	Watch(ctx context.Context, s *Session, began <-chan struct{}, rest func() time.Duration, f func() error) error
}

// Locking is the set of tables that a switch locks.
type Locking struct {
	Tables []string // which others write to
	Own    []string // of the job, which the session uses under the lock
}

// Rename is the old and the new name of a table.
type Rename struct{ From, To string }

func forServer(server dialect.Server) (Backend, error) {
	switch {
	case server.Proxy != "":
		return nil, fmt.Errorf("%w: a connection through %s; a migration keeps locks for as long as a connection lives, so connect to the server itself", ErrUnsupported, server.Proxy)
	case server.Kind == dialect.KindMySQL || server.Kind == dialect.KindMariaDB:
		return newMySQL(server), nil
	case server.Kind == dialect.KindSQLite:
		return sqLite{}, nil
	case server.Kind == dialect.KindPostgreSQL:
		if major, _, _ := strings.Cut(server.Version, "."); len(major) < 2 || major < "15" {
			return nil, fmt.Errorf("%w: PostgreSQL %s; a migration needs 15 or newer", ErrUnsupported, server.Version)
		}
		return newPostgres(server), nil
	case server.Kind == dialect.KindTiDB:
		return nil, fmt.Errorf("%w: TiDB (%s) has no triggers, which a migration needs to note concurrent writes; export the rows with TiDB's dumpling", ErrUnsupported, server.Version)
	}
	return nil, fmt.Errorf("%w: %s; only MariaDB, MySQL, PostgreSQL and SQLite are", ErrUnsupported, server.Kind)
}

// ColumnOf returns the quoted name of a column, qualified by its table.
func ColumnOf(d dialect.Dialect, table, column string) string {
	return d.Quote(table) + "." + d.Quote(column)
}
