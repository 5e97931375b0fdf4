// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

func TestQuoteDoublesItsQuoteCharacter(t *testing.T) {
	if got := (MySQL{}).Quote("a`b\"c"); got != "`a``b\"c`" {
		t.Errorf("MySQL: %s", got)
	}
	if got := (SQLite{}).Quote("a`b\"c"); got != `"a`+"`"+`b""c"` {
		t.Errorf("SQLite: %s", got)
	}
	if got := (Postgres{}).Quote("a`b\"c"); got != `"a`+"`"+`b""c"` {
		t.Errorf("PostgreSQL: %s", got)
	}
}

func TestOnlyPostgreSQLNumbersItsPlaceholders(t *testing.T) {
	for d, want := range map[Dialect]string{MySQL{}: "? ?", SQLite{}: "? ?", Postgres{}: "$1 $12"} {
		if got := d.Placeholder(1) + " " + d.Placeholder(12); got != want {
			t.Errorf("%s: %s", d.Name(), got)
		}
	}
}

func TestTheVersionTellsServersApart(t *testing.T) {
	for version, want := range map[string]Server{
		"8.0.11-TiDB-v8.5.1":        {Dialect: MySQL{}, Kind: KindTiDB, Version: "8.0.11-TiDB-v8.5.1"},
		"8.4.6-Vitess":              {Dialect: MySQL{}, Kind: KindVitess, Version: "8.4.6-Vitess"},
		"5.5.5-10.5.1-3.0-maxscale": {Dialect: MySQL{}, Kind: KindMySQL, Version: "5.5.5-10.5.1-3.0-maxscale", Proxy: "MaxScale"},
		"8.0.36":                    {Dialect: MySQL{}, Kind: KindMySQL, Version: "8.0.36"},
		"10.11.6-MariaDB":           {Dialect: MySQL{}, Kind: KindMariaDB, Version: "10.11.6-MariaDB"},
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc": {Dialect: Postgres{}, Kind: KindPostgreSQL, Version: "15.18 (Debian 15.18-0+deb12u1)"},
		"PostgreSQL 17.2 on aarch64": {Dialect: Postgres{}, Kind: KindPostgreSQL, Version: "17.2"},
	} {
		if got, err := byVersion(version); err != nil || got != want {
			t.Errorf("%s: %v, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "CockroachDB CCL v23.1.11"} {
		if got, err := byVersion(version); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, %v", version, got, err)
		}
	}
}

func TestNamedKnowsAliasesAndNamesTheUnknown(t *testing.T) {
	for name, want := range map[string]string{"MySQL": "mysql", "mariadb": "mysql", "sqlite": "sqlite", "sqlite3": "sqlite", "postgres": "postgres", "PostgreSQL": "postgres"} {
		if d, err := Named(name); err != nil || d.Name() != want {
			t.Errorf("Named(%q) = %v, %v", name, d, err)
		}
	}
	if _, err := Named("oracle"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("Named(oracle): %v", err)
	}
}

func TestCheckIdentTakesPlainNamesOnly(t *testing.T) {
	for _, name := range []string{"a", "_", "order_items$2", strings.Repeat("x", 64)} {
		if err := CheckIdent(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "1a", "a b", "a;b", "a`", "ä", "a.b", strings.Repeat("x", 65), "a\n"} {
		if err := CheckIdent(name); !errors.Is(err, ErrIdentifier) {
			t.Errorf("CheckIdent(%q): %v", name, err)
		}
	}
}

func TestContendedErrorsMayBeRetried(t *testing.T) {
	for text, want := range map[string]bool{
		"database is locked (5) (SQLITE_BUSY)":                                                  true,
		"database table is locked: t (262)":                                                     true,
		"Error 1213 (40001): Deadlock found when trying to get lock":                            true,
		"Error 1020 (HY000): Record has changed since last read in table 't'":                   true,
		"ERROR: deadlock detected (SQLSTATE 40P01)":                                             true,
		"FEHLER: Verklemmung entdeckt (SQLSTATE 40P01)":                                         true,
		"pq: deadlock detected":                                                                 true,
		"ERROR: could not serialize access due to concurrent update (SQLSTATE 40001)":           true,
		"pq: could not serialize access due to read/write dependencies among transactions":      true,
		"ERROR: canceling statement due to lock timeout (SQLSTATE 55P03)":                       false,
		"Error 3101 (HY000): Plugin instructed the server to rollback the current transaction.": true,
		"Error 1180 (HY000): Got error 149 \"Lock deadlock; Retry transaction\" during COMMIT":  true,
		"Error 1180 (HY000): Got error 28 \"No space left on device\" during COMMIT":            false,
		"Error 1047 (08S01): WSREP has not yet prepared node for application use":               true,
		"Error 1047 (08S01): Unknown command":                                                   false,
		"Error 1205 (HY000): Lock wait timeout exceeded":                                        false,
		"Error 1146 (42S02): Table 'a.b' doesn't exist":                                         false,
	} {
		if got := Contended(fmt.Errorf("seed: %w", errors.New(text))); got != want {
			t.Errorf("Contended(%s) = %v", text, got)
		}
	}
	if Contended(nil) {
		t.Error("no error is no contention")
	}
	if is := InTheWay(errors.New("Error 1047 (08S01): WSREP has not yet prepared node for application use")); !strings.Contains(is, "Galera") {
		t.Errorf("a member without the majority: %s", is)
	}
}

func TestANumberThatAnotherRowHasIsDistinguishedFromOtherDuplicates(t *testing.T) {
	for text, want := range map[string]int64{
		"Error 1062 (23000): Duplicate entry '156' for key 'PRIMARY'":                   156,
		"Error 1062 (23000): Duplicate entry '9223372036854775807' for key 't.PRIMARY'": 9223372036854775807,
		"Error 1062 (23000): Duplicate entry 'east' for key 'name'":                     0,
		"Error 1586 (23000): Duplicate entry '156' for key 'PRIMARY'":                   0,
	} {
		if got, taken := NumberTaken(errors.New(text)); got != want || taken != (want != 0) {
			t.Errorf("%s: %d, %v", text, got, taken)
		}
	}
	if _, taken := NumberTaken(nil); taken {
		t.Error("no error takes a number")
	}
	if !AnswersWithheld(errors.New("Error 3566 (HY000): Access to native function is rejected when connection sharing is enabled")) || AnswersWithheld(errors.New("Error 1062")) {
		t.Error("a router's refusal is not told from other errors")
	}
}

func TestFaultsAreErrorsThatARetryDoesNotSolve(t *testing.T) {
	for text, want := range map[string]Fault{
		"Error 1146 (42S02): Table 'app.leaf_alloc' doesn't exist":                               NoTable,
		"Error 1054: Unknown column 'max_id' in 'field list'":                                    NoColumn,
		"Error 1142 (42000): UPDATE command denied to user 'u'@'h' for table `app`.`leaf_alloc`": NoRight,
		"Error 1044 (42000): Access denied for user 'u'@'h' to database 'app'":                   NoRight,
		"Error 1045 (28000): Access denied for user 'u'@'h' (using password: YES)":               NoLogin,
		"Error 1049 (42000): Unknown database 'app'":                                             NoDatabase,
		"Error 1046 (3D000): No database selected":                                               NoDatabase,
		"Error 1665 (HY000): Cannot execute statement: impossible to write to binary log":        RowsNotLogged,
		"Error 1690 (22003): BIGINT value is out of range in '`app`.`leaf_alloc`.`max_id` + 10'": OutOfRange,
		"Error 1205 (HY000): Lock wait timeout exceeded":                                         NoFault,
		"Error 1290 (HY000): The MariaDB server is running with the --read-only option":          NoFault, // until it is promoted
		"ERROR: relation \"leaf_alloc\" does not exist (SQLSTATE 42P01)":                         NoTable,
		"FEHLER: Spalte »max_id« existiert nicht (SQLSTATE 42703)":                               NoColumn,
		"ERROR: permission denied for table leaf_alloc (SQLSTATE 42501)":                         NoRight,
		"FATAL: password authentication failed for user \"u\" (SQLSTATE 28P01)":                  NoLogin,
		"FATAL: database \"app\" does not exist (SQLSTATE 3D000)":                                NoDatabase,
		"Error 167 (22003): Out of range value for column 'id' at row 1":                         OutOfRange, // MariaDB's AUTO_INCREMENT
		"ERROR: integer out of range (SQLSTATE 22003)":                                           OutOfRange,
		"FATAL: the database system is starting up (SQLSTATE 57P03)":                             NoFault,
		"ERROR: cannot execute UPDATE in a read-only transaction (SQLSTATE 25006)":               NoFault,
		"SQL logic error: no such table: leaf_alloc (1)":                                         NoTable,
		"SQL logic error: no such column: max_id (1)":                                            NoColumn,
		"SQL logic error: table WORKER_NODE has no column named PORT (1)":                        NoColumn,
		"attempt to write a readonly database (8)":                                               ReadOnly,
		"unable to open database file (14)":                                                      NoDatabase,
		"file is not a database (26)":                                                            NoDatabase,
		"database is locked (5) (SQLITE_BUSY)":                                                   NoFault,
		"dial tcp 127.0.0.1:3306: connect: connection refused":                                   NoFault,
	} {
		if got := FaultOf(fmt.Errorf("reserve: %w", errors.New(text))); got != want {
			t.Errorf("FaultOf(%s) = %v, want %v", text, got, want)
		}
	}
	if got := FaultOf(fmt.Errorf("reserve: %w", stated("42P01"))); got != NoTable {
		t.Errorf("an error that tells its state by a method only: %v", got)
	}
	if FaultOf(nil) != NoFault {
		t.Error("no error is no fault")
	}
}

func TestAViolatedConstraintIsDistinguishedFromOtherErrors(t *testing.T) {
	for text, want := range map[string]bool{
		"Error 1048 (23000): Column 'note' cannot be null":                        true,
		"shard db1/orders_3: Error 1062: Duplicate entry '156' for key 'PRIMARY'": true,
		"Error 3819 (HY000): Check constraint 'size' is violated.":                true,
		"Error 4025 (23000): CONSTRAINT `size` failed for `app`.`orders`":         true,
		"NOT NULL constraint failed: orders.note":                                 true,
		"constraint failed: CHECK constraint failed: size (275)":                  true,
		"Error 1205 (HY000): Lock wait timeout exceeded":                          false,
		"database is locked (5) (SQLITE_BUSY)":                                    false,
	} {
		if got := IsViolation(fmt.Errorf("insert: %w", errors.New(text))); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !IsViolation(fmt.Errorf("insert: %w", stated("23502"))) || IsViolation(stated("40001")) || IsViolation(nil) {
		t.Error("a SQLSTATE is not told from others")
	}
}

func TestAReadOnlyServerIsDistinguishedFromOtherErrors(t *testing.T) {
	for text, want := range map[string]bool{
		"Error 1290 (HY000): The MariaDB server is running with the --read-only option so it cannot execute this statement":     true,
		"Error 1290 (HY000): The MySQL server is running with the --super-read-only option so it cannot execute this statement": true,
		"Error 1290 (HY000): The MySQL server is running with the --secure-file-priv option":                                    false,
		"Error 1792 (25006): Cannot execute statement in a READ ONLY transaction":                                               true,
		"Error 1836 (HY000): Running in read-only mode":                                                                         true,
		"ERROR: cannot execute UPDATE in a read-only transaction (SQLSTATE 25006)":                                              true,
		"Error 1205 (HY000): Lock wait timeout exceeded":                                                                        false,
		"dial tcp 127.0.0.1:3306: connect: connection refused":                                                                  false,
	} {
		if got := ServerReadOnly(fmt.Errorf("reserve: %w", errors.New(text))); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !ServerReadOnly(stated("25006")) || ServerReadOnly(stated("42P01")) || ServerReadOnly(nil) {
		t.Error("states are not told apart")
	}
}

// stated is an error in the form of lib/pq's.
type stated string

func (s stated) Error() string    { return "pq: relation \"leaf_alloc\" does not exist" }
func (s stated) SQLState() string { return string(s) }

type coded struct{ error }

func (coded) SQLState() string { return "57P01" }

func TestAnErrorThatIsNoAnswerLeavesTheOutcomeOpen(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("Error 1062 (23000): Duplicate entry '1' for key 'PRIMARY'"):                            true,
		errors.New("Error 1180 (HY000): Got error 149 \"Lock deadlock; Retry transaction\" during COMMIT"): true,
		errors.New("ERROR: duplicate key value violates unique constraint (SQLSTATE 23505)"):               true,
		errors.New("Error 1053 (08S01): Server shutdown in progress"):                                      false,
		errors.New("FATAL: terminating connection due to administrator command (SQLSTATE 57P01)"):          false,
		coded{errors.New("pq: terminating connection due to administrator command")}:                       false,
		errors.New("invalid connection"):                                                                   false,
		errors.New("Error while reading: unexpected EOF"):                                                  false,
		context.DeadlineExceeded: false,
	} {
		if got := Answered(fmt.Errorf("seed: %w", err)); got != want {
			t.Errorf("Answered(%v) = %v", err, got)
		}
	}
	if Answered(nil) {
		t.Error("nothing is no error")
	}
}

func TestAStatementThatAServerEndedIsToldApartFromALostConnection(t *testing.T) {
	for err, want := range map[error]bool{
		stated("57014"): true, // of PostgreSQL, also at statement_timeout
		errors.New("Error 1317 (70100): Query execution was interrupted"): true,
		stated("57P01"): false, driver.ErrBadConn: false, stated("42501"): false,
	} {
		if got := Interrupted(fmt.Errorf("orders: %w", err)); got != want {
			t.Errorf("Interrupted(%v) = %v", err, got)
		}
	}
	if Interrupted(nil) {
		t.Error("nothing is no error")
	}
}

func TestADatabaseThatCannotAnswerIsToldApartFromAnAnswer(t *testing.T) {
	for err, want := range map[error]bool{
		driver.ErrBadConn: true, io.EOF: true, context.DeadlineExceeded: true, errors.New("invalid connection"): true,
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}:          true,
		errors.New("Error 1040 (08004): Too many connections"):                   true,
		errors.New("FATAL: the database system is starting up (SQLSTATE 57P03)"): true,
		stated("08006"):                       true,
		errors.New("sql: database is closed"): true,
		errors.New("Error 1146 (42S02): Table 'shop.orders_0' doesn't exist"): false,
		errors.New("all expectations were already fulfilled"):                 false, // of a mock
		stated("42501"): false,
	} {
		if got := Unavailable(fmt.Errorf("columns: %w", err)); got != want {
			t.Errorf("Unavailable(%v) = %v", err, got)
		}
	}
	if Unavailable(nil) {
		t.Error("nothing is no error")
	}
}
