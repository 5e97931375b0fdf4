// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"strings"
)

// ServerReadOnly reports whether err says that the server takes no changes: it is a
// replica or a standby, or somebody has set it read-only. It may be promoted, and in
// the middle of a fail-over the old primary is so, too: whether another try helps is
// for the caller to say. It is no Fault for that reason.
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
	case "1290": // of other options, too
		return strings.Contains(text, "read-only") || strings.Contains(text, "read_only")
	case "1792", "1836":
		return true
	}
	return wordAfter(text, "SQLSTATE ") == "25006"
}
