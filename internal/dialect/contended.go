// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// contended lists the error texts with which servers report that a transaction was rolled back
// because of another one. Some drivers show the code, others only the text. The list has SQLite's
// SQLITE_BUSY and SQLITE_LOCKED; MySQL's deadlock, which Galera also reports when another member
// wrote first; MariaDB's error for a row that another transaction has changed (1020, with
// innodb_snapshot_isolation); Group Replication's error for the same, and its error at COMMIT (1180, with the
// storage engine's 149); the refusal of a Galera member that has lost the majority (1047); and
// PostgreSQL's deadlock and serialization failure. Timeouts of lock waits (MySQL's 1205,
// PostgreSQL's 55P03) are not in it, because the caller has already waited long enough.
var contended = []string{
	"database is locked", "database table is locked",
	"Error 1213", "Error 1020", "Error 3101", "Got error 149 ", notReady,
	"SQLSTATE 40P01", "deadlock detected",
	"SQLSTATE 40001", "could not serialize access",
}

// notReady is the error of a Galera member until it belongs to the majority of its cluster again,
// for example at the moment when another member has died. Other errors with the code 1047 report a
// command that the server does not know.
const notReady = "WSREP has not yet prepared node"

// Contended reports whether err says that the transaction was rolled back because of another
// transaction or because of a change of the cluster's members. Nothing was done, and the same
// transaction may be retried. It checks the text, because instrumented drivers hide the error's
// type.
func Contended(err error) bool {
	if err == nil {
		return false
	}
	for _, text := range contended {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// LockTimedOut reports whether err says that a statement has waited for a lock for as long as the session allows.
func LockTimedOut(err error) bool {
	return wordAfter(err, "Error ") == "1205" || state(err) == "55P03"
}

// InTheWay says what was the cause of a [Contended] error.
func InTheWay(err error) string {
	if strings.Contains(err.Error(), notReady) {
		return "this member has been out of touch with the majority of its Galera cluster"
	}
	return "another writer was in the way"
}

// Deadlocked reports whether err says that MySQL or MariaDB has ended a deadlock, or that MariaDB has found a row
// which another transaction has changed: the whole transaction of the statement is rolled back, with its
// savepoints.
func Deadlocked(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Error 1213") || strings.Contains(err.Error(), "Error 1020"))
}

// NoSavepoint reports whether err says that MySQL or MariaDB has no savepoint of the name.
func NoSavepoint(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Error 1305") && strings.Contains(err.Error(), "SAVEPOINT")
}
