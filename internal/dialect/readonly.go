// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"strings"
)

// ServerReadOnly reports whether err says that the server accepts no changes: it is a replica or a
// standby, or an operator has made it read-only. It may be promoted later, and during a fail-over
// the old primary is read-only, too. So only the caller knows whether a retry helps, and it is not
// a Fault.
func ServerReadOnly(err error) bool {
	if err == nil {
		return false
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState() == "25006"
	}
	text := err.Error()
	switch wordAfter(text, "Error ") {
	case "1290": // 1290 is also the error of other options
		return strings.Contains(text, "read-only") || strings.Contains(text, "read_only")
	case "1792", "1836":
		return true
	}
	return wordAfter(text, "SQLSTATE ") == "25006"
}
