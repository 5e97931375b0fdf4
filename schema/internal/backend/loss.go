// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Loss is a condition under which a copy would change a value.
type Loss struct{ Column, Condition, Message, Fix string }

// Refusal is the error for a row that has such a value in the column.
func (c Column) Refusal(d dialect.Dialect) error {
	l, _ := c.Loss(d.Quote(c.Name))
	return fmt.Errorf("%w: %s %s: %s", ErrUnsupported, l.Column, l.Message, l.Fix)
}

// Loss returns the values of a column that a copy would change; some is false when it
// changes none.
func (c Column) Loss(name string) (l Loss, some bool) {
	switch {
	case c.Type == "enum":
		return Loss{c.Name, name + "+0 = 0", "has the empty value with which the server replaces one that the ENUM does not allow", "give it a member of the ENUM, or NULL"}, true
	case c.empty != 0:
		bit := strconv.FormatUint(c.empty, 10)
		return Loss{c.Name, name + "+0 & " + bit + " <> 0", "has the member '' of the SET, which its text does not show",
			"UPDATE it to " + name + " & ~" + bit + ", or give that member a name with ALTER TABLE … MODIFY"}, true
	case isGeometry(c.Type) && !c.Nullable:
		return Loss{c.Name, "OCTET_LENGTH(" + name + ") = 0", "has no geometry, but the empty value that a row gets which was inserted without one", "give it a geometry"}, true
	case c.Type == "vector" && !c.Nullable:
		return Loss{c.Name, "OCTET_LENGTH(" + name + ") = 0", "has no vector, but the empty value that a row gets which was inserted without one", "give it a vector"}, true
	case c.Type == "json": // of MySQL, which keeps more of a value than its text says
		return Loss{c.Name, mysqlTyped(name), "has a DECIMAL, a date, a time or bytes inside, which become a DOUBLE or a string when read as text",
			"MODIFY the column to LONGTEXT and back, as an UPDATE to an equal number changes nothing, and have the application put such values in as texts"}, true
	case c.holdsUnknown():
		return Loss{c.Name, mysqlUnknown(c, name), "has bytes that are no character of " + c.charset + ", or not that one alone",
			"UPDATE it to CONVERT(CONVERT(" + name + " USING utf8mb4) USING " + c.charset + ") where the result is right, or make the column VARBINARY or BLOB"}, true
	}
	return l, false
}

// emptyMember is the bit of a SET's member that is the empty text, 0 if it has none. Members have no commas.
func emptyMember(definition string) uint64 {
	members, is := strings.CutPrefix(strings.ToLower(definition), "set(")
	if !is {
		return 0
	}
	at := slices.Index(strings.Split(strings.TrimSuffix(members, ")"), ","), "''")
	if at < 0 {
		return 0
	}
	return 1 << at
}

// mysqlTyped is true for JSON that contains, at any depth, a value whose type its text does
// not show. Unsigned integers are excluded: as signed ones they are the same number.
func mysqlTyped(name string) string {
	const told = "NOT IN ('NULL','BOOLEAN','INTEGER','UNSIGNED INTEGER','DOUBLE','STRING','OBJECT','ARRAY')"
	inside := func(path string) string {
		return "EXISTS(SELECT 1 FROM JSON_TABLE(" + name + ",'" + path + "' COLUMNS(v JSON PATH '$' ERROR ON ERROR)) AS inside WHERE JSON_TYPE(v) " + told + ")"
	}
	return "(JSON_TYPE(" + name + ") " + told + " OR " + inside("$**.*") + " OR " + inside("$**[*]") + ")"
}

// holdsUnknown reports whether the column may hold bytes that a conversion to utf8mb4 and
// back would change.
func (c Column) holdsUnknown() bool {
	return (strings.HasSuffix(c.Type, "char") || strings.HasSuffix(c.Type, "text")) && c.charset != "" &&
		!slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"}, c.charset)
}

// mysqlUnknown is true for such bytes.
func mysqlUnknown(c Column, name string) string {
	return "CAST(CONVERT(CONVERT(" + name + " USING utf8mb4) USING " + c.charset + ") AS BINARY) <> CAST(" + name + " AS BINARY)"
}
