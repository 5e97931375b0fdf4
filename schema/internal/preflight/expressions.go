// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// computed is an expression that the server evaluates for each row of a table.
type computed struct {
	what   string // for messages
	column string // its name, if it is a generated column
	text   string
	shown  string // selects the value of a generated column, and otherwise whether the row is accepted
}

const (
	generatedColumn = "generated column"
	checked         = "check"
	accepts         = "'accepted'"
	refuses         = "'refused'"
)

// expressionsOf are the expressions of the probe's table.
func expressionsOf(ctx context.Context, p probe) (all []computed, err error) {
	query, show, args := postgresExpressions, postgresShown, []any{p.shape.Name}
	if p.Database.Name() == "mysql" {
		query, show, args = strings.ReplaceAll(mysqlExpressions, "?", fmt.Sprintf("_utf8mb4 x'%x'", p.shape.Name)), mysqlShown, nil // each server has another number of them
	}
	err = p.Each(ctx, func(rows *sql.Rows) error {
		var kind, name, typ, text string
		var escaped bool
		err := rows.Scan(&kind, &name, &typ, &text, &escaped)
		if escaped {
			text = mysqlEscapes.Replace(text)
		}
		e := computed{what: strings.TrimSpace("the " + kind + " " + name), text: text, shown: show(kind, typ, text)}
		if kind == generatedColumn {
			e.column = name
		}
		all = append(all, e)
		return err
	}, query, args...)
	return all, err
}

// mysqlExpressions has comments that only MySQL executes, which escapes texts once more, and
// comments that only MariaDB does.
const mysqlExpressions = "SELECT '" + generatedColumn + "', COLUMN_NAME, COLUMN_TYPE, GENERATION_EXPRESSION, 0 /*!80013 + 1 */ FROM information_schema.COLUMNS" +
	" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COALESCE(GENERATION_EXPRESSION, '') <> '' AND EXTRA LIKE '%GENERATED%'" +
	" UNION ALL SELECT DISTINCT 'division into partitions', '', '', PARTITION_EXPRESSION, 0 FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND PARTITION_EXPRESSION IS NOT NULL" +
	" /*!80013 UNION ALL SELECT 'index', INDEX_NAME, '', EXPRESSION, 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND EXPRESSION IS NOT NULL */" +
	" /*!80016 UNION ALL SELECT '" + checked + "', CONSTRAINT_NAME, '', CHECK_CLAUSE, 1 FROM information_schema.CHECK_CONSTRAINTS JOIN information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)" +
	" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND CONSTRAINT_TYPE = 'CHECK' AND ENFORCED = 'YES' */" +
	" /*M!100500 UNION ALL SELECT '" + checked + "', CONSTRAINT_NAME, '', CHECK_CLAUSE, 0 FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = ? */"

var (
	mysqlEscapes = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\0`, "\x00", `\Z`, "\x1a")
	mysqlNumbers = regexp.MustCompile(`\d+`)
)

// mysqlShown tests whether a value fits in its column, which a SELECT does not.
func mysqlShown(kind, typ, text string) string {
	text = "(" + text + ")"
	switch kind {
	case generatedColumn:
		if fits := mysqlFits(strings.ToLower(typ), text); fits != "" {
			return "IF(" + fits + " IS FALSE, " + refuses + ", CAST(" + text + " AS CHAR))"
		}
		return "CAST(" + text + " AS CHAR)"
	case checked:
		return "IF(" + text + " IS FALSE, " + refuses + ", " + accepts + ")"
	}
	return "IF(CHAR_LENGTH(CONCAT_WS('', " + strings.TrimSuffix(strings.TrimPrefix(text, "("), ")") + ")) < 0, " + refuses + ", " + accepts + ")"
}

// mysqlFits is a condition that is false for values that are too large for a type; "" if it
// is not known.
func mysqlFits(typ, text string) string {
	sizes := mysqlNumbers.FindAllString(typ, -1)
	name, _, _ := strings.Cut(strings.ReplaceAll(typ, "(", " "), " ")
	if bits, is := map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[name]; is {
		least, most := "-"+strconv.FormatUint(1<<(bits-1), 10), uint64(1)<<(bits-1)-1
		if strings.Contains(typ, "unsigned") {
			least, most = "0", math.MaxUint64>>(64-bits)
		}
		return fmt.Sprintf("%s BETWEEN %s AND %d", text, least, most)
	}
	if (name == "char" || name == "varchar") && len(sizes) == 1 {
		return "CHAR_LENGTH(" + text + ") <= " + sizes[0]
	}
	if name == "decimal" && len(sizes) == 2 {
		return "ABS(" + text + ") < 1e" + sizes[0] + " / 1e" + sizes[1]
	}
	return ""
}

// postgresExpressions lists expressions. Those of one index are one list.
const postgresExpressions = "SELECT k.kind, k.name, k.type, k.text, false" + ofTable + "CROSS JOIN LATERAL (" +
	"SELECT '" + generatedColumn + "' AS kind, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, pg_get_expr(d.adbin, d.adrelid) AS text FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attgenerated <> '' AND NOT a.attisdropped" +
	" UNION ALL SELECT '" + checked + "', conname, '', pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c'" +
	" UNION ALL SELECT 'index', indexrelid::regclass::text, '', pg_get_expr(indexprs, indrelid) FROM pg_index WHERE indrelid = c.oid AND indexprs IS NOT NULL" +
	" UNION ALL SELECT 'condition of the index', indexrelid::regclass::text, '', pg_get_expr(indpred, indrelid) FROM pg_index WHERE indrelid = c.oid AND indpred IS NOT NULL" +
	") AS k WHERE c.relname = ? ORDER BY 1, 2"

// postgresShown tests whether a text fits in its column, as a cast would cut it.
func postgresShown(kind, typ, text string) string {
	switch kind {
	case generatedColumn:
		shown := "CAST(CAST((" + text + ") AS " + typ + ") AS text)"
		if size := mysqlNumbers.FindString(typ); size != "" && strings.HasPrefix(typ, "character") && !strings.HasSuffix(typ, "]") {
			return "CASE WHEN length(CAST((" + text + ") AS text)) > " + size + " THEN " + refuses + " ELSE " + shown + " END"
		}
		return shown
	case checked:
		return "CASE WHEN (" + text + ") IS FALSE THEN " + refuses + " ELSE " + accepts + " END"
	}
	return "CASE WHEN CAST(ROW(" + text + ") AS text) IS NULL THEN " + refuses + " ELSE " + accepts + " END"
}
