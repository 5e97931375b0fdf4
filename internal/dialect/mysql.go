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

// Quote quotes with backticks, which no sql_mode turns off.
func (MySQL) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// Placeholder returns "?".
func (MySQL) Placeholder(int) string { return "?" }

// mysqlFaults are by MySQL's and MariaDB's numbers.
var mysqlFaults = map[string]Fault{
	"1146": NoTable, "1054": NoColumn,
	"1044": NoRight, "1142": NoRight, "1143": NoRight, "1227": NoRight,
	"1045": NoLogin, "1698": NoLogin,
	"1046": NoDatabase, "1049": NoDatabase,
	"167": OutOfRange, "1264": OutOfRange, "1690": OutOfRange,
}

// UnknownVariable reports whether err says that the server does not have a system
// variable, as one without a plugin does.
func UnknownVariable(err error) bool {
	return err != nil && wordAfter(err.Error(), "Error ") == "1193"
}

// NumberTaken returns the number that a row was to get by AUTO_INCREMENT and that another row
// has, of an error that says so. Members of a cluster that count alike give it both; so does
// a server at the end of the column.
func NumberTaken(err error) (number int64, taken bool) {
	if err == nil || wordAfter(err.Error(), "Error ") != "1062" {
		return 0, false
	}
	number, failed := strconv.ParseInt(wordAfter(err.Error(), "Duplicate entry '"), 10, 64)
	return number, failed == nil
}

// AnswersWithheld reports whether err is the refusal of LAST_INSERT_ID(expr) by a MySQL
// Router that shares connections: the session that would keep the number may be another
// client's by the next statement. Where it is in a transaction that has locked a row, it is not.
func AnswersWithheld(err error) bool {
	return err != nil && wordAfter(err.Error(), "Error ") == "3566"
}

func mysqlFault(err error) Fault { return mysqlFaults[wordAfter(err.Error(), "Error ")] }
