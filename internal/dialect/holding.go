// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Holding is what a column holds, and so what becomes of a value that is stored in it
// or compared with it.
type Holding string

// What columns hold.
const (
	HoldsIntegers Holding = "integers"
	HoldsDecimals Holding = "decimals"
	HoldsNumbers  Holding = "numbers" // SQLite's NUMERIC: what looks like a number becomes one
	HoldsFloats   Holding = "floats"
	HoldsBits     Holding = "bits"
	HoldsYears    Holding = "years" // two digits become four
	HoldsTexts    Holding = "texts"
	HoldsBytes    Holding = "bytes"
	HoldsPadded   Holding = "bytes of a fixed length" // BINARY: zero bytes fill it
	HoldsMembers  Holding = "members of an ENUM"      // a number is the place of a member
	HoldsSets     Holding = "members of a SET"        // which are brought into an order
	HoldsClocks   Holding = "times"                   // as a clock shows them
	HoldsInstants Holding = "instants"                // PostgreSQL's timestamptz
	HoldsForms    Holding = "values of a form of its own"
	HoldsAnything Holding = "values of any type" // SQLite's columns without a type
)

// Column is what a database says of a column, and what the connection adds to that.
type Column struct {
	Type  string // in lower case, "varchar(20)"
	Holds Holding

	// Scale is the number of digits behind the point of a decimal.
	Scale int
	// Precision is the unit to which times arrive and are kept, 24 hours for a DATE.
	Precision time.Duration
	// Session: a time is converted to UTC and back by the time zone of the session.
	Session bool
	// Zoneless: drivers write what a clock shows in the time zone of each value.
	Zoneless bool
	// Parsed: times come back from the driver as time.Time.
	Parsed bool
	// Collation is one that takes texts of different bytes for equal, "" for one that
	// compares bytes. Of SQLite it is "NOCASE", "RTRIM", or "not BINARY" for any other.
	Collation string
	// Loose: a text is compared with a number as a float, so that 5 is '5' and '5abc'.
	Loose bool
	// Lax: what does not fit is cut without an error.
	Lax bool
}

// ReadColumn returns what is to be known of a column that holds a key; found is false
// when there is no column, or no table, of this name.
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

// finest is a time that shows how exact a driver writes times.
var finest = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// unitOf returns the unit of a text, or number, that a driver has made of finest.
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
