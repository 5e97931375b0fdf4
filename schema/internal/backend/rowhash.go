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

// A row's hash tells rows apart that differ in any bit of any column, but for
// one in 2³² pairs, and is the same on source and target whatever their
// collations and whether a column was widened on the way. Sums of such hashes
// tell sets of rows apart; an exclusive or would miss two rows that swap values.

// RowHash returns an SQL expression of a row that [rowSum] makes its hash of.
func RowHash(d dialect.Dialect, cols []Column) string {
	switch d.Name() {
	case "sqlite":
		return sqliteRowHash(d, cols)
	case "postgres":
		return postgresRowHash(d, cols)
	}
	return mysqlRowHash(d, cols)
}

// mysqlRowHash has the database make a number.
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

// mysqlHashForm is a text that says what a column holds, to the last bit, or NULL.
// Long values come in as hashes of their own: together they could be longer than
// max_allowed_packet, and CONCAT_WS would return NULL.
func mysqlHashForm(c Column, name string) string {
	switch {
	case c.isFloat():
		// As text, a FLOAT shows six digits of what it holds, and MySQL cuts what is
		// computed at 22 characters; JSON has all digits, and the sign of a zero.
		return "JSON_ARRAY(" + name + "*1e0)"
	case c.kind == Number: // a ZEROFILL column would show its width
		return name + "+0"
	case c.cast:
		return name
	case c.kind == Binary:
		return mysqlBytes(name)
	}
	// The two sides need not have the same character set. To convert a text costs
	// more than all else, so it is left out where the bytes would stay the same.
	form := "IF(CHARSET(" + name + ") IN ('utf8mb4','utf8mb3','ascii')," + mysqlBytes(name) + "," + mysqlBytes("CONVERT("+name+" USING utf8mb4)") + ")"
	switch {
	case c.Type == "json": // whose text does not tell all types; on MariaDB, where it is a text, none is lost
		form = "CONCAT(" + form + " /*!80014 ,IF(JSON_VALID(" + name + ") AND " + mysqlTyped(name) + ",'?','') */)"
	case c.holdsUnknown(): // which is a question mark on the other side
		form = "CONCAT(" + form + ",IF(CHARSET(" + name + ")='" + c.charset + "' AND " + mysqlUnknown(c, name) + ",'?',''))"
	}
	return form
}

// mysqlBytes is a hash of a value and its length. A length in characters would
// have to be counted.
func mysqlBytes(value string) string {
	return "CONCAT(CRC32(" + value + "),',',OCTET_LENGTH(" + value + "))"
}

// postgresRowHash has the database make a number of 32 bits from an MD5, as its other
// hashes need not be the same in all versions. Long values come in as hashes of their own:
// together they could be longer than a text may be.
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

// sqliteRowHash has the database write what a row holds, types included: SQLite
// has no checksum.
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

// errNoHash: a NULL would be left out of sums without a word.
var errNoHash = errors.New("the database gave no hash of a row, as a value in it is longer than its limits")

// RowSum makes a number of what a row hash's expression returned.
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
