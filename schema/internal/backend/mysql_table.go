// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/dialect"
)

func (m mysqlCatalog) OwnTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS `" + JobTable + "` (job VARCHAR(64) NOT NULL PRIMARY KEY, phase VARCHAR(16) NOT NULL, servers VARCHAR(64) NOT NULL DEFAULT '') ENGINE=InnoDB",
		"CREATE TABLE IF NOT EXISTS `" + SpanTable + "` (job VARCHAR(64) NOT NULL, tbl INT NOT NULL, name VARCHAR(64) NOT NULL, low BIGINT NULL, hig BIGINT NULL," +
			" identity VARCHAR(191) NOT NULL, setup VARCHAR(255) NOT NULL DEFAULT '', PRIMARY KEY (job, tbl)) ENGINE=InnoDB",
		"CREATE TABLE IF NOT EXISTS `" + RouteTable + "` (tbl VARCHAR(64) NOT NULL PRIMARY KEY, job VARCHAR(64) NOT NULL, epoch BIGINT NOT NULL, route VARCHAR(16) NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE IF NOT EXISTS `" + TargetTable + "` (job VARCHAR(64) NOT NULL, tbl INT NOT NULL, shard INT NOT NULL, place VARCHAR(191) NOT NULL, identity VARCHAR(191) NOT NULL, beat BIGINT NOT NULL," +
			" PRIMARY KEY (job, tbl, shard)) ENGINE=InnoDB",
		m.fenceDefinition(FenceTable), m.logDefinition(log),
	}
}

func (m mysqlCatalog) ShardTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS `" + OwnerTable + "` (name VARCHAR(64) NOT NULL PRIMARY KEY, job VARCHAR(64) NOT NULL, owner VARCHAR(32) NOT NULL, beat BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB",
		m.fenceDefinition(ShardFenceTable), m.logDefinition(log),
	}
}

func (mysqlCatalog) fenceDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS `" + name + "` (job VARCHAR(64) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, owner VARCHAR(32) NOT NULL) ENGINE=InnoDB"
}

func (mysqlCatalog) logDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS `" + name + "` (seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, tbl INT NOT NULL, id BIGINT NOT NULL) ENGINE=InnoDB"
}

func (m mysqlCatalog) MapDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.Quote(name) + " (tbl INT NOT NULL, old BIGINT NOT NULL, new BIGINT NOT NULL, PRIMARY KEY (tbl, old), UNIQUE KEY (tbl, new)) ENGINE=InnoDB"
}

// Counter reads the table's definition, because the information schema caches the counter.
func (m mysqlCatalog) Counter(ctx context.Context, s *Session, name string) (int64, error) {
	text, err := m.definition(ctx, s, name)
	if err != nil {
		return 0, err
	}
	found := mysqlNext.FindStringSubmatch(text)
	if found == nil {
		return 0, nil
	}
	next, err := strconv.ParseInt(found[1], 10, 64)
	return next - 1, err
}

func (m mysqlCatalog) SetCounter(ctx context.Context, s *Session, name string, id int64) error {
	return s.Exec(ctx, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", m.Quote(name), id+1))
}

func (m mysqlCatalog) Describe(ctx context.Context, s *Session, name string) (sh Table, err error) {
	err = s.ReadTx(ctx, func() error {
		if err := m.hold(ctx, s, name); err != nil {
			return err
		}
		sh, err = m.describeHeld(ctx, s, name)
		return err
	})
	return sh, err
}

// hold keeps a table's name and definition unchanged until the transaction ends: the server
// lets nobody change a table that an open transaction has read. The information schema
// alone would show different moments.
func (m mysqlCatalog) hold(ctx context.Context, s *Session, name string) error {
	if s.Locked {
		return nil
	}
	err := s.Exec(ctx, "SELECT 1 FROM "+m.Quote(name)+" LIMIT 0")
	if IsMySQL(err, "1146") {
		return fmt.Errorf("table %s: %w", name, ErrNoTable)
	}
	return err
}

func (m mysqlCatalog) describeHeld(ctx context.Context, s *Session, name string) (Table, error) {
	sh := Table{Name: name}
	var engine, kind sql.NullString
	err := s.QueryRowContext(ctx, "SELECT TABLE_NAME, ENGINE, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", name).Scan(&sh.Name, &engine, &kind)
	if errors.Is(err, sql.ErrNoRows) { // under LOCK TABLES, which keeps the named tables unchanged
		err = ErrNoTable
	}
	if err != nil {
		return sh, fmt.Errorf("table %s: %w", name, err)
	}
	if engine.String != "InnoDB" || kind.String != "BASE TABLE" {
		return sh, fmt.Errorf("%w: table %s is a %s of engine %q; only base tables of InnoDB have transactions and row triggers", ErrUnsupported, name, kind.String, engine.String)
	}
	if err := m.readColumns(ctx, s, &sh); err != nil {
		return sh, err
	}
	if err := m.readKeys(ctx, s, &sh); err != nil {
		return sh, err
	}
	if err := m.checkRange(ctx, s, sh); err != nil {
		return sh, err
	}
	if err := m.readForeignKeys(ctx, s, &sh); err != nil {
		return sh, err
	}
	if err := m.findUnseen(ctx, s, &sh); err != nil {
		return sh, err
	}
	return sh, m.readTriggers(ctx, s, &sh)
}

func (mysqlCapture) triggers(ctx context.Context, s *Session, prefix string) ([]string, error) {
	return s.List(ctx, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND LEFT(TRIGGER_NAME, CHAR_LENGTH(?)) = ?", prefix, prefix)
}

func (m mysqlCatalog) readColumns(ctx context.Context, s *Session, sh *Table) error {
	return s.Each(ctx, func(rows *sql.Rows) error {
		var c Column
		var null, extra string
		var charset, generation sql.NullString
		if err := rows.Scan(&c.Name, &c.Type, &c.Definition, &charset, &null, &extra, &generation); err != nil {
			return err
		}
		if generation.String != "" && !strings.Contains(strings.ToUpper(extra), "DEFAULT_GENERATED") {
			sh.Generated = append(sh.Generated, c.Name)
			return nil
		}
		c.Type, c.charset, c.Nullable = strings.ToLower(c.Type), charset.String, null == "YES"
		c.kind, c.cast = mysqlKind(c.Type)
		c.empty = emptyMember(c.Definition)
		sh.Columns = append(sh.Columns, c)
		return nil
	}, "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE, EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS"+
		" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION", sh.Name)
}

func mysqlKind(typ string) (k Kind, cast bool) {
	switch typ {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year":
		return Number, false
	case "date", "time", "datetime", "timestamp":
		return Quoted, true
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector":
		return Binary, false
	}
	if isGeometry(typ) {
		return Binary, false
	}
	return Quoted, false // text of all kinds, enum, set, json, uuid, inet
}

func isGeometry(typ string) bool {
	switch typ {
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
		return true
	}
	return false
}

func (mysqlCatalog) readKeys(ctx context.Context, s *Session, sh *Table) error {
	var primary []string
	last := ""
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var index string
		var column sql.NullString
		if err := rows.Scan(&index, &column); err != nil {
			return err
		}
		switch index {
		case "PRIMARY":
			primary = append(primary, column.String)
		case last:
			u := &sh.Uniques[len(sh.Uniques)-1]
			*u = append(*u, column.String)
		default:
			sh.Uniques, last = append(sh.Uniques, []string{column.String}), index
		}
		return nil
	}, "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX", sh.Name)
	if err != nil {
		return err
	}
	return sh.setKey(primary)
}

// setKey accepts only a primary key of one integer column.
func (s *Table) setKey(primary []string) error {
	if len(primary) == 1 {
		c, ok := s.Column(primary[0])
		if ok && strings.Contains(strings.ToLower(c.Type), "int") {
			s.Key = c.Name
			return nil
		}
	}
	return fmt.Errorf("%w: table %s has the primary key (%s); a migration needs a primary key of one integer column: add one, and a unique key on the present columns",
		ErrUnsupported, s.Name, strings.Join(primary, ", "))
}

// checkRange refuses ids above the largest int64, which a BIGINT UNSIGNED may have.
func (m mysqlCatalog) checkRange(ctx context.Context, s *Session, sh Table) error {
	key := m.Quote(sh.Key)
	above, err := s.List(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %[1]s > %[3]d ORDER BY %[1]s LIMIT 1", key, m.Quote(sh.Name), int64(math.MaxInt64)))
	if err == nil && len(above) > 0 {
		err = fmt.Errorf("%w: table %s has the id %s; a migration handles ids up to %d: give the rows above it lower ids", ErrUnsupported, sh.Name, above[0], int64(math.MaxInt64))
	}
	return err
}

// readForeignKeys asks for the tables with keys first. MariaDB opens all tables of all databases to answer for tables that
// a statement does not name by a constant, and would do so once for each of the two views that are joined.
func (mysqlCatalog) readForeignKeys(ctx context.Context, s *Session, sh *Table) error {
	const about = "(r.CONSTRAINT_SCHEMA = DATABASE() AND r.TABLE_NAME = ? OR r.UNIQUE_CONSTRAINT_SCHEMA = DATABASE() AND r.REFERENCED_TABLE_NAME = ?)"
	var children [][2]string
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var of [2]string
		err := rows.Scan(&of[0], &of[1])
		children = append(children, of)
		return err
	}, "SELECT DISTINCT r.CONSTRAINT_SCHEMA, r.TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS r WHERE "+about+" ORDER BY 1, 2", sh.Name, sh.Name)
	for _, of := range children {
		err = errors.Join(err, s.Each(ctx, func(rows *sql.Rows) error {
			var k keyColumn
			if err := rows.Scan(&k.child, &k.parent, &k.name, &k.column, &k.refers, &k.onDelete, &k.onUpdate); err != nil {
				return err
			}
			sh.addKey(k)
			return nil
		}, "SELECT "+here("r.CONSTRAINT_SCHEMA", "r.TABLE_NAME")+", "+here("r.UNIQUE_CONSTRAINT_SCHEMA", "r.REFERENCED_TABLE_NAME")+
			", r.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS r"+
			" JOIN information_schema.KEY_COLUMN_USAGE k ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_NAME = r.TABLE_NAME"+
			" WHERE "+about+" AND r.CONSTRAINT_SCHEMA = ? AND r.TABLE_NAME = ? AND k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ?"+
			" AND k.REFERENCED_TABLE_NAME IS NOT NULL ORDER BY r.CONSTRAINT_NAME, k.ORDINAL_POSITION", sh.Name, sh.Name, of[0], of[1], of[0], of[1]))
	}
	return err
}

// findUnseen finds foreign keys that cascade updates and whose parent's columns change
// without running its triggers: another foreign key changes them, or the parent is in
// another database.
func (m mysqlCatalog) findUnseen(ctx context.Context, s *Session, sh *Table) error {
	for i, fk := range sh.Parents {
		if !fk.Updates || strings.EqualFold(fk.Table, sh.Name) {
			continue
		}
		here, err := m.Exists(ctx, s, fk.Table)
		if err != nil {
			return err
		}
		if !here {
			sh.Parents[i].Unseen = fk.Table + " is in another database"
			continue
		}
		args := []any{fk.Table, fk.Table}
		for _, column := range fk.Refers {
			args = append(args, column)
		}
		by, err := s.List(ctx, "SELECT DISTINCT CONCAT(r.CONSTRAINT_NAME, ' to ', r.REFERENCED_TABLE_NAME) FROM information_schema.REFERENTIAL_CONSTRAINTS r"+
			" JOIN information_schema.KEY_COLUMN_USAGE k ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_NAME = r.TABLE_NAME"+
			" WHERE r.CONSTRAINT_SCHEMA = DATABASE() AND r.TABLE_NAME = ? AND k.TABLE_SCHEMA = DATABASE() AND k.TABLE_NAME = ? AND k.COLUMN_NAME IN (?"+strings.Repeat(", ?", len(fk.Refers)-1)+")"+
			" AND (r.UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT') OR r.DELETE_RULE LIKE 'SET %')", args...)
		if err != nil {
			return err
		}
		if len(by) > 0 {
			sh.Parents[i].Unseen = fmt.Sprintf("the foreign key %s changes (%s) of %s by itself", by[0], strings.Join(fk.Refers, ", "), fk.Table)
		}
	}
	return nil
}

func (m mysqlCatalog) DropKeys(ctx context.Context, s *Session, table string, keys []ForeignKey) error {
	drops := make([]string, len(keys))
	for i, fk := range keys {
		drops[i] = "DROP FOREIGN KEY " + m.Quote(fk.name)
	}
	// MySQL locks the referenced tables as well.
	return mysqlCapture(m).limitingWaits(ctx, s, func() error {
		return s.Exec(ctx, "ALTER TABLE "+m.Quote(table)+" "+strings.Join(drops, ", "))
	})
}

// here is an SQL expression of a table's name, qualified by its database unless that is the
// current one, which may have a table of the same name.
func here(database, table string) string {
	return "IF(" + database + " = DATABASE(), " + table + ", CONCAT(" + database + ", '.', " + table + "))"
}

func cascades(rule string) bool {
	return !strings.EqualFold(rule, "NO ACTION") && !strings.EqualFold(rule, "RESTRICT")
}

func (m mysqlCatalog) definition(ctx context.Context, s *Session, name string) (string, error) {
	var table, text string
	err := s.QueryRowContext(ctx, "SHOW CREATE TABLE "+m.Quote(name)).Scan(&table, &text)
	return text, err
}

// Digest is a hash of a text, in hexadecimal.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Definitions have the form of SHOW CREATE TABLE: one line for each column and key, names
// in backticks, and texts with any content in quotes at the ends of lines.
const mysqlName = "`(?:[^`]|``)+`"

var (
	mysqlCounter    = regexp.MustCompile(`(?m)^(\)[^'\n]*?) AUTO_INCREMENT=\d+`)
	mysqlNext       = regexp.MustCompile(`(?m)^\)[^'\n]*? AUTO_INCREMENT=(\d+)`)
	mysqlCounted    = regexp.MustCompile("(?m)^( +" + mysqlName + " [^'\n]*?) AUTO_INCREMENT")
	mysqlForeignKey = regexp.MustCompile("(?m)^ +CONSTRAINT " + mysqlName + " FOREIGN KEY .*\n")
	mysqlClosed     = regexp.MustCompile("(CONSTRAINT `[^`]*?|REFERENCES `[^`]*?)" + Retired("") + "(`|_ibfk_)")
	mysqlCheckName  = regexp.MustCompile("(?m)^( +)CONSTRAINT " + mysqlName + " CHECK")
	mysqlLastComma  = regexp.MustCompile(`(?m),(\n\))`)
)

// WithoutCounter is a MySQL table definition without its AUTO_INCREMENT value.
func WithoutCounter(definition string) string { return mysqlCounter.ReplaceAllString(definition, "$1") }

// openNames restores in a definition the names from before the table and the tables that
// its foreign keys refer to were closed: the server renames references to tables, and keys
// whose names it has derived from the table's.
func openNames(definition string) string {
	return mysqlForeignKey.ReplaceAllStringFunc(definition, func(key string) string {
		return mysqlClosed.ReplaceAllString(key, "$1$2")
	})
}

// mysqlInteger finds the type of an integer column.
func mysqlInteger(quoted string) *regexp.Regexp {
	return regexp.MustCompile("(?m)^( +" + regexp.QuoteMeta(quoted) + ` )[a-z]*int(?:\(\d+\))?(?: unsigned)?(?: zerofill)?(.*)$`)
}

// TargetDefinition is the table's definition with BIGINT ids and without AUTO_INCREMENT. It
// has no foreign keys, as the parents may be on other shards, and other names of checks,
// which must be unique in a database.
func (m mysqlCatalog) TargetDefinition(ctx context.Context, s *Session, of Table, name string) ([]string, error) {
	text, err := m.definition(ctx, s, of.Name)
	if err != nil {
		return nil, err
	}
	text = mysqlForeignKey.ReplaceAllString(WithoutCounter(text)+"\n", "")
	text = mysqlLastComma.ReplaceAllString(m.renameChecks(text, name), "$1")
	for _, column := range of.wide() {
		text = mysqlInteger(m.Quote(column)).ReplaceAllString(text, "${1}bigint${2}")
	}
	text = mysqlCounted.ReplaceAllString(text, "$1")
	_, body, found := strings.Cut(text, "(")
	if !found {
		return nil, fmt.Errorf("%w: table %s: SHOW CREATE TABLE has no columns", ErrUnsupported, of.Name)
	}
	return []string{"CREATE TABLE " + m.Quote(name) + " (" + body}, nil
}

// renameChecks lets the server name checks, unless the names that MySQL derives from a
// shard's longest name would be too long.
func (m mysqlCatalog) renameChecks(definition, name string) string {
	n := 0
	return mysqlCheckName.ReplaceAllStringFunc(definition, func(check string) string {
		indent, _, _ := strings.Cut(check, "CONSTRAINT")
		n++
		if m.found.Kind == dialect.KindMariaDB || utf8.RuneCountInString(fmt.Sprint(Sealed(name), "_chk_", n)) <= mysqlLongestName {
			return indent + "CHECK"
		}
		return fmt.Sprintf("%sCONSTRAINT `shardid_%s_%d` CHECK", indent, Digest(name)[:16], n)
	})
}

// mysqlLongestName is in characters.
const mysqlLongestName = 64

// Unclosable returns constraints whose names MySQL derives from the table's. With the
// retired name they would be too long, and the table could not be renamed.
func (m mysqlCatalog) Unclosable(ctx context.Context, s *Session, table string) ([]string, error) {
	if m.found.Kind == dialect.KindMariaDB { // which truncates them
		return nil, nil
	}
	return s.List(ctx, "SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"+
		" AND SUBSTRING(CONSTRAINT_NAME, CHAR_LENGTH(TABLE_NAME) + 1) REGEXP '^_(ibfk|chk)_[0-9]+$' AND LEFT(CONSTRAINT_NAME, CHAR_LENGTH(TABLE_NAME)) = TABLE_NAME"+
		" AND CHAR_LENGTH(CONSTRAINT_NAME) + ? > ? ORDER BY 1", table, len(Retired("")), mysqlLongestName)
}

func (m mysqlCapture) Capture(c Capture) []Trigger {
	insert := func(row string) string {
		return fmt.Sprintf("INSERT INTO %s (tbl, id) VALUES (%d, %s.%s)", m.Quote(c.Log), c.Number, row, m.Quote(c.Key))
	}
	list := m.captureOwn(c, insert)
	return append(list, m.captureCascades(c)...)
}

func (m mysqlCapture) captureOwn(c Capture, insert func(row string) string) []Trigger {
	moved := fmt.Sprintf("IF OLD.%s <> NEW.%[1]s THEN %s; END IF", m.Quote(c.Key), insert("OLD"))
	return []Trigger{
		m.trigger(c, "ins", "AFTER INSERT", insert("NEW")),
		m.trigger(c, "upd", "AFTER UPDATE", "BEGIN "+insert("NEW")+"; "+moved+"; END"),
		m.trigger(c, "del", "AFTER DELETE", insert("OLD")),
	}
}

// captureCascades notes the rows below a row that is deleted, or whose watched columns
// change: InnoDB changes these rows without running their triggers, or they move to another
// shard. A writer of such a row holds a lock on the row above, so that the read here sees
// it.
func (m mysqlCapture) captureCascades(c Capture) []Trigger {
	if len(c.Below) == 0 {
		return nil
	}
	var always, changed []string
	for _, d := range c.Below {
		// A plain read could show the moment when the statement began, before another
		// transaction, for which this one has waited, inserted a row.
		note := notedBelow(m, c.Log, d, func(refers string) string { return "= OLD." + m.Quote(refers) }) + " FOR UPDATE"
		same := make([]string, len(d.Watch))
		for i, column := range d.Watch {
			same[i] = m.sameBytes(column)
		}
		always = append(always, note+"; ")
		changed = append(changed, "IF NOT ("+strings.Join(same, " AND ")+") THEN "+note+"; END IF; ")
	}
	return []Trigger{
		m.trigger(c, "cdel", "BEFORE DELETE", "BEGIN "+strings.Join(always, "")+"END"),
		m.trigger(c, "cupd", "BEFORE UPDATE", "BEGIN "+strings.Join(changed, "")+"END"),
	}
}

func (m mysqlCapture) trigger(c Capture, event, when, body string) Trigger {
	name := c.TriggerName(event)
	return Trigger{name: name, table: c.Table, body: body, Create: "CREATE TRIGGER " + m.Quote(name) + " " + when + " ON " + m.Quote(c.Table) + " FOR EACH ROW " + body}
}

// Barrier compares the variable with CONNECTION_ID(), which differs for each connection:
// MySQL 9.7.4 evaluates once per open table whether a user variable is NULL in a trigger,
// and uses the answer for all connections that share the open table.
func (m mysqlCapture) Barrier(c Capture) []Trigger {
	const refuse = "IF NOT (@shardid_pass <=> CONNECTION_ID()) THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'shardid: this table moved to shards'; END IF"
	return []Trigger{
		m.trigger(c, "noins", "BEFORE INSERT", refuse),
		m.trigger(c, "noupd", "BEFORE UPDATE", refuse),
		m.trigger(c, "nodel", "BEFORE DELETE", refuse),
	}
}

// sameBytes is true when a column does not change. It compares bytes, as InnoDB cascades a
// change that a collation does not see.
func (m mysqlCapture) sameBytes(column string) string {
	return fmt.Sprintf("CAST(OLD.%s AS BINARY) <=> CAST(NEW.%[1]s AS BINARY)", m.Quote(column))
}

// KeyWatch runs after the change, and the server undoes the change with all its cascades. A
// trigger that runs before would not see what other triggers make of the row.
func (m mysqlCapture) KeyWatch(w KeyWatch) Trigger {
	const longest = 128 // of MESSAGE_TEXT
	same, was := make([]string, len(w.Columns)), make([]string, len(w.Columns))
	for i, column := range w.Columns {
		same[i] = m.sameBytes(column)
		was[i] = "OLD." + m.Quote(column)
	}
	body := fmt.Sprintf("BEGIN DECLARE why VARCHAR(%d) CHARACTER SET utf8mb4; IF NOT (%s) THEN "+
		"SET why = LEFT(CONCAT('shardid: job ', %s, ' keeps (', %s, ') of ', %s, ' as it is: foreign keys of ', %s, ' refer to ', CONCAT_WS(', ', %s)), %[1]d); "+
		"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = why; END IF; END",
		longest, strings.Join(same, " AND "), mysqlText(w.Job), mysqlText(strings.Join(w.Columns, ", ")), mysqlText(w.Table), mysqlText(strings.Join(w.Of, ", ")), strings.Join(was, ", "))
	return Trigger{name: w.Name, table: w.Table, body: body, Create: "CREATE TRIGGER " + m.Quote(w.Name) + " AFTER UPDATE ON " + m.Quote(w.Table) + " FOR EACH ROW " + body}
}

// mysqlText is a literal of a text that is valid under every sql_mode.
func mysqlText(text string) string { return "_utf8mb4 x'" + hex.EncodeToString([]byte(text)) + "'" }

// hasTrigger compares the body, which servers keep unchanged.
func (mysqlCapture) hasTrigger(ctx context.Context, s *Session, t Trigger) (bool, error) {
	body, err := s.List(ctx, "SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME = ? AND EVENT_OBJECT_TABLE = ?", t.name, t.table)
	return len(body) == 1 && body[0] == t.body, err
}

// mayShow tells a missing right from a missing trigger: MySQL lists no triggers for a user without TRIGGER, and MariaDB
// none of their bodies.
func (m mysqlRecognition) mayShow(ctx context.Context, s *Session, trigger string) error {
	err := s.Each(ctx, func(*sql.Rows) error { return nil }, "SHOW CREATE TRIGGER "+m.Quote(trigger))
	if dialect.FaultOf(err) == dialect.NoRight {
		return fmt.Errorf("trigger %s: %w; GRANT TRIGGER on the database to the user", trigger, err)
	}
	if IsMySQL(err, "1360") { // there is none
		return nil
	}
	return err
}

// triggerPause is above a hundredth of a second, the precision of MariaDB's times of statements
// and triggers.
const triggerPause = 20 * time.Millisecond

// withoutWriters locks the table before the first trigger is created. MariaDB compares the time when
// a statement was prepared with the time of the triggers. A statement prepared in the same
// hundredth of a second would run them without having opened the log, and fail with error
// 1146. While another transaction keeps the table, the lock waits for at most a second at a
// time, so that writers wait no longer.
func (m mysqlCapture) withoutWriters(ctx context.Context, s *Session, table string, f func() error) error {
	return m.limitingWaits(ctx, s, func() error {
		err := s.Exec(ctx, "LOCK TABLES "+m.Quote(table)+" WRITE")
		if err == nil {
			err = Wait(ctx, triggerPause)
		}
		if err == nil {
			err = f()
		}
		if err != nil {
			return err // the caller discards the connection, and the lock with it
		}
		return s.Exec(ctx, "UNLOCK TABLES")
	})
}

// limitingWaits limits the wait for a lock: new users of a table wait behind a session that waits
// for its lock.
func (mysqlCapture) limitingWaits(ctx context.Context, s *Session, f func() error) error {
	if err := s.Exec(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err // the connection is discarded, and the setting with it
	}
	return s.Exec(ctx, "SET SESSION lock_wait_timeout = "+mysqlSettings["lock_wait_timeout"])
}
