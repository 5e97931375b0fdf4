// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

var behindCast = regexp.MustCompile(`^\s*(?:::|as\s|,)\s*([a-z][a-z0-9\s]*?)\s*(?:\(([\d,\s]+)\))?\s*\)?$`)

// castType returns the type in x::type, CAST(x AS type) or CONVERT(x, type) in lower case, and its numbers of digits. The type
// is "" if there is more, such as a schema.
func castType(cast *sqlparse.Operation, text string) (name, digits string) {
	found := behindCast.FindStringSubmatch(strings.ToLower(text[cast.Operands[0].Bytes().To:cast.To]))
	if found == nil {
		return "", ""
	}
	return strings.Join(strings.Fields(found[1]), " "), found[2]
}

// isTextType reports whether a cast of PostgreSQL is to one of its types of texts, in which no spaces at the end are padding.
func isTextType(cast *sqlparse.Operation, text string) bool {
	name, _ := castType(cast, text)
	return name == "text" || name == "varchar" || name == "character varying"
}
