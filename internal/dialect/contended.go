package dialect

import "strings"

// contended holds what servers say when a transaction was rolled back because
// another was in the way: SQLite's SQLITE_BUSY and SQLITE_LOCKED, MySQL's
// deadlock. MySQL's lock wait timeout (1205) is not among them: whoever met it
// has waited long enough.
var contended = []string{"database is locked", "database table is locked", "Error 1213"}

// Contended reports whether err says that another transaction was in the way:
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
