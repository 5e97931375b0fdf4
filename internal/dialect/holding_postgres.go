// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"time"
)

// eastern is a time that shows whether a driver writes the clock time of its zone. In some modes, pgx writes that of UTC.
var eastern = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))

func readPostgresColumn(ctx context.Context, db Querier, table, column string) (Column, error) {
	var c Column
	var typ string
	var modifier int
	var ownZone bool
	err := db.QueryRowContext(ctx, "SELECT CAST($3 AS timestamp) = '2026-01-02 03:04:05', CAST($4 AS text) <> 'a', format_type(b.oid, m.typmod), b.typname::text, m.typmod, CASE WHEN k.collisdeterministic THEN '' ELSE COALESCE(k.collname::text, '') END"+
		" FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END"+
		" CROSS JOIN LATERAL (SELECT CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END) m (typmod)"+
		" LEFT JOIN pg_collation k ON k.oid = a.attcollation"+
		" WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped", table, column, eastern, []byte("a")).
		Scan(&ownZone, &c.Hexed, &c.Type, &typ, &modifier, &c.Collation)
	c.Holds, c.Parsed, c.Zoneless = cmp.Or(postgresHolds[typ], HoldsForms), true, ownZone && (typ == "date" || typ == "timestamp")
	switch typ {
	case "bpchar":
		c.Collation = "char(n), which pads with spaces"
	case "citext":
		c.Collation = "citext"
	case "numeric":
		c.Scale = 1 // for a numeric without a scale
		if modifier >= 4 {
			c.Scale = (modifier - 4) & 0x7ff
		}
	case "date":
		c.Precision = 24 * time.Hour
	case "timestamp", "timestamptz":
		c.Precision = time.Microsecond
		if modifier >= 0 {
			c.Precision = power(9 - modifier)
		}
	}
	return c, err
}

// postgresHolds maps a typname. Of all others, such as uuid, inet, json and enumerations, values have a normalized form.
var postgresHolds = byTypes(map[Holding]string{
	HoldsIntegers: "int2 int4 int8",
	HoldsDecimals: "numeric",
	HoldsFloats:   "float4 float8",
	HoldsBits:     "bit varbit",
	HoldsTexts:    "text varchar bpchar citext name",
	HoldsBytes:    "bytea",
	HoldsClocks:   "date timestamp",
	HoldsInstants: "timestamptz",
})
