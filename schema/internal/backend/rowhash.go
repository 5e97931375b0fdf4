// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// The hashes of two rows that differ in any bit differ, except for one pair in 2³². Source
// and target compute equal hashes for equal rows, whatever their collations and whether a
// column was widened. Sets of rows are compared by the sums of hashes; an exclusive or
// would miss two rows that swap values.

// RowHash returns an SQL expression from whose value [RowSum] makes a row's hash.
func RowHash(d dialect.Dialect, cols []Column) string {
	switch d.Name() {
	case "sqlite":
		return sqliteRowHash(d, cols)
	case "postgres":
		return postgresRowHash(d, cols)
	}
	return mysqlRowHash(d, cols)
}

// mysqlRowHash computes a number in the database.
func mysqlRowHash(d dialect.Dialect, cols []Column) string {
	parts := make([]string, 0, len(cols)+1)
	var nulls []string
	for _, c := range cols {
		name := d.Quote(c.Name)
		parts = append(parts, mysqlHashForm(c, name))
		if c.Nullable {
			nulls = append(nulls, "ISNULL("+name+")")
		}
	}
	if len(nulls) > 0 { // CONCAT_WS passes over NULLs
		parts = append(parts, "CONCAT("+strings.Join(nulls, ",")+")")
	}
	return "CRC32(CONCAT_WS(','," + strings.Join(parts, ",") + "))"
}

// mysqlHashForm is a text that has a column's complete value, or NULL. Long values are
// included as hashes: together they could be longer than max_allowed_packet, and CONCAT_WS
// would return NULL.
func mysqlHashForm(c Column, name string) string {
	switch {
	case c.isFloat():
		// A FLOAT as text has six digits only, and MySQL truncates computed numbers to 22
		// characters; JSON has all digits and the sign of a zero.
		return "JSON_ARRAY(" + name + "*1e0)"
	case c.kind == Number: // a ZEROFILL column would show its width
		return name + "+0"
	case c.cast:
		return name
	case c.kind == Binary:
		return mysqlBytes(name)
	}
	// Source and target need not have the same character set. Converting a text costs more
	// than everything else, so it is left out where the bytes would stay the same.
	form := "IF(CHARSET(" + name + ") IN ('utf8mb4','utf8mb3','ascii')," + mysqlBytes(name) + "," + mysqlBytes("CONVERT("+name+" USING utf8mb4)") + ")"
	switch {
	case c.Type == "json": // whose text does not show all types; on MariaDB, JSON is text and loses nothing
		form = "CONCAT(" + form + " /*!80014 ,IF(JSON_VALID(" + name + ") AND " + mysqlTyped(name) + ",'?','') */)"
	case c.holdsUnknown(): // which becomes a question mark on the other side
		form = "CONCAT(" + form + ",IF(CHARSET(" + name + ")='" + c.charset + "' AND " + mysqlUnknown(c, name) + ",'?',''))"
	}
	return form
}

// mysqlBytes is a hash of a value and its length in bytes, as counting characters would
// cost more.
func mysqlBytes(value string) string {
	return "CONCAT(CRC32(" + value + "),',',OCTET_LENGTH(" + value + "))"
}

// postgresRowHash computes 32 bits of an MD5 in the database, as other hash functions may
// differ between versions. Long values are included as hashes: together they could be
// longer than a text may be.
func postgresRowHash(d dialect.Dialect, cols []Column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		value := d.Quote(c.Name) + "::text"
		if c.kind != Number {
			value = "md5(" + value + ")"
		}
		parts[i] = "COALESCE(" + value + ",'-N')" // which is no number, time or hash
	}
	return "('x'||substr(md5(" + strings.Join(parts, "||','||") + "),1,8))::bit(32)::bigint"
}

// sqliteRowHash selects a row's values with their types, as SQLite has no checksum
// function.
func sqliteRowHash(d dialect.Dialect, cols []Column) string {
	parts := make([]string, 0, len(cols))
	for _, c := range cols {
		name := d.Quote(c.Name)
		// quote() would cut a text at its first zero byte.
		parts = append(parts, "CASE typeof("+name+") WHEN 'text' THEN 't'||hex(CAST("+name+" AS BLOB))"+
			" WHEN 'blob' THEN 'b'||hex("+name+") ELSE quote("+name+") END")
	}
	return strings.Join(parts, "||','||")
}

// errNoHash is an error because sums would silently ignore a NULL.
var errNoHash = errors.New("the database gave no hash of a row, as a value in it is longer than its limits")

// RowSum computes a number from the value of a RowHash expression.
func RowSum(d dialect.Dialect, hash sql.RawBytes) (uint64, error) {
	if hash == nil {
		return 0, errNoHash
	}
	if d.Name() == "sqlite" {
		return uint64(crc32.ChecksumIEEE(hash)), nil
	}
	n, err := strconv.ParseUint(string(hash), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a row's hash: %w", err)
	}
	return n, nil
}
