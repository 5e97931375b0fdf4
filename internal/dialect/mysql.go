// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"strings"
)

// MySQL is the dialect of MySQL and MariaDB.
type MySQL struct{}

var _ Dialect = MySQL{}

// Name returns "mysql".
func (MySQL) Name() string { return "mysql" }

// Quote quotes with backticks, which every sql_mode accepts.
func (MySQL) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// Placeholder returns "?".
func (MySQL) Placeholder(int) string { return "?" }

// mysqlFaults maps MySQL's and MariaDB's error numbers.
var mysqlFaults = map[string]Fault{
	"1146": NoTable, "1054": NoColumn,
	"1044": NoRight, "1142": NoRight, "1143": NoRight, "1227": NoRight,
	"1045": NoLogin, "1698": NoLogin,
	"1046": NoDatabase, "1049": NoDatabase,
	"167": OutOfRange, "1264": OutOfRange, "1690": OutOfRange,
	"1665": RowsNotLogged,
}

// mysqlViolations are the error numbers of MySQL and MariaDB for a violated constraint.
var mysqlViolations = map[string]bool{
	"1048": true, "1062": true, "1586": true, // NOT NULL, unique
	"1216": true, "1217": true, "1451": true, "1452": true, // foreign keys
	"3819": true, "4025": true, // CHECK on MySQL, on MariaDB
}

// UnknownVariable reports whether err says that the server does not have a system variable, for
// example because a plugin is missing.
func UnknownVariable(err error) bool {
	return wordAfter(err, "Error ") == "1193"
}

// NumberTaken returns the number that AUTO_INCREMENT gave to a row although another row has it, if
// err says so. That happens when members of a cluster number in the same way, and on a server at
// the end of the column's range.
func NumberTaken(err error) (number int64, taken bool) {
	if wordAfter(err, "Error ") != "1062" {
		return 0, false
	}
	number, failed := strconv.ParseInt(wordAfter(err, "Duplicate entry '"), 10, 64)
	return number, failed == nil
}

// AnswersWithheld reports whether err is the refusal of LAST_INSERT_ID(expr) by a MySQL Router that
// shares connections: by the next statement, another client may have the session that would keep
// the number. The Router does not refuse it in a transaction that has locked a row.
func AnswersWithheld(err error) bool {
	return wordAfter(err, "Error ") == "3566"
}
