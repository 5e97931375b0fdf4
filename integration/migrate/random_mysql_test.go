// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

var (
	randomMariaDB = &randomSpeech{
		settings: append(mysqlSessions(), "SET sql_mode = 'ORACLE', time_zone = '+05:45'", "SET sql_mode = 'EMPTY_STRING_IS_NULL,TIME_ROUND_FRACTIONAL'", "SET sql_mode = 'MSSQL'"),
		pinned:   mysqlPinned, common: "DO 0",
		shape: func(ctx context.Context, conn *sql.Conn, table string) ([]string, error) {
			return mysqlShape(ctx, conn, table, true)
		},
		make:   func(r *rand.Rand) *randomTable { return newMySQLTable(r, true) },
		upsert: mysqlUpsert,
	}
	randomMySQL = &randomSpeech{
		settings: append(mysqlSessions(), "SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL', time_zone = '-11:30'"),
		pinned:   mysqlPinned, common: "DO 0",
		shape: func(ctx context.Context, conn *sql.Conn, table string) ([]string, error) {
			return mysqlShape(ctx, conn, table, false)
		},
		make:   func(r *rand.Rand) *randomTable { return newMySQLTable(r, false) },
		upsert: mysqlUpsert,
	}
)

const mysqlPinned = "SET time_zone = '+00:00', sql_mode = ''; SET NAMES utf8mb4; SET group_concat_max_len = 1000000"

func mysqlSessions() []string {
	return []string{
		"SET sql_mode = ''", "SET sql_mode = 'ANSI', time_zone = '+13:00'", "SET sql_mode = 'TRADITIONAL', time_zone = '-08:00'", "DO 0",
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO'", "SET sql_mode = 'ALLOW_INVALID_DATES,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE'",
		"SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT,IGNORE_SPACE'",
	}
}

func mysqlUpsert(_ *randomTable, table, columns, values, set string) string {
	if len(values)%2 == 0 {
		return fmt.Sprintf("REPLACE INTO %s (%s) VALUES (%s)", table, columns, values)
	}
	if len(values)%3 == 0 {
		return fmt.Sprintf("INSERT IGNORE INTO %s (%s) VALUES (%s)", table, columns, values)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON DUPLICATE KEY UPDATE %s", table, columns, values, set)
}

// mysqlShape is the definition of a table apart from the type of its ids. MySQL writes a literal again in the
// character set of its neighbours, and a number as a text; the default of a TIMESTAMP is shown in the time zone of who created the table.
func mysqlShape(ctx context.Context, conn *sql.Conn, table string, maria bool) ([]string, error) {
	own := " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '" + table + "'"
	more, expression, checked := ", COALESCE(SRS_ID, '')", ", COALESCE(EXPRESSION, '')", "IS_VISIBLE"
	checks := "SELECT CONCAT('check ', c.CHECK_CLAUSE, t.ENFORCED) FROM information_schema.TABLE_CONSTRAINTS t JOIN information_schema.CHECK_CONSTRAINTS c USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)" + own
	if maria {
		more, expression, checked = "", "", "IGNORED"
		checks = "SELECT CONCAT_WS('|', 'check', CHECK_CLAUSE) FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = '" + table + "'"
	}
	return lines(ctx, conn,
		"SELECT CONCAT_WS('|', 'column', ORDINAL_POSITION, COLUMN_NAME, IF(DATA_TYPE = 'timestamp', '', COALESCE(HEX(COLUMN_DEFAULT), 'none')), IS_NULLABLE, IF(COLUMN_KEY = 'PRI', '', COLUMN_TYPE), COALESCE(COLLATION_NAME, ''), REPLACE(EXTRA, 'auto_increment', ''),"+
			" REPLACE(REGEXP_REPLACE(COALESCE(GENERATION_EXPRESSION, ''), '_[a-z0-9]+[\\\\\\\\]|[\\\\\\\\]+0?', ''), CHAR(39), ''), COLUMN_COMMENT"+more+") FROM information_schema.COLUMNS"+own,
		"SELECT CONCAT_WS('|', 'index', INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COALESCE(COLUMN_NAME, ''), COALESCE(COLLATION, ''), COALESCE(SUB_PART, ''), INDEX_TYPE, INDEX_COMMENT, "+checked+expression+") FROM information_schema.STATISTICS"+own,
		"SELECT CONCAT_WS('|', 'table', ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS, TABLE_COMMENT) FROM information_schema.TABLES"+own,
		"SELECT CONCAT_WS('|', 'partition', COALESCE(PARTITION_NAME, ''), COALESCE(PARTITION_METHOD, ''), COALESCE(REPLACE(PARTITION_EXPRESSION, '\"', '`'), ''), COALESCE(PARTITION_DESCRIPTION, '')) FROM information_schema.PARTITIONS"+own,
		checks)
}

// mysqlInts are the integer types with their lowest and highest values.
var mysqlInts = []struct {
	name string
	bits uint
}{{"TINYINT", 8}, {"SMALLINT", 16}, {"MEDIUMINT", 24}, {"INT", 32}, {"BIGINT", 64}}

// mysqlNames are unusual names of columns.
var mysqlNames = []string{
	"select", "a b", "a.b", "a`b", `a"b`, "a'b", "ü", "日本", "?", "%s", "%[1]d", "$1", "${1}", `a\b`, strings.Repeat("n", 64), strings.Repeat("ö", 64), "CONSTRAINT", "(", "), (", "old", "NEW", "tbl", "seq",
	"AUTO_INCREMENT", "a -- b", "/* x", "#", ":x", "@x", "shardid_key", "a\nb", "``", "Group", "key", "x,y", " lead", "DEFAULT", "0", "9e9", "value", "row", "FOREIGN KEY", "a;b", "v", "job", "c1", "shardid_gone", "one",
}

// mysqlMaker makes the parts of a table.
type mysqlMaker struct {
	r     *rand.Rand
	maria bool
	names []string
	parts []string
	table *randomTable
	whole bool // no partitions are possible
}

func newMySQLTable(r *rand.Rand, maria bool) *randomTable {
	m := &mysqlMaker{r: r, maria: maria, table: &randomTable{rule: pick(r, []sharding.Rule{sharding.Hash(2), sharding.Low(1), sharding.Mod(2)})}}
	for _, i := range r.Perm(len(mysqlNames)) {
		m.names = append(m.names, mysqlNames[i])
	}
	m.keys()
	for range 1 + r.IntN(9) {
		m.column()
	}
	m.generated()
	m.indexes()
	m.checks()
	r.Shuffle(len(m.parts), func(i, j int) { m.parts[i], m.parts[j] = m.parts[j], m.parts[i] })
	m.table.create = []string{"CREATE TABLE odd (" + strings.Join(m.parts, ",\n") + ")" + m.options()}
	return m.table
}

func (m *mysqlMaker) name() string {
	name := m.names[0]
	m.names = m.names[1:]
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// integer is a random integer type with its values.
func (m *mysqlMaker) integer(small bool) (definition string, value func(r *rand.Rand) randomKey) {
	typ := pick(m.r, mysqlInts)
	unsigned := one(m.r, 3)
	definition = typ.name
	if unsigned {
		definition += pick(m.r, []string{" UNSIGNED", " UNSIGNED", "(5) ZEROFILL"})
	}
	return definition, func(r *rand.Rand) randomKey {
		if small && !one(r, 3) {
			n := r.IntN(60)
			return randomKey{strconv.Itoa(n), n}
		}
		most := uint64(1)<<(typ.bits-1) - 1
		if unsigned && (typ.bits < 64 || !small) {
			most = most*2 + 1
		}
		up := pick(r, []uint64{0, 1, most, most - 1, most / 2, r.Uint64N(most)})
		if !unsigned && one(r, 2) {
			low := -int64(min(up, math.MaxInt64)) - int64(r.IntN(2))
			return randomKey{strconv.FormatInt(low, 10), low}
		}
		if up > math.MaxInt64 {
			return randomKey{strconv.FormatUint(up, 10), up}
		}
		return randomKey{strconv.FormatUint(up, 10), int64(up)}
	}
}

func (m *mysqlMaker) keys() {
	definition, value := m.integer(true)
	m.table.id, m.table.ids = "id", value
	if one(m.r, 2) {
		definition += " AUTO_INCREMENT"
	}
	if one(m.r, 2) {
		m.table.id = m.name()
		m.table.key = "u"
		m.shardingKey()
	}
	primary := " PRIMARY KEY"
	if one(m.r, 3) {
		m.parts = append(m.parts, "PRIMARY KEY ("+m.table.id+")")
		primary = " NOT NULL"
	}
	m.parts = append(m.parts, m.table.id+" "+definition+primary)
}

func (m *mysqlMaker) shardingKey() {
	null := pick(m.r, []string{" NOT NULL", " NOT NULL", ""})
	switch m.r.IntN(4) {
	case 0:
		m.table.rule = sharding.HashText(2)
		m.parts = append(m.parts, "u "+pick(m.r, []string{"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "CHAR(40) CHARACTER SET ascii COLLATE ascii_bin", "VARCHAR(40) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin"})+null)
		m.table.keys = func(r *rand.Rand) randomKey {
			text := pick(r, []string{"", "a", "A", "it's", "x y", strconv.Itoa(r.IntN(99)), "-1", `back\slash`})
			return randomKey{"_ascii x'" + hex.EncodeToString([]byte(text)) + "'", text}
		}
	default:
		definition, value := m.integer(false)
		m.table.keys = value
		m.parts = append(m.parts, "u "+definition+null)
	}
}

// mysqlText makes bytes in a character set.
var mysqlCharsets = map[string]struct {
	collations []string
	bytes      func(r *rand.Rand) []byte
}{
	"utf8mb4": {[]string{"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci"}, func(r *rand.Rand) []byte {
		return []byte(pick(r, []string{"", " ", "a", "A ", "ä", "𝄞", "it's", `\`, `\'`, "\x00", "\x1a\r\n\t", "NULL", "?", "%s", "a\u0308", "é\u0000é", "\U0010ffff", "trailing  ", "\"", "--", strings.Repeat("𝄞x", 3)}))
	}},
	"utf8mb3": {[]string{"utf8mb3_bin", "utf8mb3_general_ci"}, func(r *rand.Rand) []byte { return []byte(pick(r, []string{"", "ä ", "€", "\uffff", "日本", "'"})) }},
	"latin1":  {[]string{"latin1_bin", "latin1_swedish_ci", "latin1_general_cs"}, randomBytes(0)},
	"ascii":   {[]string{"ascii_bin", "ascii_general_ci"}, randomBytes(1)},
	"cp1251":  {[]string{"cp1251_bin", "cp1251_general_ci"}, func(r *rand.Rand) []byte { return pick(r, [][]byte{{}, {0xc0}, {0xff, 0x20}, {0x41, 0x80}}) }},
	"koi8r":   {[]string{"koi8r_bin", "koi8r_general_ci"}, randomBytes(2)},
	"ucs2": {[]string{"ucs2_bin", "ucs2_general_ci"}, func(r *rand.Rand) []byte {
		return pick(r, [][]byte{{}, {0, 0x41}, {0x27, 0x27}, {0xff, 0xff}, {0, 0}, {0, 0x20, 0, 0x20}})
	}},
	"utf16": {[]string{"utf16_bin", "utf16_general_ci"}, func(r *rand.Rand) []byte {
		return pick(r, [][]byte{{}, {0, 0x41}, {0xd8, 0x34, 0xdd, 0x1e}, {0, 0x27}, {0, 0x5c}})
	}},
	"utf32": {[]string{"utf32_bin", "utf32_general_ci"}, func(r *rand.Rand) []byte {
		return pick(r, [][]byte{{}, {0, 0, 0, 0x41}, {0, 1, 0xd1, 0x1e}, {0, 0, 0, 0x20}})
	}},
	"utf16le": {[]string{"utf16le_bin", "utf16le_general_ci"}, func(r *rand.Rand) []byte {
		return pick(r, [][]byte{{}, {0x41, 0}, {0x34, 0xd8, 0x1e, 0xdd}, {0x27, 0}})
	}},
	"sjis": {[]string{"sjis_bin", "sjis_japanese_ci"}, func(r *rand.Rand) []byte { return pick(r, [][]byte{{}, {0x83, 0x5c}, {0x41}, {0xb1}}) }},
	"gbk":  {[]string{"gbk_bin", "gbk_chinese_ci"}, func(r *rand.Rand) []byte { return pick(r, [][]byte{{}, {0xbf, 0x5c}, {0xd6, 0xd0}, {0x41, 0x27}}) }},
	"cp932": {[]string{"cp932_bin", "cp932_japanese_ci"}, func(r *rand.Rand) []byte {
		return pick(r, [][]byte{{}, {0x83, 0x5c}, {0x81, 0x60}, {0x87, 0x90}, {0x81, 0xe0}})
	}},
	"hebrew": {[]string{"hebrew_bin", "hebrew_general_ci"}, func(r *rand.Rand) []byte { return pick(r, [][]byte{{}, {0xe0}, {0x41}, {0xfa, 0x20}}) }},
}

// randomBytes makes bytes: all, those of ASCII, or those above.
func randomBytes(which int) func(r *rand.Rand) []byte {
	return func(r *rand.Rand) []byte {
		b := make([]byte, r.IntN(4))
		for i := range b {
			switch b[i] = byte(r.Uint32()); which {
			case 1:
				b[i] &= 0x7f
			case 2:
				b[i] |= 0x80
			}
		}
		return b
	}
}

// mysqlCharsetNames are in an order that does not change.
var mysqlCharsetNames = []string{"utf8mb4", "utf8mb4", "utf8mb4", "utf8mb3", "latin1", "latin1", "ascii", "cp1251", "koi8r", "ucs2", "utf16", "utf32", "utf16le", "sjis", "gbk", "cp932", "hebrew"}

func literals(texts ...string) func(r *rand.Rand) string {
	return func(r *rand.Rand) string { return pick(r, texts) }
}

// mysqlKindOf is a type with values, and whether they can be a default, be in an index, and with which prefix.
type mysqlKindOf struct {
	definition string
	value      func(r *rand.Rand) string
	bytes      string // %s is the column
	blob       bool
	attributes string // after NOT NULL
}

func (m *mysqlMaker) kind() mysqlKindOf {
	r := m.r
	switch r.IntN(15) {
	case 0:
		definition, value := m.integer(false)
		return mysqlKindOf{definition: definition, value: func(r *rand.Rand) string { return value(r).text }, bytes: "CAST(%s AS CHAR)"}
	case 1:
		digits := pick(r, [][2]int{{65, 30}, {10, 0}, {1, 1}, {30, 30}, {38, 10}})
		return mysqlKindOf{definition: fmt.Sprintf("DECIMAL(%d,%d)", digits[0], digits[1]) + pick(r, []string{"", "", " UNSIGNED", " ZEROFILL"}), bytes: "CAST(%s AS CHAR)",
			value: literals("0", "0.1", "-0.1", "-0.0", "0.000000000000000000000000000001", "9999999999", "1e-30", "12345678901234567890123456789012345.5", "-9999999999.9999")}
	case 2:
		return mysqlKindOf{definition: pick(r, []string{"FLOAT", "FLOAT(7,3)", "FLOAT UNSIGNED", "FLOAT(20)", "FLOAT ZEROFILL"}), bytes: "JSON_ARRAY(%s*1e0)", value: literals("0", "-0e0", "0.1", "16777217", "1e-45", "1.17549435e-38", "3.4028234e38", "-1.5", "1.4e-45", "123.4567", "8388608.5", "0.3")}
	case 3:
		return mysqlKindOf{definition: pick(r, []string{"DOUBLE", "DOUBLE(20,5)", "REAL", "DOUBLE UNSIGNED", "DOUBLE PRECISION"}), bytes: "JSON_ARRAY(%s*1e0)",
			value: literals("0", "-0e0", "0.1", "5e-324", "4.9e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993", "0.30000000000000004", "-1.2345678901234567e-150", "1e22", "123456789.12345")}
	case 4:
		return m.text()
	case 5:
		return m.text()
	case 6:
		return mysqlKindOf{definition: pick(r, []string{"BINARY(5)", "VARBINARY(20)", "BINARY(1)", "VARBINARY(255)"}), bytes: "HEX(%s)", value: hexes(5)}
	case 7:
		return mysqlKindOf{definition: pick(r, []string{"BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB"}), bytes: "SHA2(%s, 256)", blob: true, value: func(r *rand.Rand) string {
			if one(r, 4) {
				return fmt.Sprintf("REPEAT(x'%02x27005c', %d)", r.IntN(256), r.IntN(60))
			}
			return hexes(9)(r)
		}}
	case 8:
		bits := pick(r, []int{1, 7, 8, 9, 63, 64})
		return mysqlKindOf{definition: fmt.Sprintf("BIT(%d)", bits), bytes: "CAST(%s AS UNSIGNED)", value: func(r *rand.Rand) string { return fmt.Sprintf("b'%b'", r.Uint64()>>r.IntN(64)>>(64-bits)) }}
	case 9:
		return m.time()
	case 10:
		return m.time()
	case 11:
		return m.list()
	case 12:
		kind := mysqlKindOf{definition: "JSON", bytes: "HEX(CAST(%s AS CHAR))", blob: true,
			value: literals(`'{}'`, `'[]'`, `'null'`, `'{"b": 1, "a": [1.0, -0.0, 1e400]}'`, `'{"b": 1, "a": [1.0, -0.0, 1e40, 18446744073709551615, "ü𝄞"]}'`, `'"x"'`, `'[1.5,   2]'`, `'{"k":1,"k":2}'`, `'0.1'`, `'-0.0'`, `'123456789012345678901234567890'`)}
		if !m.maria && one(r, 12) {
			kind.value = literals("JSON_ARRAY(1.5)", "JSON_ARRAY(NOW(6))", "CAST('2020-01-02' AS JSON)")
		}
		return kind
	case 13:
		m.whole = true
		points := literals("ST_GeomFromText('POINT(1 2.5)')", "ST_GeomFromText('POINT(-0.0 1e300)')", "ST_GeomFromText('POINT(0 0)', 4326)", "ST_GeomFromText('LINESTRING(0 0,1 1)')", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')", "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')")
		return mysqlKindOf{definition: pick(r, []string{"GEOMETRY", "POINT", "GEOMETRY", "POLYGON"}), bytes: "HEX(%s)", blob: true, value: points}
	}
	return m.ofOne()
}

// ofOne is a type that only one of the servers has.
func (m *mysqlMaker) ofOne() mysqlKindOf {
	if !m.maria {
		return pick(m.r, []mysqlKindOf{
			{definition: "VECTOR(3)", bytes: "HEX(%s)", blob: true, value: literals("STRING_TO_VECTOR('[1,2,3]')", "STRING_TO_VECTOR('[-0.1,2e-38,3e38]')")},
			{definition: "GEOMETRY", attributes: " SRID 4326", bytes: "HEX(%s)", blob: true, value: literals("ST_GeomFromText('POINT(0 10)', 4326)", "ST_GeomFromText('POINT(-90 180)', 4326)")},
			{definition: "SERIAL DEFAULT VALUE", bytes: "%s", value: func(r *rand.Rand) string { return strconv.Itoa(r.IntN(1e9)) }},
			{definition: "BOOL", bytes: "%s", value: literals("TRUE", "0", "-128")},
			{definition: "NATIONAL VARCHAR(9)", bytes: "HEX(%s)", value: literals("'a'", "''")},
		})
	}
	return pick(m.r, []mysqlKindOf{
		{definition: "UUID", bytes: "CAST(%s AS CHAR)", value: literals("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "UUID()", "'01890a5d-ac96-774b-bcce-b302099a8057'")},
		{definition: "INET6", bytes: "CAST(%s AS CHAR)", value: literals("'::'", "'::1'", "'::ffff:1.2.3.4'", "'2001:db8::ff00:42:8329'")},
		{definition: "INET4", bytes: "CAST(%s AS CHAR)", value: literals("'0.0.0.0'", "'255.255.255.255'", "'10.0.0.1'")},
		{definition: "VARCHAR(100) COMPRESSED", bytes: "HEX(%s)", value: literals("''", "'a'", "REPEAT('x', 100)"), blob: true},
		{definition: "TEXT COMPRESSED", bytes: "SHA2(%s, 256)", value: literals("''", "'a'", "REPEAT('x', 10000)"), blob: true},
		{definition: "BLOB COMPRESSED", bytes: "SHA2(%s, 256)", value: literals("''", "x'00ff'", "REPEAT('x', 10000)"), blob: true},
	})
}

func (m *mysqlMaker) text() mysqlKindOf {
	charset := pick(m.r, mysqlCharsetNames)
	set := mysqlCharsets[charset]
	typ := pick(m.r, []string{"CHAR(10)", "VARCHAR(30)", "VARCHAR(200)", "CHAR(1)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"})
	k := mysqlKindOf{definition: typ + " CHARACTER SET " + charset + " COLLATE " + pick(m.r, set.collations), bytes: "HEX(%s)", blob: strings.HasSuffix(typ, "TEXT")}
	k.value = func(r *rand.Rand) string {
		text := "_" + charset + " x'" + hex.EncodeToString(set.bytes(r)) + "'"
		if k.blob && one(r, 5) {
			return fmt.Sprintf("REPEAT(%s, %d)", text, r.IntN(40))
		}
		return text
	}
	return k
}

func hexes(most int) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = pick(r, []byte{0, 0xff, '\'', '\\', ' ', 'a', 0x1a, byte(r.Uint32())})
		}
		return "x'" + hex.EncodeToString(b) + "'"
	}
}

func (m *mysqlMaker) time() mysqlKindOf {
	fraction := pick(m.r, []string{"", "(0)", "(1)", "(3)", "(6)"})
	k := mysqlKindOf{bytes: "CAST(%s AS CHAR)"}
	switch m.r.IntN(5) {
	case 0:
		k.definition, k.value = "DATE", literals("'0000-00-00'", "'2024-02-30'", "'9999-12-31'", "'2024-00-10'", "'1000-01-01'", "'0001-01-01'", "'2024-02-29'")
	case 1:
		k.definition, k.value = "TIME"+fraction, literals("'-838:59:59'", "'838:59:59'", "'00:00:00.000001'", "'-00:00:00.5'", "'12:34:56.999999'", "'-00:00:01'", "'24:00:00'")
	case 2:
		k.definition, k.value = "DATETIME"+fraction, literals("'0000-00-00'", "'2024-03-31 02:30:00.123456'", "'9999-12-31 23:59:59'", "'1000-01-01 00:00:00.000001'", "'0001-01-01'", "'2024-00-00'", "NOW()")
	case 3:
		k.definition, k.value = "TIMESTAMP"+fraction, literals("'2024-10-27 02:30:00.000001'", "'1970-01-02 00:00:01'", "'0000-00-00'", "'2038-01-18 03:14:07.9'", "CURRENT_TIMESTAMP", "'2024-03-31 02:30:00'")
	case 4:
		k.definition, k.value = "YEAR", literals("0", "1901", "2155", "'0'", "1999")
	}
	if strings.HasPrefix(k.definition, "DATETIME") || strings.HasPrefix(k.definition, "TIMESTAMP") {
		now := " CURRENT_TIMESTAMP" + fraction
		k.attributes = pick(m.r, []string{"", " DEFAULT" + now, " DEFAULT" + now + " ON UPDATE" + now, " ON UPDATE" + now, " DEFAULT '2001-02-03 04:05:06'"})
	}
	return k
}

func (m *mysqlMaker) list() mysqlKindOf {
	members := pick(m.r, []string{`'a','b','c'`, `'ü','''','x y'`, `'','0','1'`, `'a\\b','"','%s'`, `'2','1','0'`, `'NULL','null ','DEFAULT'`})
	all := strings.Split(members, ",")
	charset := pick(m.r, []string{"", " CHARACTER SET latin1", " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", " CHARACTER SET ucs2"})
	if one(m.r, 2) {
		return mysqlKindOf{definition: "ENUM(" + members + ")" + charset, bytes: "CONCAT(%[1]s+0, HEX(%[1]s))", value: literals(append(all, "1", "2", "3")...)}
	}
	return mysqlKindOf{definition: "SET(" + members + ")" + charset, bytes: "CONCAT(%[1]s+0, HEX(%[1]s))", value: literals("0", "1", "2", "3", "7", "''", all[0])}
}

func (m *mysqlMaker) column() {
	k, name := m.kind(), m.name()
	value := k.value
	null := pick(m.r, []string{"", " NULL", " NOT NULL"})
	if null != " NOT NULL" {
		value = func(r *rand.Rand) string {
			if one(r, 5) {
				return "NULL"
			}
			return k.value(r)
		}
	}
	if strings.HasPrefix(k.definition, "TIMESTAMP") && null == "" {
		null = " NULL"
	}
	definition := k.definition + null + k.attributes
	if k.attributes == "" && one(m.r, 3) {
		text := k.value(m.r)
		if k.blob || one(m.r, 3) || strings.ContainsAny(text, "_(") {
			text = "(" + text + ")"
		}
		definition += " DEFAULT " + text
	}
	if one(m.r, 8) {
		definition += " INVISIBLE"
	}
	if one(m.r, 6) {
		definition += pick(m.r, []string{" COMMENT 'it''s, a `name`, AUTO_INCREMENT=7'", " COMMENT ''", " COMMENT ') PARTITION BY HASH (id)'", ` COMMENT "line\n) x"`, " COMMENT '€ 日本 \\\\'"})
	}
	if one(m.r, 12) {
		definition += " CHECK (" + name + " IS NULL OR LENGTH(" + name + ") < 1000 OR " + m.table.id + " <> 17)"
	}
	m.add(name, definition, value, k.bytes)
	m.index(name, k)
}

func (m *mysqlMaker) add(name, definition string, value func(r *rand.Rand) string, bytes string) {
	m.parts = append(m.parts, name+" "+definition)
	m.table.columns = append(m.table.columns, randomColumn{name, definition, value, strings.NewReplacer("%[1]s", name, "%s", name).Replace(bytes)})
}

// index may put the column into an index of its own.
func (m *mysqlMaker) index(name string, k mysqlKindOf) {
	prefix := ""
	if k.blob {
		prefix = "(5)"
	}
	spatial := k.bytes == "HEX(%s)" && (strings.HasPrefix(k.definition, "GEOM") || k.definition == "POINT")
	switch {
	case spatial && one(m.r, 2) && m.maria:
		m.parts = append(m.parts, "SPATIAL KEY ("+name+")")
	case strings.HasPrefix(k.definition, "VECTOR"), k.definition == "JSON", spatial, k.definition == "POLYGON", strings.Contains(k.definition, "COMPRESSED"):
	case one(m.r, 5):
		m.parts = append(m.parts, pick(m.r, []string{"KEY ", "INDEX `i ?` "})+"("+name+prefix+pick(m.r, []string{"", " DESC", " ASC"})+", "+m.table.id+")"+pick(m.r, []string{"", " COMMENT 'idx'", " USING BTREE"}))
	case one(m.r, 6) && m.maria && k.blob:
		m.whole, m.table.lone = true, true
		m.parts = append(m.parts, "UNIQUE KEY ("+name+")")
	case one(m.r, 9):
		m.whole, m.table.lone = true, true
		m.parts = append(m.parts, "UNIQUE KEY ("+name+prefix+")")
	case one(m.r, 8):
		m.parts = append(m.parts, "UNIQUE `u "+"k` ("+m.table.id+", "+name+prefix+")")
	case one(m.r, 4) && strings.HasSuffix(strings.Fields(k.definition)[0], "TEXT"):
		m.whole = true
		m.parts = append(m.parts, "FULLTEXT KEY ("+name+")")
	}
}

func (m *mysqlMaker) generated() {
	for range m.r.IntN(4) {
		from := pick(m.r, m.table.columns)
		if from.value == nil || strings.Contains(from.definition, "TIMESTAMP") || strings.HasPrefix(from.definition, "CHAR") { // the session's time zone, or its PAD_CHAR_TO_FULL_LENGTH, changes the result
			continue
		}
		name := m.name()
		expression := pick(m.r, []string{m.table.id + " DIV 2", m.table.id + " * 2", m.table.id + " + 1", "LEFT(CONCAT(" + from.name + ", 'x'), 100)", "LENGTH(" + from.name + ")", from.name + " IS NULL", "CONCAT('it''s \\\\ ', " + m.table.id + ")", "COALESCE(" + from.name + ", 7)", "MD5(" + m.table.id + ")"})
		typ := pick(m.r, []string{"VARCHAR(400) CHARACTER SET utf8mb4", "LONGTEXT CHARACTER SET utf8mb4", "TEXT CHARACTER SET utf8mb4"})
		if strings.HasPrefix(expression, m.table.id) || strings.HasSuffix(expression, "NULL") || strings.HasPrefix(expression, "LENGTH") {
			typ = "BIGINT"
		}
		m.add(name, typ+pick(m.r, []string{" AS", " GENERATED ALWAYS AS"})+" ("+expression+") "+pick(m.r, []string{"STORED", "VIRTUAL", "VIRTUAL"})+pick(m.r, []string{"", "", " INVISIBLE", " COMMENT 'g'"}), nil, "HEX(CAST(%s AS BINARY))")
		if one(m.r, 3) {
			prefix := "(5)"
			if typ == "BIGINT" {
				prefix = ""
			}
			m.parts = append(m.parts, "KEY ("+name+prefix+")")
		}
	}
}

func (m *mysqlMaker) indexes() {
	if !m.maria && one(m.r, 3) {
		m.whole = m.whole || one(m.r, 2)
		kind := "KEY"
		if m.whole {
			kind = "UNIQUE KEY"
		}
		m.parts = append(m.parts, kind+" `f(x)` (("+m.table.id+pick(m.r, []string{" * 2", " + 1"})+"), "+m.table.id+" DESC)"+pick(m.r, []string{"", " INVISIBLE"}))
	}
	if m.maria && one(m.r, 4) {
		m.parts = append(m.parts, "KEY ign ("+m.table.id+") IGNORED")
	}
	if m.maria && one(m.r, 10) {
		m.parts = append(m.parts, "p_s DATE NOT NULL DEFAULT '2001-01-01'", "p_e DATE NOT NULL DEFAULT '2002-01-01'", "PERIOD FOR p (p_s, p_e)")
		m.whole = true
		for _, c := range []string{"p_s", "p_e"} {
			m.table.columns = append(m.table.columns, randomColumn{name: c, definition: "DATE", bytes: "CAST(" + c + " AS CHAR)"})
		}
	}
}

func (m *mysqlMaker) checks() {
	if one(m.r, 3) {
		m.parts = append(m.parts, pick(m.r, []string{"CONSTRAINT `c``k (` ", "", "CONSTRAINT long_" + strings.Repeat("x", 50) + " "})+"CHECK ("+m.table.id+" <> 13 OR 'a\\'b' <> '`')"+pick(m.r, []string{""}))
	}
	if !m.maria && one(m.r, 6) {
		m.parts = append(m.parts, "CHECK ("+m.table.id+" > 20) NOT ENFORCED")
	}
}

func (m *mysqlMaker) options() string {
	r := m.r
	text := pick(r, []string{"", " DEFAULT CHARSET=latin1", " CHARSET=utf8mb4 COLLATE=utf8mb4_bin", " CHARSET=ucs2"})
	text += pick(r, []string{"", "", " ROW_FORMAT=COMPACT", " ROW_FORMAT=DYNAMIC", " ROW_FORMAT=REDUNDANT", " ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"})
	text += pick(r, []string{"", "", " COMMENT='it''s ) AUTO_INCREMENT=77'", " COMMENT=' PARTITION BY'", " STATS_PERSISTENT=0", " AUTO_INCREMENT=50", " MIN_ROWS=5 MAX_ROWS=100", " CHECKSUM=1", " AVG_ROW_LENGTH=50"})
	if m.maria && one(r, 10) {
		text += pick(r, []string{" PAGE_COMPRESSED=1", " WITH SYSTEM VERSIONING", " ENCRYPTED=NO"})
	}
	if !m.whole && one(r, 5) {
		text += pick(r, []string{" PARTITION BY HASH (" + m.table.id + ") PARTITIONS 3", " PARTITION BY KEY (" + m.table.id + ") PARTITIONS 2",
			" PARTITION BY RANGE (" + m.table.id + ") (PARTITION p0 VALUES LESS THAN (10), PARTITION `p ?` VALUES LESS THAN MAXVALUE COMMENT 'x')", " PARTITION BY LINEAR HASH (" + m.table.id + ") PARTITIONS 4"})
	}
	return text
}
