// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// contended holds what servers say when a transaction was rolled back because
// another was in the way, for drivers that show the code and those that show the
// text only: SQLite's SQLITE_BUSY and SQLITE_LOCKED, MySQL's deadlock (Galera says it
// too when another member wrote first), Group Replication's word for the same, what a
// COMMIT says then (1180, with the storage engine's 149), the refusal of a member of
// Galera that is not in touch with the majority (1047),
// PostgreSQL's deadlock and serialization failure. Timeouts of waits for a lock
// (MySQL's 1205, PostgreSQL's 55P03) are not among them: whoever met one has
// waited long enough.
var contended = []string{
	"database is locked", "database table is locked",
	"Error 1213", "Error 3101", "Got error 149 ", notReady,
	"SQLSTATE 40P01", "deadlock detected",
	"SQLSTATE 40001", "could not serialize access",
}

// notReady is what a member of Galera answers to every statement until it belongs to the
// majority of its cluster again, as at a moment in which another member has died. Other
// uses of 1047 are of a command that the server does not know.
const notReady = "WSREP has not yet prepared node"

// Contended reports whether err says that another transaction, or a change of the
// cluster's members, was in the way:
// nothing was done, and the same transaction may be tried again. It goes by
// the text, as instrumented drivers hide the error's type.
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

// InTheWay says what was, of an error that is [Contended].
func InTheWay(err error) string {
	if strings.Contains(err.Error(), notReady) {
		return "this member has been out of touch with the majority of its Galera cluster"
	}
	return "another writer was in the way"
}

// Deadlocked reports whether err says that MySQL or MariaDB has ended a deadlock: the whole
// transaction of the statement is rolled back, with its savepoints.
func Deadlocked(err error) bool { return err != nil && strings.Contains(err.Error(), "Error 1213") }

// NoSavepoint reports whether err says that MySQL or MariaDB has no savepoint of the name.
func NoSavepoint(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Error 1305") && strings.Contains(err.Error(), "SAVEPOINT")
}
