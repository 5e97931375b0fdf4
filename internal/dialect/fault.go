// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// Fault is a lasting cause of an error: the same statement fails again until a user changes
// something.
type Fault int

// The known faults. Any other error may be temporary, like an outage.
const (
	NoFault       Fault = iota
	NoTable             // the table does not exist, or the schema it should be in
	NoColumn            // the table lacks a column
	NoRight             // the user lacks a right
	ReadOnly            // the file may not be written
	NoLogin             // the server refuses the user or the password
	NoDatabase          // the database does not exist, is not a database, or none is selected
	OutOfRange          // a number does not fit the column
	RowsNotLogged       // the server logs statements, and can log this change only by its rows
	Unprepared          // a prepared statement is missing on the connection, or is another one
)

// Advised adds to an Unprepared error what to do, and returns other errors unchanged. A retry may
// succeed, because a pool may have lost its connections.
func Advised(err error) error {
	if FaultOf(err) != Unprepared {
		return err
	}
	return fmt.Errorf("%w; a pooler in front of the server, for example PgBouncer in transaction mode, does not keep prepared statements: open the database with default_query_exec_mode=exec (pgx), or let PgBouncer 1.21 or newer keep them (max_prepared_statements)", err)
}

// JoinErrors joins two errors. It returns a single error unchanged, because programs and libraries assert
// the types of their driver's errors.
func JoinErrors(err, other error) error {
	switch {
	case other == nil:
		return err
	case err == nil:
		return other
	}
	return errors.Join(err, other)
}

// FaultOf returns the fault that an error of a server or driver reports. It checks codes in the
// text, because instrumented drivers hide the error's type. So it needs not know the kind of
// database.
func FaultOf(err error) Fault {
	if err == nil {
		return NoFault
	}
	return cmp.Or(mysqlFaults[wordAfter(err, "Error ")], postgresFaults[state(err)], sqliteFault(err))
}

// wordAfter returns the letters and digits that follow mark in the text of an error.
func wordAfter(err error, mark string) string {
	if err == nil {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), mark)
	end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') })
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// interrupted are errors of servers that have ended a connection or a statement and may have executed it.
var interrupted = map[string]bool{
	"1053": true, "1317": true, "1927": true, "3169": true, // MySQL and MariaDB
	"57P01": true, "57P02": true, "57P03": true, "57P05": true, "57014": true, // PostgreSQL
}

// Answered reports whether MySQL, MariaDB or PostgreSQL has refused a statement with an error. After another
// error, for example that of a broken connection, the server may have executed it.
func Answered(err error) bool {
	code := codeOf(err)
	return code != "" && !interrupted[code] && !strings.HasPrefix(code, "08")
}

// codeOf returns the SQLSTATE of PostgreSQL, or the number of an error of MySQL or MariaDB, "" for another error.
func codeOf(err error) string {
	if code := SQLState(err); code != "" {
		return code
	}
	if code := wordAfter(err, "Error "); code != "" && strings.Trim(code, "0123456789") == "" {
		return code
	}
	return wordAfter(err, "SQLSTATE ")
}

// refusesConnections are errors of servers that have no connection left, or have closed a silent one.
var refusesConnections = map[string]bool{"1040": true, "1203": true, "4031": true, "53300": true}

// lostTexts are in errors of drivers and of database/sql that have no type of their own.
var lostTexts = []string{"invalid connection", "conn closed", "database is closed"}

// Unavailable reports whether a database could not answer: it was not reached, its pool is closed, the connection
// was lost, or the server or a context ended the statement. It is not known what it would have answered.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	var network net.Error
	for _, of := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, errInterrupted} {
		if errors.Is(err, of) {
			return true
		}
	}
	code := codeOf(err)
	return errors.As(err, &network) || interrupted[code] || refusesConnections[code] || strings.HasPrefix(code, "08") ||
		slices.ContainsFunc(lostTexts, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// Interrupted reports whether a server has ended a statement, but not its connection: because of KILL QUERY, a time limit
// or a cancellation.
func Interrupted(err error) bool {
	code := codeOf(err)
	return code == "1317" || code == "57014"
}

// IsDuplicate reports whether MySQL, MariaDB or PostgreSQL reports a duplicate value of a unique
// key.
func IsDuplicate(err error) bool {
	return err != nil && (SQLState(err) == "23505" || strings.Contains(err.Error(), "Error 1062"))
}

// IsViolation reports whether a database refused a row because of a constraint: a unique key, a foreign
// key, NOT NULL or CHECK.
func IsViolation(err error) bool {
	return strings.HasPrefix(SQLState(err), "23") || mysqlViolations[wordAfter(err, "Error ")] || err != nil && strings.Contains(err.Error(), "constraint failed")
}

// ServerReadOnly reports whether err says that the server accepts no changes: it is a replica or a
// standby, or an operator has made it read-only. It may be promoted later, and during a fail-over
// the old primary is read-only, too. So only the caller knows whether a retry helps, and it is not
// a Fault.
func ServerReadOnly(err error) bool {
	switch wordAfter(err, "Error ") {
	case "1290": // it is also the error of other options
		return strings.Contains(err.Error(), "read-only") || strings.Contains(err.Error(), "read_only")
	case "1792", "1836":
		return true
	}
	return state(err) == "25006"
}
