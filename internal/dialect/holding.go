// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Holding is the type of a column's values, which decides how a value is converted that is stored
// in it or compared with it.
type Holding string

// The types of values.
const (
	HoldsIntegers Holding = "integers"
	HoldsDecimals Holding = "decimals"
	HoldsNumbers  Holding = "numbers" // SQLite's NUMERIC: a text that looks like a number becomes one
	HoldsFloats   Holding = "floats"
	HoldsBits     Holding = "bits"
	HoldsYears    Holding = "years" // two digits become four
	HoldsTexts    Holding = "texts"
	HoldsBytes    Holding = "bytes"
	HoldsPadded   Holding = "bytes of a fixed length" // BINARY: zero bytes fill it
	HoldsMembers  Holding = "members of an ENUM"      // a number is the position of a member
	HoldsSets     Holding = "members of a SET"        // the database sorts them
	HoldsClocks   Holding = "times"                   // clock times without a zone
	HoldsInstants Holding = "instants"                // PostgreSQL's timestamptz
	HoldsForms    Holding = "values in a normalized form"
	HoldsAnything Holding = "values of any type" // SQLite's columns without a type
)

// byTypes returns what each type holds, of lists of types.
func byTypes(lists map[Holding]string) map[string]Holding {
	all := map[string]Holding{}
	for holds, types := range lists {
		for name := range strings.FieldsSeq(types) {
			all[name] = holds
		}
	}
	return all
}

// Column describes a column, as the database and the connection convert its values.
type Column struct {
	Type  string // in lower case, "varchar(20)"
	Holds Holding

	// Scale is the number of digits after the point of a decimal.
	Scale int
	// Precision is the unit to which times are sent and stored, 24 hours for a DATE.
	Precision time.Duration
	// Session: a time is converted to UTC and back with the time zone of the session.
	Session bool
	// Zoneless: drivers write the clock time in the zone of each value.
	Zoneless bool
	// Hexed: the driver writes bytes as PostgreSQL's \x61, which a column of texts stores as it is.
	Hexed bool
	// Parsed: the driver returns times as time.Time.
	Parsed bool
	// Collation is set if it treats texts with different bytes as equal, and "" if it compares
	// bytes. For SQLite it is "NOCASE", "RTRIM", or "not BINARY" for any other.
	Collation string
	// Loose: a text is compared with a number as a float, so that 5 equals '5' and '5abc'.
	Loose bool
	// Lax: a value that does not fit is truncated without an error.
	Lax bool
	// Unlimited: a value of any length or size fits, whatever the type says, as on SQLite.
	Unlimited bool
}

// ReadColumn describes a column that holds a key; found is false if the column or the table does
// not exist.
func ReadColumn(ctx context.Context, db Querier, d Dialect, table, column string) (c Column, found bool, err error) {
	switch d.Name() {
	case "mysql":
		c, err = readMySQLColumn(ctx, db, table, column)
	case "postgres":
		c, err = readPostgresColumn(ctx, db, table, column)
	default:
		c, err = readSQLiteColumn(ctx, db, d, table, column)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Column{}, false, nil
	}
	return c, err == nil, err
}

// Finds reports whether a search for a value that the column has returned finds it, in the order in which the column
// sorts. MySQL and MariaDB sort the members of an ENUM or a SET by their positions and compare them with texts as
// texts, take the bytes of a BIT for a text, and print fewer digits of a FLOAT than it has.
func (c Column) Finds() bool {
	switch c.Holds {
	case HoldsMembers, HoldsSets:
		return false
	case HoldsBits:
		return !c.Loose
	}
	return !strings.HasPrefix(c.Type, "float")
}

// finest is a time that shows the precision with which a driver writes times.
var finest = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// unitOf returns the unit of the text, or the number, that a driver has written for finest.
func unitOf(text string) time.Duration {
	if strings.Trim(text, "0123456789") == "" { // since 1970, in some unit
		return power(len("1767323045123456789") - len(text))
	}
	_, digits, _ := strings.Cut(text, ".")
	n := 0
	for n < 9 && n < len(digits) && digits[n] == "123456789"[n] {
		n++
	}
	return power(9 - n)
}

// power returns 10^n nanoseconds, a second at most.
func power(n int) time.Duration {
	unit := time.Nanosecond
	for range min(n, 9) {
		unit *= 10
	}
	return unit
}
