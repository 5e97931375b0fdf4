package dialect

import "strings"

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

func mysqlFault(err error) Fault { return mysqlFaults[wordAfter(err.Error(), "Error ")] }
