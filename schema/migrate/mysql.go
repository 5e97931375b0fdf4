package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// mysqlSeam is MariaDB and MySQL.
type mysqlSeam struct {
	dialect.MySQL

	found dialect.Server
}

var _ seam = mysqlSeam{}

func (mysqlSeam) begin() string    { return "START TRANSACTION" }
func (mysqlSeam) lockRead() string { return " LOCK IN SHARE MODE" }

func (mysqlSeam) duplicate(err error) bool { return isMySQL(err, "1062") }

// isMySQL goes by the text, as instrumented drivers hide the error's type.
func isMySQL(err error, numbers ...string) bool {
	for _, n := range numbers {
		if err != nil && strings.Contains(err.Error(), "Error "+n) {
			return true
		}
	}
	return false
}

// transient: lock timeout, server going down or starting, lost connections, a
// statement whose table was changed too often to be prepared again.
func (mysqlSeam) transient(err error) bool {
	var network net.Error
	return isMySQL(err, "1205", "1213", "1053", "1040", "1180", "2006", "2013", "1927", "1129", "1615") ||
		errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		err != nil && strings.Contains(err.Error(), "invalid connection")
}

func (m mysqlSeam) rename(from, to string) string {
	return "ALTER TABLE " + m.Quote(from) + " RENAME TO " + m.Quote(to)
}

// renameAll is one step: all or none.
func (m mysqlSeam) renameAll(all []renaming) []string {
	if len(all) == 0 {
		return nil
	}
	list := make([]string, len(all))
	for i, r := range all {
		list[i] = m.Quote(r.from) + " TO " + m.Quote(r.to)
	}
	return []string{"RENAME TABLE " + strings.Join(list, ", ")}
}

// value reads dates as text, because a driver may make times of them, which
// have no zero date; years, too, as the text 0000 is another one than the number
// 0; floating-point numbers with all their bits, which they lose as text of their
// own type, and with the sign of a zero, which a sum would lose.
func (m mysqlSeam) value(qualifier string, c column) string {
	name := qualifier + m.Quote(c.name)
	switch {
	case c.isFloat():
		return name + "*1e0"
	case c.cast || c.typ == "year":
		return "CAST(" + name + " AS CHAR)"
	}
	return name
}

func (m mysqlSeam) refused(qualifier string, columns []column) string {
	var cases strings.Builder
	for i, c := range columns {
		if l, some := c.lost(qualifier + m.Quote(c.name)); some {
			fmt.Fprintf(&cases, " WHEN %s THEN %d", l.condition, i+1)
		}
	}
	if cases.Len() == 0 {
		return "0"
	}
	return "CASE" + cases.String() + " ELSE 0 END"
}

// keyText leaves bytes as they are, as they need not be text, and integers without
// the zeros of ZEROFILL.
func (mysqlSeam) keyText(expression string, c column) string {
	switch {
	case c.kind == binary || c.typ == "bit":
		return expression
	case strings.Contains(c.typ, "int"):
		expression += "+0"
	}
	return "CAST(" + expression + " AS CHAR)"
}

// bytesOf: most collations ignore spaces at the end, utf8mb4_bin, too.
func (m mysqlSeam) bytesOf(expression string, c column) string {
	if c.kind != quoted || c.cast {
		return expression
	}
	collation := "utf8mb4_0900_bin"
	if m.found.Kind == dialect.KindMariaDB {
		collation = "utf8mb4_nopad_bin"
	}
	return "(CONVERT(" + expression + " USING utf8mb4) COLLATE " + collation + ")"
}

func (mysqlSeam) lead(ctx context.Context, s *session, job string) (bool, error) {
	// The name is that of the server, so the database belongs into it. A leader that
	// has just ended may hold the lock for as long as its goodbye is under way.
	got, err := s.number(ctx, "SELECT GET_LOCK(LEFT(CONCAT('shardid:', SHA2(CONCAT(DATABASE(), '/', ?), 224)), 64), 1)", job)
	if err != nil || got != 1 {
		return false, err
	}
	// A host that is cut off must not keep the lock.
	return true, s.exec(ctx, fmt.Sprintf("SET SESSION wait_timeout = %d", int(leadTerm.Seconds())))
}

func (mysqlSeam) passBarrier(ctx context.Context, s *session, pass bool) error {
	if pass {
		return s.exec(ctx, "SET @shardid_pass = 1")
	}
	return s.exec(ctx, "SET @shardid_pass = NULL")
}

func (m mysqlSeam) lock(ctx context.Context, s *session, tables []string, most time.Duration) error {
	// The watch is exact; this is for a server where it does not get through, and
	// for a runner that stands still with the lock in its hands.
	seconds := int(math.Ceil(most.Seconds()))
	if err := s.exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d, wait_timeout = %d", seconds+1, 2*seconds+10)); err != nil {
		return err
	}
	list := make([]string, len(tables))
	for i, t := range tables {
		list[i] = m.Quote(t) + " WRITE"
	}
	if err := s.exec(ctx, "LOCK TABLES "+strings.Join(list, ", ")); err != nil {
		return err
	}
	s.locked = true
	return nil
}

func (mysqlSeam) unlock(ctx context.Context, s *session, _ bool) error {
	s.locked = false
	return s.exec(ctx, "UNLOCK TABLES")
}

// persist: nothing is held back under LOCK TABLES.
func (mysqlSeam) persist(context.Context, *session) error { return nil }

// abandoned: in MariaDB a prepared XA transaction whose connection is gone holds
// no lock on the tables, and may commit later.
func (mysqlSeam) abandoned(ctx context.Context, s *session) error {
	count := 0
	err := s.each(ctx, func(*sql.Rows) error { count++; return nil }, "XA RECOVER")
	if err == nil && count > 0 {
		err = fmt.Errorf("%w: XA RECOVER lists %d prepared transactions, which may change the tables later; commit or roll them back", ErrNotReady, count)
	}
	return err
}

// watch sends KILL QUERY, as a statement that waits for a lock does not end when
// its connection is closed.
func (mysqlSeam) watch(ctx context.Context, s *session, t *timing, f func() error) error {
	id, err := s.number(ctx, "SELECT CONNECTION_ID()")
	if err != nil {
		return err
	}
	killer, err := s.side.session(ctx)
	if err != nil {
		return err
	}
	defer killer.Close()
	killing, done := context.WithCancel(ctx)
	sent := false
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-killing.Done():
			return
		case <-t.start:
		}
		timer := time.NewTimer(t.rest())
		defer timer.Stop()
		for {
			select {
			case <-killing.Done():
				return
			case <-timer.C:
				sent = true
				// It may come between two statements, so it is repeated.
				_ = killer.exec(killing, fmt.Sprintf("KILL QUERY %d", id))
				timer.Reset(20 * time.Millisecond)
			}
		}
	})
	err = f()
	done() // nobody waits for an answer: writers do
	wg.Wait()
	if sent { // MariaDB has a KILL that comes between two statements end the next one
		_ = s.exec(ctx, "DO 0")
	}
	return err
}

func (m mysqlSeam) exists(ctx context.Context, s *session, name string) (bool, error) {
	n, err := s.number(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", name)
	return n > 0, err
}

// identity is InnoDB's number of the table, which TRUNCATE and every rebuild
// change, and its definition.
func (m mysqlSeam) identity(ctx context.Context, s *session, name string) (string, error) {
	numbers, err := m.numbers(ctx, s, []string{name})
	if err != nil {
		return "", err
	}
	if numbers[name] == "" {
		return "", fmt.Errorf("%w: the server shows no number of InnoDB for table %s, so that a TRUNCATE would not be seen", ErrUnsupported, name)
	}
	definition, err := m.definition(ctx, s, name)
	if err != nil {
		return "", err
	}
	_, body, _ := strings.Cut(withoutCounter(definition), "(")
	return numbers[name] + " " + digest(openNames(body)), nil
}

// server adds where the data lies, as a MariaDB whose files were restored elsewhere
// keeps its other marks.
func (m mysqlSeam) server(ctx context.Context, s *session) (name string, err error) {
	err = s.QueryRowContext(ctx, "SELECT CONCAT_WS(' ', "+m.found.NodeExpr()+", @@datadir, DATABASE())").Scan(&name)
	return name, err
}

// blockers finds what InnoDB would do by itself across the edge of the job.
func (mysqlSeam) blockers(context.Context, *session, []string) ([]string, error) { return nil, nil }
