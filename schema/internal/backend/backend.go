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

// Backend is what differs between the databases; one family of files for each.
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

// writing is how many rows are written.
type writing interface {
	// MakeRoom prepares the session for many rows.
	MakeRoom(ctx context.Context, s *Session) error
	// Batch is how many of the rows the next INSERT takes, at least one.
	Batch(rows []Row) int
	// Insert inserts the rows, which are a batch, in one statement.
	Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error
	// Deletion deletes the rows with these keys, if they fulfil the condition; "" is
	// none. It looks each of them up by its key and at no other row: one that
	// somebody has written and not committed would keep it waiting.
	Deletion(table, key string, keys []int64, condition string) string
}

// expression is how columns are read.
type expression interface {
	// Value is the SQL expression of a column as it is read for a copy.
	Value(qualifier string, c Column) string
	// Refused is the SQL expression of the number, from 1 on, of the first of the
	// columns whose value would not come out of a copy as it is; 0 when all would.
	Refused(qualifier string, columns []Column) string
	// KeyText is the SQL expression of a sharding key from the column, as text, just
	// as rules are given it by an application.
	KeyText(expression string, c Column) string
	// BytesOf makes a column's texts ones that are equal only when all their bytes
	// are, so that none hides behind another that its collation takes for the same.
	BytesOf(expression string, c Column) string
}

// connections is how connections and transactions are had.
type connections interface {
	// pin makes the settings of a connection what every one of a migration has,
	// and reads them back.
	pin(ctx context.Context, c *sql.Conn) error
	// begin is the statement that begins a transaction that will write.
	begin() string
	// commit ends it, and fails unless all of it lasts.
	commit() string
	// LockRead ends a SELECT whose rows must not change until the transaction
	// ends.
	LockRead() string
	// Duplicate: a unique key of any kind refused a row.
	Duplicate(err error) bool
}

// definitions are how tables are made.
type definitions interface {
	// OwnTables are the definitions of the tables of this package on the source,
	// ShardTables those on a database with shards; each with a log.
	OwnTables(log string) []string
	ShardTables(log string) []string
	// BytesType is the type of columns of bytes in own tables.
	BytesType() string
	// MapDefinition is that of a table of old and new ids.
	MapDefinition(name string) string
	// TargetDefinition is how to make a table for rows of the one described.
	TargetDefinition(ctx context.Context, s *Session, of Table, name string) ([]string, error)
}

// catalog is what a database says about its tables, and how they are made.
type catalog interface {
	definitions
	// Describe reads what a table is.
	Describe(ctx context.Context, s *Session, name string) (Table, error)
	// Exists reports whether there is a table of this name.
	Exists(ctx context.Context, s *Session, name string) (bool, error)
	// Counter is the last id that a table's counter may have given, 0 without one;
	// SetCounter has it go on above an id.
	Counter(ctx context.Context, s *Session, name string) (int64, error)
	SetCounter(ctx context.Context, s *Session, name string, id int64) error
	// DropKeys drops foreign keys of a table, and perhaps others of it.
	DropKeys(ctx context.Context, s *Session, table string, keys []ForeignKey) error
	// Unclosable are constraints of a table with which it could not get the name of a
	// closed one.
	Unclosable(ctx context.Context, s *Session, table string) ([]string, error)
	// Blockers says what else in the database depends on the tables.
	Blockers(ctx context.Context, s *Session, tables []string) ([]string, error)
}

// recognition is how it is seen that something is not what it was.
type recognition interface {
	// Identity changes when a table's rows were replaced by other means than
	// statements on rows: TRUNCATE, a restored file.
	Identity(ctx context.Context, s *Session, name string) (string, error)
	// Numbers are the parts of identities that an ALTER which leaves the rows where
	// they are does not change, by the tables' names; "" is that of no table.
	Numbers(ctx context.Context, s *Session, names []string) (map[string]string, error)
	// server changes when a database is served by another server: a replica that
	// took over, and may lack what was committed last.
	server(ctx context.Context, s *Session) (string, error)
}

// capture is the triggers.
type capture interface {
	// Capture are the triggers that note changes of a table; name makes their names
	// from an event.
	Capture(c Capture) []Trigger
	// Barrier are the triggers that refuse writers of a retired table.
	Barrier(c Capture) []Trigger
	// KeyWatch is the trigger that refuses changes of columns that foreign keys refer to.
	KeyWatch(w KeyWatch) Trigger
	// dropTrigger is the statement that drops the trigger of this name, if there is one.
	dropTrigger(name string) string
	// triggers are the names of all those in the database that begin like this.
	triggers(ctx context.Context, s *Session, prefix string) ([]string, error)
	// hasTrigger reports whether the trigger is there, on its table and as it is to
	// be.
	hasTrigger(ctx context.Context, s *Session, t Trigger) (bool, error)
	// aside runs f, which makes triggers on the table, while no statement that
	// somebody has prepared before can run without them.
	aside(ctx context.Context, s *Session, table string, f func() error) error
	// briefly runs f, which changes definitions of tables that others use, so that
	// these are kept waiting for a second at a time at most.
	briefly(ctx context.Context, s *Session, f func() error) error
	// PassBarrier has the session write to retired tables, or no longer.
	PassBarrier(ctx context.Context, s *Session, pass bool) error
	// IgnoreKeys has no foreign key check or carry on what the session writes, or has them
	// do so again; the triggers of a job run all the same. The error is ErrNotReady when the
	// user may not.
	IgnoreKeys(ctx context.Context, s *Session, ignore bool) error
}

// lasting is what becomes of what is done under a lock.
type lasting interface {
	// Undoes reports whether Unlock without keep undoes what was done under the lock.
	Undoes() bool
	// Settle waits for the end of a switch whose connection was lost, and which may go
	// on in its server.
	Settle(ctx context.Context, s *Session, tables []string) error
	// Persist makes what was written under the lock last at once, if need be by
	// letting others in for a moment: what they write is in the log.
	Persist(ctx context.Context, s *Session) error
}

// exclusion is how others are kept out.
type exclusion interface {
	// Lead makes the session the only leader of the job; false: another one is.
	Lead(ctx context.Context, s *Session, job string) (bool, error)
	// Lock has all other writers of the tables wait. The session must not begin a
	// transaction after it. It gives up after most.
	Lock(ctx context.Context, s *Session, of Locking, most time.Duration) error
	// Unlock makes the work under the lock last, or not where that is possible.
	Unlock(ctx context.Context, s *Session, keep bool) error
	// Rename gives a table another name; the lock may be held.
	Rename(from, to string) string
	// RenameAll gives several tables other names; no lock is held.
	RenameAll(all []Rename) []string
	// Abandoned fails when changes may still come that no lock keeps out.
	Abandoned(ctx context.Context, s *Session) error
	// OtherWriters finds how rows may change that no trigger notes or no lock holds.
	OtherWriters(ctx context.Context, s *Session) ([]Writers, error)
	// Watch runs f, and has the session's statements fail when the time is over that a
	// switch has before its first rename, of which rest tells what is left. The time
	// begins in f, when began is closed.
	Watch(ctx context.Context, s *Session, began <-chan struct{}, rest func() time.Duration, f func() error) error
}

// Locking is what a switch locks.
type Locking struct {
	Tables []string // others write to them
	Own    []string // of the job, which the session uses under the lock
}

// Rename is a table that gets another name.
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
		return nil, fmt.Errorf("%w: TiDB (%s) has no triggers, by which a migration notes what is written meanwhile; take the rows out with TiDB's own dumpling", ErrUnsupported, server.Version)
	}
	return nil, fmt.Errorf("%w: %s; only MariaDB, MySQL, PostgreSQL and SQLite are", ErrUnsupported, server.Kind)
}

// ColumnOf is a column with its table, quoted.
func ColumnOf(d dialect.Dialect, table, column string) string {
	return d.Quote(table) + "." + d.Quote(column)
}
