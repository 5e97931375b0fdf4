// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// described is a column of the information schema.
type described struct{ name, typ, extra, charset, collation, expression string }

func (d described) isGenerated() bool {
	return d.expression != "" && !strings.Contains(d.extra, "DEFAULT_GENERATED")
}

// mysqlColumns checks the definitions of the columns.
func (p tableProbe) mysqlColumns(ctx context.Context) error {
	var all []described
	err := p.Each(ctx, func(rows *sql.Rows) error {
		var d described
		var charset, collation, expression sql.NullString
		err := rows.Scan(&d.name, &d.typ, &d.extra, &charset, &collation, &expression)
		d.extra, d.charset, d.collation, d.expression = strings.ToUpper(d.extra), charset.String, collation.String, expression.String
		all = append(all, d)
		return err
	}, "SELECT COLUMN_NAME, DATA_TYPE, EXTRA, CHARACTER_SET_NAME, COLLATION_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION", p.shape.Name)
	if err != nil {
		return err
	}
	p.generatedColumns(all)
	p.otherColumns(all)
	if err := p.needCollations(ctx, all); err != nil {
		return err
	}
	bare, err := p.List(ctx, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"+
		" AND DATA_TYPE = 'timestamp' AND IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND COALESCE(GENERATION_EXPRESSION, '') = ''", p.shape.Name)
	if err != nil {
		return err
	}
	p.bare[p.settings().Name] = bare
	p.sequences[p.settings().Name], err = p.List(ctx, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"+
		" AND LOWER(COLUMN_DEFAULT) REGEXP '(nextval|lastval|setval)[(]'", p.shape.Name)
	return err
}

var (
	mysqlIntroducer = regexp.MustCompile(`_([a-z0-9]+)\\?'`)
	mysqlFourBytes  = regexp.MustCompile(`[\x{F0}-\x{F4}][\x{80}-\x{BF}]{3}|[\x{10000}-\x{10FFFF}]`)
	mysqlQuotedName = regexp.MustCompile("`[^`]*`")
)

// mysqlLiterals finds expressions of MySQL with letters for which SHOW CREATE TABLE gives
// question marks: those outside of ASCII in texts in other character sets than Unicode's, and
// those of four bytes. MariaDB skips the comment.
func (p tableProbe) mysqlLiterals(ctx context.Context) error {
	at := "TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '" + p.shape.Name + "'"
	return p.Each(ctx, func(rows *sql.Rows) error {
		var what, text string
		if err := rows.Scan(&what, &text); err != nil {
			return err
		}
		switch set := lostLetters(text); set {
		case "":
		case "utf8mb4":
			p.add(LostValue, Block, fmt.Sprintf("the expression of %s has a text with letters of four bytes, such as emoji, which SHOW CREATE TABLE does not give, so that the shards would compute other values", what),
				"define it again by ALTER TABLE with the text's bytes: CONVERT(0xF09F9880 USING utf8mb4)")
		default:
			p.add(LostValue, Block, fmt.Sprintf("the expression of %s has a text in the character set %s with letters that SHOW CREATE TABLE does not give, so that the shards would compute other values", what, set),
				"define it again by ALTER TABLE after SET NAMES utf8mb4, without _"+set)
		}
		return nil
	}, "SELECT what, text FROM (SELECT '' AS what, '' AS text /*!80013"+
		" UNION ALL SELECT CONCAT('the column ', COLUMN_NAME), CONCAT(COALESCE(COLUMN_DEFAULT, ''), COALESCE(GENERATION_EXPRESSION, '')) FROM information_schema.COLUMNS WHERE "+at+" AND EXTRA LIKE '%GENERATED%'"+
		" UNION ALL SELECT CONCAT('the index ', INDEX_NAME), EXPRESSION FROM information_schema.STATISTICS WHERE "+at+" AND EXPRESSION IS NOT NULL"+
		" UNION ALL SELECT CONCAT('the check ', CONSTRAINT_NAME), CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS JOIN information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME) WHERE "+at+" AND CONSTRAINT_TYPE = 'CHECK'"+
		" */) AS written WHERE what <> ''")
}

// mysqlMembers finds columns whose definition SHOW CREATE TABLE may give with question marks for
// letters of four bytes: members of an ENUM or SET, and defaults of MariaDB. MySQL skips the
// comment.
func mysqlMembers(ctx context.Context, p probe) error {
	columns, err := p.List(ctx, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND CHARACTER_SET_NAME IN ('utf8mb4', 'utf16', 'utf16le', 'utf32')"+
		" AND (DATA_TYPE IN ('enum', 'set') AND LOCATE(CHAR(63), COLUMN_TYPE) > 0 /*M!100500 OR LEFT(COLUMN_DEFAULT, 1) = CHAR(39) AND LOCATE(CHAR(63), COLUMN_DEFAULT) > 0 */) ORDER BY ORDINAL_POSITION", p.shape.Name)
	if err == nil && len(columns) > 0 {
		p.add(LostValue, Warn, "the members or the default of "+strings.Join(columns, ", ")+" have question marks, which SHOW CREATE TABLE also gives for letters of four bytes, such as emoji; the shards will have question marks",
			"create the shards' tables by hand if they are other letters")
	}
	return err
}

// lostLetters is a character set of which an expression has letters that are lost, "" if there
// is none. They are those outside of ASCII, and of Unicode's sets those of four bytes. The
// server shows each byte of such texts as a letter.
func lostLetters(expression string) string {
	expression = mysqlQuotedName.ReplaceAllString(expression, "")
	if !strings.ContainsFunc(expression, func(r rune) bool { return r > unicode.MaxASCII }) {
		return ""
	}
	for _, found := range mysqlIntroducer.FindAllStringSubmatch(expression, -1) {
		if !slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8"}, found[1]) {
			return found[1]
		}
	}
	if mysqlFourBytes.MatchString(expression) {
		return "utf8mb4"
	}
	return ""
}

// needCollations collects the collations that the shards' servers must know.
func (p tableProbe) needCollations(ctx context.Context, all []described) error {
	names, err := p.List(ctx, "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", p.shape.Name)
	for _, d := range all {
		if d.collation != "" && !slices.Contains(names, d.collation) {
			names = append(names, d.collation)
		}
	}
	p.needed[p.settings().Name] = names
	return err
}

// unlike finds settings of a shard's server that would change the definition of its table.
func (p shardProbe) unlike(ctx context.Context, t openjob.TableConfig) error {
	if bare := p.bare[t.Name]; len(bare) > 0 {
		adds, err := p.Number(ctx, "SELECT @@explicit_defaults_for_timestamp = 0")
		if err != nil {
			return err
		}
		if adds != 0 {
			p.add(ImplicitDefaults, Block, "explicit_defaults_for_timestamp is off, so that "+strings.Join(bare, ", ")+" of "+t.Name+" would get a default here, and change with each UPDATE",
				"turn it on, or create this table by hand")
		}
	}
	if from := p.sequences[t.Name]; len(from) > 0 {
		p.add(ForeignDefault, Block, "the default of "+strings.Join(from, ", ")+" of "+t.Name+" uses a sequence, which this database does not have",
			"drop the default on the source and let the application set the value, or create this table by hand without it")
	}
	return p.unknownCollations(ctx, t)
}

// unknownCollations finds collations that the shard's server does not know.
func (p shardProbe) unknownCollations(ctx context.Context, t openjob.TableConfig) error {
	for _, collation := range p.needed[t.Name] {
		charset, _, _ := strings.Cut(collation, "_")
		_, err := p.List(ctx, "SELECT CONVERT('' USING "+charset+") COLLATE "+collation)
		if backend.IsMySQL(err, "1273", "1115") {
			p.add(Charset, Block, "the server does not know the collation "+collation+" of "+t.Name,
				"create this table by hand, with another one, or change it on the source")
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p tableProbe) generatedColumns(all []described) {
	var generated []string
	for _, d := range all {
		if !d.isGenerated() {
			continue
		}
		generated = append(generated, d.name)
		for _, from := range all {
			if d.isStored() && from.typ == "timestamp" && strings.Contains(d.expression, p.Database.Quote(from.name)) {
				p.add(GeneratedColumns, Warn, fmt.Sprintf("%s is stored as computed from the TIMESTAMP %s in the time zone of the session that wrote the row; the shards will have it as computed in UTC", d.name, from.name),
					"make it VIRTUAL, or compute it from a DATETIME, unless all writers have UTC")
			}
		}
	}
	if len(generated) > 0 {
		p.add(GeneratedColumns, Info, "the columns "+strings.Join(generated, ", ")+" are computed by each database", "nothing, if the shards' servers compute them alike")
	}
}

func (d described) isStored() bool {
	return strings.Contains(d.extra, "STORED") || strings.Contains(d.extra, "PERSISTENT")
}

func (p tableProbe) otherColumns(all []described) {
	var invisible, charsets []string
	for _, d := range all {
		if strings.Contains(d.extra, "INVISIBLE") {
			invisible = append(invisible, d.name)
		}
		if d.charset != "" && d.charset != "utf8mb4" && d.charset != "ascii" && !slices.Contains(charsets, d.charset) {
			charsets = append(charsets, d.charset)
		}
		if strings.Contains(d.extra, "AUTO_INCREMENT") && !strings.EqualFold(d.name, p.shape.Key) {
			p.add(OtherCounter, Warn, d.name+" is numbered by the table; the shards' tables will not number it", "let the application set its values from the switch on, or drop it")
		}
	}
	if len(invisible) > 0 {
		p.add(InvisibleColumns, Info, "the columns "+strings.Join(invisible, ", ")+" are invisible; they are copied all the same", "nothing")
	}
	for _, charset := range charsets {
		p.add(Charset, Info, "it has columns in the character set "+charset, "nothing: the shards' tables have the same")
	}
}
