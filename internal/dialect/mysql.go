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
