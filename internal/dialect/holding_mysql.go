// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

func readMySQLColumn(ctx context.Context, db Querier, table, column string) (Column, error) {
	c := Column{Loose: true}
	var typ, collation, mode string
	var scale, digits sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), COALESCE(COLLATION_NAME, ''), NUMERIC_SCALE, DATETIME_PRECISION, @@sql_mode"+
		" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = ?", table, column).
		Scan(&typ, &c.Type, &collation, &scale, &digits, &mode)
	if err != nil {
		return c, err
	}
	c.Holds, c.Scale, c.Lax = cmp.Or(mysqlHolds[typ], HoldsForms), int(scale.Int64), !ParseMode(mode).Strict
	if collation != "binary" && !strings.HasSuffix(collation, "_bin") {
		c.Collation = collation
	}
	if c.Holds != HoldsClocks {
		return c, nil
	}
	c.Session = typ == "timestamp"
	return c, c.readMySQLTimes(ctx, db, typ, int(digits.Int64))
}

// readMySQLTimes also reads how the driver converts times.
func (c *Column) readMySQLTimes(ctx context.Context, db Querier, typ string, digits int) error {
	var written string
	var read any
	err := db.QueryRowContext(ctx, "SELECT CAST(? AS CHAR), CAST('2026-01-02 03:04:05' AS DATETIME)", finest).Scan(&written, &read)
	c.Precision = power(9 - digits)
	if typ == "date" {
		c.Precision = 24 * time.Hour
	}
	c.Precision = max(c.Precision, unitOf(written))
	_, c.Parsed = read.(time.Time)
	return err
}

// mysqlHolds maps a DATA_TYPE. Of all others, such as time, json, uuid, inet6, geometry and vector, values have a
// normalized form.
var mysqlHolds = byTypes(map[Holding]string{
	HoldsIntegers: "tinyint smallint mediumint int bigint",
	HoldsDecimals: "decimal",
	HoldsFloats:   "float double",
	HoldsBits:     "bit",
	HoldsYears:    "year",
	HoldsTexts:    "char varchar tinytext text mediumtext longtext",
	HoldsBytes:    "varbinary tinyblob blob mediumblob longblob",
	HoldsPadded:   "binary",
	HoldsMembers:  "enum",
	HoldsSets:     "set",
	HoldsClocks:   "date datetime timestamp",
})

// Clock is the conversion of a time that is sent to MySQL or MariaDB.
type Clock struct {
	Sent time.Duration // offset from UTC of the text that the driver writes
	Kept time.Duration // offset from UTC with which the session reads this text
	Lost bool          // the time is outside of the range of TIMESTAMP
}

// clocks is the number of times in one statement.
const clocks = 50

// Clocks returns the conversions of these times, which must be whole seconds.
func Clocks(ctx context.Context, db Querier, at []time.Time) ([]Clock, error) {
	var all []Clock
	for some := range slices.Chunk(at, clocks) {
		read, err := readClocks(ctx, db, some)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	return all, nil
}

func readClocks(ctx context.Context, db Querier, at []time.Time) ([]Clock, error) {
	texts, seconds := make([]string, len(at)), make([]sql.NullFloat64, len(at))
	var selected []string
	var args, into []any
	for i, t := range at {
		selected = append(selected, "CAST(? AS CHAR), UNIX_TIMESTAMP(CAST(? AS DATETIME))")
		args, into = append(args, t, t), append(into, &texts[i], &seconds[i])
	}
	if err := db.QueryRowContext(ctx, "SELECT "+strings.Join(selected, ", "), args...).Scan(into...); err != nil {
		return nil, err
	}
	all := make([]Clock, len(at))
	for i := range all {
		shown, err := time.Parse(time.DateTime, texts[i])
		if err != nil { // the driver writes another form
			return nil, err
		}
		all[i] = Clock{shown.Sub(at[i]), shown.Sub(time.Unix(int64(seconds[i].Float64), 0)), seconds[i].Float64 <= 0}
	}
	return all, nil
}
