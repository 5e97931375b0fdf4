// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

var randomPostgres = &randomSpeech{
	settings: []string{
		"SET TimeZone = 'Asia/Kolkata'; SET DateStyle = 'German, DMY'", "SET IntervalStyle = 'sql_standard'; SET extra_float_digits = -5", "SET TimeZone = 'America/St_Johns'; SET bytea_output = 'escape'",
		"SET default_transaction_isolation = 'serializable'", "SET IntervalStyle = 'iso_8601'; SET DateStyle = 'SQL, MDY'", "SET search_path = public, pg_catalog", "SELECT 1", "SET transform_null_equals = on; SET xmloption = 'document'",
	},
	pinned: "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'postgres'; SET extra_float_digits = 3; SET bytea_output = 'hex'; SET search_path = public",
	common: `CREATE TYPE mood AS ENUM ('sad', 'it''s, "fine"', 'happy', ''); CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN padded AS char(4); CREATE DOMAIN "odd dom" AS text NOT NULL DEFAULT 'it''s';
		CREATE TYPE "pair?" AS (a int, b text); CREATE DOMAIN emails AS text[]; CREATE TYPE floats AS RANGE (subtype = float8)`,
	shape: postgresShape,
	make:  newPostgresRandom,
	upsert: func(t *randomTable, table, columns, values, set string) string {
		if len(values)%2 == 0 {
			return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT DO NOTHING", table, columns, values)
		}
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET %s", table, columns, values, t.id, strings.Replace(set, t.id+" = "+t.id, t.id+" = excluded."+t.id, 1))
	},
}

var (
	postgresCast    = regexp.MustCompile(`\(("(?:[^"]|"")+"|\w+)\)::bigint`)
	postgresNextval = regexp.MustCompile(`nextval\('(?:[^']|'')+'::regclass\)`)
)

// postgresShape is the definition of a table apart from the type of its ids, numbering by sequences and the
// names of indexes.
func postgresShape(ctx context.Context, conn *sql.Conn, table string) ([]string, error) {
	own := "'" + table + "'::regclass"
	all, err := lines(ctx, conn,
		"SELECT concat_ws('|', 'column', a.attname, CASE WHEN a.attnum = ANY (SELECT unnest(indkey) FROM pg_index WHERE indisprimary AND indrelid = "+own+") THEN 'key' ELSE format_type(a.atttypid, a.atttypmod) || COALESCE(pg_get_expr(d.adbin, d.adrelid), '') END,"+
			" a.attnotnull, a.attgenerated, a.attcollation::regcollation) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"+
			" WHERE a.attrelid = "+own+" AND a.attnum > 0 AND NOT a.attisdropped",
		"SELECT concat_ws('|', 'constraint', contype, pg_get_constraintdef(oid)) FROM pg_constraint WHERE conrelid = "+own,
		"SELECT concat_ws('|', 'index', indisunique, indisprimary, substring(pg_get_indexdef(indexrelid) FROM position(' USING ' IN pg_get_indexdef(indexrelid)))) FROM pg_index WHERE indrelid = "+own)
	for i, line := range all {
		all[i] = postgresNextval.ReplaceAllString(postgresCast.ReplaceAllString(line, "$1"), "")
	}
	return all, err
}

var postgresNames = []string{
	"select", "a b", "a.b", "a`b", `a"b`, "a'b", "ü", "日本", "?", "%s", "%[1]d", "$1", "${1}", `a\b`, strings.Repeat("n", 63), strings.Repeat("ö", 31), "CONSTRAINT", "(", "), (", "old", "NEW", "tbl", "seq", "𝄞", "$$", "a -- b", "/* x", "#",
	":x", "@x", "shardid_key", "a\nb", "Group", "key", "x,y", " lead ", "DEFAULT", "0", "value", "row", "User", "a;b", "v", "job", "x", "ctid2", "ID", "x? y", "c", "n", "k",
}

// postgresTypes are types with literals.
var postgresTypes = []struct {
	name   string
	values []string
	own    bool // not built in
}{
	{"smallint", []string{"-32768", "32767", "0"}, false}, {"integer", []string{"-2147483648", "2147483647", "0"}, false}, {"bigint", []string{"-9223372036854775808", "9223372036854775807"}, false},
	{"numeric", []string{"'NaN'", "'Infinity'", "'-Infinity'", "1.10", "0.000", "-0.0", "1e-100", "123456789012345678901234567890.12345678901234567890", "1e500", "0"}, false},
	{"numeric(20,4)", []string{"1.5", "'NaN'", "-1234567890123456.7891"}, false}, {"numeric(3,-2)", []string{"12345", "'NaN'"}, false}, {"numeric(2,5)", []string{"0.00012"}, false},
	{"real", []string{"'-0'", "'NaN'", "'Infinity'", "1e-45", "1.17549435e-38", "3.4028235e38", "0.1", "16777217"}, false},
	{"double precision", []string{"'-0'", "'NaN'", "'-Infinity'", "5e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "0.1", "9007199254740993", "0.30000000000000004"}, false},
	{"boolean", []string{"true", "false"}, false},
	{"text", []string{"''", "' '", "'a'", "E'it''s \\\\ a \"text\"\\n\\t'", "'𝄞'", "'NULL'", "'\\N'", "'?'", "'$1'", "'%s'", "repeat('é', 9000)", "E'\\x01'", "'trailing  '"}, false},
	{"text COLLATE \"C\"", []string{"''", "'a'", "'Ä'"}, false}, {"varchar(10)", []string{"''", "' a '", "'𝄞𝄞'"}, false}, {"varchar", []string{"''", "'x '"}, false},
	{"char(5)", []string{"''", "'a'", "'a b '", "'𝄞'"}, false}, {"\"char\"", []string{"'a'", "''"}, false}, {"name", []string{"'n'", "''"}, false}, {"bpchar", []string{"'a '"}, false},
	{"bytea", []string{"'\\x'", "'\\x00ff275c'", "decode(repeat('00ff5c27', 3000), 'hex')"}, false}, {"uuid", []string{"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "gen_random_uuid()"}, false},
	{"date", []string{"'0044-03-15 BC'", "'infinity'", "'-infinity'", "'5874897-12-31'", "'2024-02-29'"}, false},
	{"time", []string{"'24:00'", "'00:00:00.000001'"}, false}, {"time(2)", []string{"'12:00:00.129'"}, false}, {"timetz", []string{"'12:00:00.5+05:30'", "'24:00-15:59:59'"}, false},
	{"timestamp", []string{"'infinity'", "'4713-01-01 BC'", "'294276-12-31 23:59:59.999999'", "'2024-03-31 02:30'"}, false}, {"timestamp(0)", []string{"'2024-01-01 00:00:00.6'"}, false},
	{"timestamptz", []string{"'1999-12-31 23:59:59.999999-11'", "'-infinity'", "now()", "'2024-10-27 02:30:00 Europe/Berlin'", "'0001-01-01 BC'"}, false},
	{"interval", []string{"'1 year -2 days +03:00:00.000001'", "'-178000000 years'", "'0'", "'1 mon -1 day'", "'-00:00:01.5'"}, false}, {"interval year to month", []string{"'1 year 2 mons'"}, false}, {"interval(1)", []string{"'1.25 s'"}, false},
	{"json", []string{"'{\"b\": 1,  \"a\": 1.0, \"a\":2}'", "'null'", "'\"\\u00e9\"'", "' [1 ] '"}, false}, {"jsonb", []string{"'{\"b\": 1.00, \"a\": null}'", "'1e400'", "'[]'", "'\"𝄞\"'"}, false},
	{"int[]", []string{"'{{1,2},{NULL,4}}'", "'{}'", "'[-2:0]={1,2,3}'"}, false}, {"text[]", []string{"ARRAY['a,b', 'NULL', NULL, '', '\"', '\\']", "'{}'"}, false}, {"float8[]", []string{"'{-0,NaN,1e-320}'"}, false},
	{"timestamptz[]", []string{"ARRAY['2024-01-01 00:00:00+03'::timestamptz, NULL, 'infinity']"}, false}, {"numeric(5,2)[]", []string{"'{1.5,NaN}'"}, false}, {"char(3)[]", []string{"'{a,\"b \"}'"}, false}, {"bytea[]", []string{"ARRAY['\\x00ff'::bytea, NULL]"}, false},
	{"int4range", []string{"'[1,5)'", "'empty'", "'(,)'"}, false}, {"tstzrange", []string{"'[2024-01-01 00:00+01, infinity)'", "'(,2024-01-01)'"}, false}, {"nummultirange", []string{"'{[1.5,2),(3,)}'", "'{}'"}, false}, {"daterange[]", []string{"ARRAY['[2024-01-01,2024-02-01)'::daterange]"}, false},
	{"bit(5)", []string{"B'10101'", "B'00000'"}, false}, {"bit varying", []string{"B'1'", "B''"}, false}, {"varbit(9)", []string{"B'000'"}, false},
	{"inet", []string{"'10.0.0.1/8'", "'::1'", "'::ffff:1.2.3.4/120'"}, false}, {"cidr", []string{"'10.0.0.0/8'", "'::/0'"}, false}, {"macaddr", []string{"'08:00:2b:01:02:03'"}, false}, {"macaddr8", []string{"'08:00:2b:01:02:03:04:05'"}, false},
	{"point", []string{"'(0.1,-0)'", "'(NaN,Infinity)'", "'(5e-324,1e308)'"}, false}, {"line", []string{"'{1,-1,0}'"}, false}, {"lseg", []string{"'[(0,0),(1,1)]'"}, false}, {"box", []string{"'(1,1),(0,0)'"}, false}, {"box[]", []string{"'{(1,1),(0,0);(2,2),(1,1)}'"}, false},
	{"path", []string{"'[(0,0),(1,1)]'", "'((0,0),(1,1))'"}, false}, {"polygon", []string{"'((0,0),(1,0),(1,1))'"}, false}, {"circle", []string{"'<(0,0),0.1>'"}, false},
	{"tsvector", []string{"'a:1A fat:2 cat:3'", "''", "'''it''''s'':1'"}, false}, {"tsquery", []string{"'a & !b'", "''"}, false}, {"jsonpath", []string{"'$.a[*] ? (@ > 1)'"}, false}, {"pg_lsn", []string{"'16/B374D848'"}, false}, {"oid", []string{"4294967295"}, false},
	{"xml", []string{"'<a>1</a>'"}, false}, {"money", []string{"12.34"}, false}, {"regclass", []string{"'pg_class'"}, false}, {"txid_snapshot", []string{"'10:20:10,14'"}, false}, {"xid8", []string{"'42'"}, false},
	{"mood", []string{"'sad'", "'it''s, \"fine\"'", "''"}, true}, {"mood[]", []string{"ARRAY['sad', NULL, '']::mood[]"}, true}, {"positive", []string{"7", "2147483647"}, true}, {"padded", []string{"'y'", "''"}, true},
	{"\"odd dom\"", []string{"'d'", "''"}, true}, {"emails", []string{"'{a,b}'"}, true}, {"\"pair?\"", []string{"'(1,x)'"}, true}, {"floats", []string{"'[0.1,1e-320)'"}, true}, {"positive[]", []string{"'{1,2}'"}, true},
}

func quotePostgres(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func newPostgresRandom(r *rand.Rand) *randomTable {
	t := &randomTable{rule: pick(r, []sharding.Rule{sharding.Hash(2), sharding.Low(1), sharding.Mod(2)}), id: "id"}
	names := make([]string, 0, len(postgresNames))
	for _, i := range r.Perm(len(postgresNames)) {
		names = append(names, quotePostgres(postgresNames[i]))
	}
	next := func() string {
		name := names[0]
		names = names[1:]
		return name
	}
	var parts, after []string
	definition, ids := postgresInteger(r, true)
	t.ids = ids
	if one(r, 2) {
		t.id, t.key = next(), "u"
		null := pick(r, []string{" NOT NULL", " NOT NULL", ""})
		switch r.IntN(4) {
		case 0:
			t.rule = sharding.HashText(2)
			parts = append(parts, "u "+pick(r, []string{"text", "varchar(40)", `text COLLATE "C"`, "char(20)"})+null)
			t.keys = func(r *rand.Rand) randomKey {
				text := pick(r, []string{"", "a", "A", "it's", "x y", strconv.Itoa(r.IntN(99)), "𝄞", `\`})
				return randomKey{"'" + strings.ReplaceAll(text, "'", "''") + "'", text}
			}
		default:
			var typ string
			typ, t.keys = postgresInteger(r, false)
			parts = append(parts, "u "+typ+null)
		}
	}
	parts = append(parts, t.id+" "+definition+pick(r, []string{"", "", " GENERATED BY DEFAULT AS IDENTITY", " GENERATED BY DEFAULT AS IDENTITY (START 100 INCREMENT 3 CYCLE)", " DEFAULT 5"})+" PRIMARY KEY")
	for range 1 + r.IntN(10) {
		typ := pick(r, postgresTypes)
		name := next()
		c := randomColumn{name: name, definition: typ.name, bytes: "encode(record_send(ROW(" + name + ")), 'hex')", value: literals(append([]string{"NULL"}, typ.values...)...)}
		if typ.own || typ.name == "regclass" {
			c.bytes = name + "::text"
		}
		text := name + " " + typ.name
		switch r.IntN(8) {
		case 0:
			text += " NOT NULL"
			c.value = literals(typ.values...)
		case 1:
			text += " DEFAULT " + pick(r, typ.values)
		case 2:
			text += " NOT NULL DEFAULT " + pick(r, typ.values)
		case 3:
			text += " CHECK (" + name + " IS NULL OR length(" + name + "::text) >= 0 OR " + t.id + " <> 17)"
		case 4:
			t.lone = true
			text += pick(r, []string{" UNIQUE", " UNIQUE NULLS NOT DISTINCT", " CONSTRAINT \"my name\" UNIQUE", ""})
		}
		parts = append(parts, text)
		t.columns = append(t.columns, c)
		if one(r, 4) {
			after = append(after, postgresIndex(r, t, name))
		}
		if one(r, 8) {
			after = append(after, pick(r, []string{"COMMENT ON COLUMN odd." + name + " IS 'it''s'", "ALTER TABLE odd ALTER " + name + " SET STATISTICS 5", "CREATE STATISTICS ON " + name + ", " + t.id + " FROM odd"}))
		}
	}
	for range r.IntN(3) {
		from := pick(r, t.columns)
		if from.value == nil {
			continue
		}
		name := next()
		typ, expression := "bigint", pick(r, []string{t.id + "::bigint * 2", "CASE WHEN " + from.name + " IS NULL THEN 1 END"})
		if one(r, 2) {
			typ, expression = "text", pick(r, []string{"'it''s ' || " + t.id, "md5(" + t.id + "::text)"})
		}
		parts = append(parts, name+" "+typ+" GENERATED ALWAYS AS ("+expression+") STORED")
		t.columns = append(t.columns, randomColumn{name: name, definition: typ, bytes: "encode(record_send(ROW(" + name + ")), 'hex')"})
	}
	if one(r, 3) {
		parts = append(parts, pick(r, []string{"CHECK (" + t.id + " <> 13)", "CONSTRAINT \"c ? $1\" CHECK (" + t.id + " <> 13 OR 'a?' = 'b')", "CHECK (" + t.id + " <> 13) NO INHERIT"}))
	}
	if one(r, 8) {
		other := next()
		parts = append(parts, other+" "+pick(r, []string{"serial", "bigserial", "int GENERATED ALWAYS AS IDENTITY", "int GENERATED BY DEFAULT AS IDENTITY"}))
		t.columns = append(t.columns, randomColumn{name: other, definition: "int", bytes: other + "::text"})
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if one(r, 5) {
		dropped := next()
		parts = append(parts, dropped+" int")
		after = append(after, "ALTER TABLE odd DROP "+dropped)
	}
	if one(r, 6) { // a column that old rows have without a rewrite
		name := next()
		after = append([]string{"INSERT INTO odd DEFAULT VALUES ON CONFLICT DO NOTHING", "ALTER TABLE odd ADD " + name + " int NOT NULL DEFAULT 42"}, after...)
		t.columns = append(t.columns, randomColumn{name: name, definition: "int", bytes: name + "::text", value: literals("0", "-1")})
	}
	t.create = append([]string{"CREATE TABLE odd (" + strings.Join(parts, ",\n") + ")" + pick(r, []string{"", "", " WITH (fillfactor = 50)", " WITH (autovacuum_enabled = off)"})}, after...)
	return t
}

func postgresIndex(r *rand.Rand, t *randomTable, name string) string {
	return pick(r, []string{
		"CREATE INDEX ON odd (" + name + ", " + t.id + " DESC NULLS LAST)", "CREATE INDEX ON odd ((" + t.id + " + 1))", "CREATE INDEX ON odd (" + name + ") WHERE " + t.id + " * 2 > 7",
		"CREATE UNIQUE INDEX \"u ?\" ON odd ((" + t.id + "::bigint / 2), " + t.id + ") INCLUDE (" + t.id + ")",
		"CREATE INDEX ON odd (" + t.id + ") WHERE " + name + " IS NOT NULL AND 'a?$1' <> ''", "CREATE INDEX ON odd USING hash (" + t.id + ")", "CREATE INDEX ON odd USING brin (" + t.id + ") WITH (pages_per_range = 4)",
		"CREATE INDEX ON odd (md5(" + t.id + "::text || 'it''s' ) text_pattern_ops)", "CREATE UNIQUE INDEX ON odd (" + name + ", " + t.id + ") NULLS NOT DISTINCT",
	})
}

// postgresInteger is an integer type with its values.
func postgresInteger(r *rand.Rand, small bool) (string, func(r *rand.Rand) randomKey) {
	typ := pick(r, []struct {
		name string
		bits uint
	}{{"smallint", 16}, {"integer", 32}, {"bigint", 64}})
	return typ.name, func(r *rand.Rand) randomKey {
		most := int64(uint64(1)<<(typ.bits-1) - 1)
		n := pick(r, []int64{0, 1, most, -most, -most - 1, -1, r.Int64N(most), int64(r.IntN(50))})
		if small && !one(r, 3) {
			n = int64(r.IntN(60))
		}
		return randomKey{fmt.Sprintf("'%d'", n), n}
	}
}
