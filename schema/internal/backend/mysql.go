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

// mySQL implements Backend for MariaDB and MySQL.
type mySQL struct {
	mysqlServer
	mysqlConnections
	mysqlCatalog
	mysqlRecognition
	mysqlCapture
	mysqlExclusion
	mysqlExpression
	mysqlWriting
}

// mysqlServer is the data that all parts of mySQL share.
type mysqlServer struct {
	dialect.MySQL

	found dialect.Server
}

type (
	mysqlConnections struct{}
	mysqlCatalog     struct{ mysqlServer }
	mysqlRecognition struct{ mysqlServer }
	mysqlCapture     struct{ mysqlServer }
	mysqlExclusion   struct{ mysqlServer }
	mysqlExpression  struct{ mysqlServer }
	mysqlWriting     struct{ mysqlServer }
)

func newMySQL(found dialect.Server) mySQL {
	of := mysqlServer{dialect.MySQL{}, found}
	return mySQL{of, mysqlConnections{}, mysqlCatalog{of}, mysqlRecognition{of}, mysqlCapture{of}, mysqlExclusion{of}, mysqlExpression{of}, mysqlWriting{of}}
}

var _ Backend = mySQL{}

func (mysqlConnections) begin() string    { return "START TRANSACTION" }
func (mysqlConnections) commit() string   { return "COMMIT" }
func (mysqlConnections) LockRead() string { return " LOCK IN SHARE MODE" }

func (mysqlConnections) Duplicate(err error) bool { return IsMySQL(err, "1062") }

// IsMySQL compares the error's text, as instrumented drivers hide its type.
func IsMySQL(err error, numbers ...string) bool {
	for _, n := range numbers {
		if err != nil && strings.Contains(err.Error(), "Error "+n) {
			return true
		}
	}
	return false
}

func (m mysqlExclusion) Rename(from, to string) string {
	return "ALTER TABLE " + m.Quote(from) + " RENAME TO " + m.Quote(to)
}

// RenameAll returns one atomic statement.
func (m mysqlExclusion) RenameAll(all []Rename) []string {
	if len(all) == 0 {
		return nil
	}
	list := make([]string, len(all))
	for i, r := range all {
		list[i] = m.Quote(r.From) + " TO " + m.Quote(r.To)
	}
	return []string{"RENAME TABLE " + strings.Join(list, ", ")}
}

// Value reads dates as text, because a driver may turn them into time.Time, which has no
// zero date. It reads years as text, because the text 0000 differs from the number 0. It
// reads floating-point numbers with all their bits, which their own text loses, and with
// the sign of a zero, which a sum would lose.
func (m mysqlExpression) Value(qualifier string, c Column) string {
	name := qualifier + m.Quote(c.Name)
	switch {
	case c.isFloat():
		return name + "*1e0"
	case c.cast || c.Type == "year":
		return "CAST(" + name + " AS CHAR)"
	}
	return name
}

func (m mysqlExpression) Refused(qualifier string, columns []Column) string {
	var cases strings.Builder
	for i, c := range columns {
		if l, some := c.Loss(qualifier + m.Quote(c.Name)); some {
			fmt.Fprintf(&cases, " WHEN %s THEN %d", l.Condition, i+1)
		}
	}
	if cases.Len() == 0 {
		return "0"
	}
	return "CASE" + cases.String() + " ELSE 0 END"
}

// KeyText returns bytes unchanged, as they need not be text, and integers without the zeros
// of ZEROFILL.
func (mysqlExpression) KeyText(expression string, c Column) string {
	switch {
	case c.kind == Binary || c.Type == "bit":
		return expression
	case strings.Contains(c.Type, "int"):
		expression += "+0"
	}
	return "CAST(" + expression + " AS CHAR)"
}

// BytesOf converts texts to a collation that compares bytes: most collations, utf8mb4_bin
// included, ignore trailing spaces.
func (m mysqlExpression) BytesOf(expression string, c Column) string {
	if c.kind != Quoted || c.cast {
		return expression
	}
	collation := "utf8mb4_0900_bin"
	if m.found.Kind == dialect.KindMariaDB {
		collation = "utf8mb4_nopad_bin"
	}
	return "(CONVERT(" + expression + " USING utf8mb4) COLLATE " + collation + ")"
}

// leadLock is the name of the lock on a job. Lock names are global in the server, so it
// includes the database.
const leadLock = "LEFT(CONCAT('shardid:', SHA2(CONCAT(DATABASE(), '/', ?), 224)), 64)"

func (m mysqlExclusion) Lead(ctx context.Context, s *Session, job string) (bool, error) {
	// GET_LOCK waits for a second: the server releases the lock of a leader that has just
	// ended only once it has noticed the end of the connection.
	got, err := s.Number(ctx, "SELECT GET_LOCK("+leadLock+", 1)", job)
	if err != nil || got != 1 {
		return false, err
	}
	// A host without network must not keep the lock.
	return true, m.LimitIdle(ctx, s, LeadTerm)
}

func (mysqlExclusion) LimitIdle(ctx context.Context, s *Session, most time.Duration) error {
	return s.Exec(ctx, fmt.Sprintf("SET SESSION wait_timeout = %d", int(most.Seconds())))
}

func (m mysqlCapture) dropTrigger(name string) string {
	return "DROP TRIGGER IF EXISTS " + m.Quote(name)
}

func (mysqlCapture) PassBarrier(ctx context.Context, s *Session, pass bool) error {
	if pass {
		return s.Exec(ctx, "SET @shardid_pass = CONNECTION_ID()")
	}
	return s.Exec(ctx, "SET @shardid_pass = NULL")
}

// IgnoreKeys does nothing: the pinned settings switch foreign keys off.
func (mysqlCapture) IgnoreKeys(context.Context, *Session, bool) error { return nil }

// Lock names all tables that the session uses, as it could not read any other table.
func (m mysqlExclusion) Lock(ctx context.Context, s *Session, of Locking, most time.Duration) error {
	// The Watch enforces the exact limit. These timeouts are for a server that the Watch does
	// not reach, and for a suspended runner that holds the lock.
	seconds := int(math.Ceil(most.Seconds()))
	if err := s.Exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d, wait_timeout = %d", seconds+1, 2*seconds+10)); err != nil {
		return err
	}
	var list []string
	for _, t := range slices.Concat(of.Own, of.Tables) {
		list = append(list, m.Quote(t)+" WRITE")
	}
	if err := s.Exec(ctx, "LOCK TABLES "+strings.Join(list, ", ")); err != nil {
		return err
	}
	s.Locked = true
	return nil
}

func (mysqlExclusion) Unlock(ctx context.Context, s *Session, _ bool) error {
	s.Locked = false
	return s.Exec(ctx, "UNLOCK TABLES")
}

// Undoes is false: each statement under LOCK TABLES is committed.
func (mysqlExclusion) Undoes() bool { return false }

// Settle does nothing: reading a table name waits for the statement that changes it.
func (mysqlExclusion) Settle(context.Context, *Session, []string) error { return nil }

// Persist does nothing: statements under LOCK TABLES are committed at once.
func (mysqlExclusion) Persist(context.Context, *Session) error { return nil }

// PreparedPatience is how long a step waits for prepared transactions: those of programs that are alive end sooner, and a resolver
// may need a minute for the others.
const PreparedPatience = 2 * time.Second

// preparedPoll is how often Unprepared looks.
const preparedPoll = 5 * time.Millisecond

// Unprepared asks for XA transactions of the whole server, because XA RECOVER does not say which tables they
// have changed. In MariaDB, one whose connection is gone holds no lock on the tables and may commit later. Those of
// programs that are alive end within milliseconds, and others begin meanwhile.
func (mysqlExclusion) Unprepared(ctx context.Context, s *Session, most time.Duration, waits func(error)) error {
	began, told := time.Now(), time.Duration(0)
	known, err := prepared(ctx, s)
	remain := func(after time.Duration) error {
		return fmt.Errorf("%w: XA RECOVER lists %d prepared transactions that have not ended within %s and may change the tables later; start a resolver, or commit or roll them back",
			ErrNotReady, len(known), after.Round(time.Millisecond))
	}
	for err == nil && len(known) > 0 {
		switch took := time.Since(began); {
		case took >= most:
			return remain(most)
		case waits != nil && took >= told+time.Second:
			told = took.Truncate(time.Second)
			waits(remain(told))
		}
		if err = Wait(ctx, preparedPoll); err != nil {
			break
		}
		var now map[string]bool
		now, err = prepared(ctx, s)
		maps.DeleteFunc(known, func(id string, _ bool) bool { return !now[id] })
	}
	return err
}

// prepared returns the names of the prepared transactions.
func prepared(ctx context.Context, s *Session) (all map[string]bool, err error) {
	all = map[string]bool{}
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var format, first, second int64
		var data []byte
		err := rows.Scan(&format, &first, &second, &data)
		all[fmt.Sprint(format, " ", first, " ", second, " ", string(data))] = true
		return err
	}, "XA RECOVER")
	return all, err
}

// Watch sends KILL QUERY, because closing a connection does not end a statement that waits
// for a lock.
func (m mysqlExclusion) Watch(ctx context.Context, s *Session, began <-chan struct{}, rest func() time.Duration, f func() error) error {
	id, err := s.Number(ctx, "SELECT CONNECTION_ID()")
	if err != nil {
		return err
	}
	s.kills.endangers = m.found.Kind == dialect.KindMariaDB
	err = watch(ctx, s, fmt.Sprintf("KILL QUERY %d", id), began, rest, f)
	if s.kills.sent { // on MariaDB, a KILL between two statements ends the next statement
		_ = s.Exec(ctx, "DO 0")
	}
	return err
}

func (mysqlCatalog) BytesType() string { return "BLOB" }

func (m mysqlCatalog) Exists(ctx context.Context, s *Session, name string) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", name)
	return n > 0, err
}

// Identity is InnoDB's number of the table, which TRUNCATE and every rebuild change, and a
// hash of its definition.
func (m mysqlRecognition) Identity(ctx context.Context, s *Session, name string) (string, error) {
	numbers, err := m.Numbers(ctx, s, []string{name})
	if err != nil {
		return "", err
	}
	if numbers[name] == "" {
		return "", fmt.Errorf("%w: the server does not show InnoDB's number of table %s, so that a TRUNCATE could not be detected", ErrUnsupported, name)
	}
	definition, err := mysqlCatalog(m).definition(ctx, s, name)
	if err != nil {
		return "", err
	}
	_, body, _ := strings.Cut(WithoutCounter(definition), "(")
	return numbers[name] + " " + Digest(openNames(body)), nil
}

// server includes the data directory, as a MariaDB whose files were restored elsewhere
// keeps its other identifiers.
func (m mysqlRecognition) server(ctx context.Context, s *Session) (name string, err error) {
	err = s.QueryRowContext(ctx, "SELECT CONCAT_WS(' ', "+m.found.NodeExpr()+", @@datadir, DATABASE())").Scan(&name)
	return name, err
}

// Blockers returns nothing: the checks of foreign keys find what InnoDB would change.
func (mysqlCatalog) Blockers(context.Context, *Session, []string) ([]string, error) { return nil, nil }
