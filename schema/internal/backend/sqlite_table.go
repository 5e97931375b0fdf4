// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func (m sqliteCatalog) OwnTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + JobTable + " (job TEXT NOT NULL PRIMARY KEY, phase TEXT NOT NULL, servers TEXT NOT NULL DEFAULT '')",
		"CREATE TABLE IF NOT EXISTS " + SpanTable + " (job TEXT NOT NULL, tbl INTEGER NOT NULL, name TEXT NOT NULL, low INTEGER, hig INTEGER, identity TEXT NOT NULL, setup TEXT NOT NULL DEFAULT '', PRIMARY KEY (job, tbl))",
		"CREATE TABLE IF NOT EXISTS " + RouteTable + " (tbl TEXT NOT NULL PRIMARY KEY, job TEXT NOT NULL, epoch INTEGER NOT NULL, route TEXT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS " + TargetTable + " (job TEXT NOT NULL, tbl INTEGER NOT NULL, shard INTEGER NOT NULL, place TEXT NOT NULL, identity TEXT NOT NULL, beat INTEGER NOT NULL, PRIMARY KEY (job, tbl, shard))",
		m.fenceDefinition(FenceTable), m.logDefinition(log),
	}
}

func (m sqliteCatalog) ShardTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + OwnerTable + " (name TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, job TEXT NOT NULL, owner TEXT NOT NULL, beat INTEGER NOT NULL DEFAULT 0)",
		m.fenceDefinition(ShardFenceTable), m.logDefinition(log),
	}
}

func (sqliteCatalog) fenceDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + name + " (job TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, pass INTEGER NOT NULL DEFAULT 0)"
}

// logDefinition uses AUTOINCREMENT, so that the number of a deleted entry is not given
// again.
func (sqliteCatalog) logDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + name + " (seq INTEGER PRIMARY KEY AUTOINCREMENT, tbl INTEGER NOT NULL, id INTEGER NOT NULL)"
}

func (m sqliteCatalog) MapDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.Quote(name) + " (tbl INTEGER NOT NULL, old INTEGER NOT NULL, new INTEGER NOT NULL, PRIMARY KEY (tbl, old), UNIQUE (tbl, new)) WITHOUT ROWID"
}

// Counter reads sqlite_sequence, which exists once there is a table with AUTOINCREMENT.
func (m sqliteCatalog) Counter(ctx context.Context, s *Session, name string) (int64, error) {
	there, err := m.Exists(ctx, s, "sqlite_sequence")
	if err != nil || !there {
		return 0, err
	}
	return s.Number(ctx, "SELECT seq FROM sqlite_sequence WHERE name = ? COLLATE NOCASE", name)
}

func (sqliteCatalog) SetCounter(ctx context.Context, s *Session, name string, id int64) error {
	return s.Exec(ctx, "UPDATE sqlite_sequence SET seq = ? WHERE name = ? COLLATE NOCASE", id, name)
}

func (m sqliteCatalog) Describe(ctx context.Context, s *Session, name string) (sh Table, err error) {
	err = s.ReadTx(ctx, func() error {
		sh, err = m.describeOne(ctx, s, name)
		return err
	})
	return sh, err
}

func (m sqliteCatalog) describeOne(ctx context.Context, s *Session, name string) (Table, error) {
	sh := Table{Name: name}
	err := s.QueryRowContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name).Scan(&sh.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return sh, fmt.Errorf("table %s: %w", name, ErrNoTable)
	}
	if err != nil {
		return sh, err
	}
	if err := m.readColumns(ctx, s, &sh); err != nil {
		return sh, err
	}
	if err := m.readUniques(ctx, s, &sh); err != nil {
		return sh, err
	}
	if err := m.readForeignKeys(ctx, s, &sh); err != nil {
		return sh, err
	}
	sh.Triggers, err = s.List(ctx, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE", name)
	return sh, err
}

func (sqliteCapture) triggers(ctx context.Context, s *Session, prefix string) ([]string, error) {
	return s.List(ctx, "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, length(?1)) = ?1 COLLATE NOCASE", prefix)
}

func (sqliteCatalog) readColumns(ctx context.Context, s *Session, sh *Table) error {
	var primary []string
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var c Column
		var notNull, pk, hidden int
		if err := rows.Scan(&c.Name, &c.Type, &notNull, &pk, &hidden); err != nil {
			return err
		}
		if pk > 0 {
			primary = append(primary, c.Name)
		}
		switch hidden {
		case 2, 3: // VIRTUAL and STORED
			sh.Generated = append(sh.Generated, c.Name)
		case 0:
			c.kind, c.Nullable = Literal, notNull == 0
			sh.Columns = append(sh.Columns, c)
		}
		return nil
	}, `SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid`, sh.Name)
	if err != nil {
		return err
	}
	if err := sh.setKey(primary); err != nil {
		return err
	}
	indexed, err := s.Number(ctx, "SELECT COUNT(*) FROM pragma_index_list(?) WHERE origin = 'pk'", sh.Name)
	if err == nil && indexed > 0 {
		err = fmt.Errorf("%w: table %s: its key is no rowid, so that it may hold values that are not integers; declare it INTEGER PRIMARY KEY", ErrUnsupported, sh.Name)
	}
	return err
}

func (sqliteCatalog) readUniques(ctx context.Context, s *Session, sh *Table) error {
	last := ""
	return s.Each(ctx, func(rows *sql.Rows) error {
		var index string
		var column sql.NullString
		if err := rows.Scan(&index, &column); err != nil {
			return err
		}
		if !column.Valid {
			return fmt.Errorf("%w: table %s: index %s is on an expression: rows that an INSERT OR REPLACE deletes because of it would not be noted", ErrUnsupported, sh.Name, index)
		}
		if index == last {
			u := &sh.Uniques[len(sh.Uniques)-1]
			*u = append(*u, column.String)
			return nil
		}
		sh.Uniques, last = append(sh.Uniques, []string{column.String}), index
		return nil
	}, `SELECT i.name, x.name FROM pragma_index_list(?) i JOIN pragma_index_xinfo(i.name) x WHERE i."unique" AND i.origin <> 'pk' AND x.key ORDER BY i.name, x.seqno`, sh.Name)
}

func (sqliteCatalog) readForeignKeys(ctx context.Context, s *Session, sh *Table) error {
	return s.Each(ctx, func(rows *sql.Rows) error {
		// In SQLite, actions of foreign keys run the child's triggers, so that only foreign keys
		// to tables outside of the job matter.
		var k keyColumn
		if err := rows.Scan(&k.child, &k.parent, &k.name, &k.column, &k.refers, &k.onDelete, &k.onUpdate); err != nil {
			return err
		}
		sh.addKey(k)
		return nil
	}, `SELECT s.name, f."table", f.id, f."from", COALESCE(f."to", ''), f.on_delete, f.on_update FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f`+
		` WHERE s.type = 'table' AND (s.name = ?1 COLLATE NOCASE OR f."table" = ?1 COLLATE NOCASE) ORDER BY s.name, f.id, f.seq`, sh.Name)
}

// DropKeys removes all foreign keys from the table's text, which is the only place where
// SQLite keeps them: https://sqlite.org/lang_altertable.html#otheralter.
func (m sqliteCatalog) DropKeys(ctx context.Context, s *Session, table string, _ []ForeignKey) error {
	return s.Tx(ctx, func() error {
		texts, err := s.List(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", table)
		if err != nil {
			return err
		}
		text := strings.Join(texts, "")
		if m.saysMore(text) {
			return fmt.Errorf("%w: a literal or comment of its definition contains SQL keywords; drop the table when rows that it refers to have to be deleted", ErrUnsupported)
		}
		head, body, _ := strings.Cut(text, "(")
		version, err := s.Number(ctx, "PRAGMA schema_version")
		if err != nil {
			return err
		}
		if err := s.Exec(ctx, "PRAGMA writable_schema = 1"); err != nil {
			return err
		}
		if err := s.Exec(ctx, "UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ? COLLATE NOCASE", head+"("+sqliteReferences.ReplaceAllString(body, ""), table); err != nil {
			return err
		}
		if err := s.ExecAll(ctx, []string{fmt.Sprintf("PRAGMA schema_version = %d", version+1), "PRAGMA writable_schema = 0"}); err != nil {
			return err
		}
		return m.hasNoKeys(ctx, s, table)
	})
}

// hasNoKeys checks that the database finds no foreign key in the table's text.
func (sqliteCatalog) hasNoKeys(ctx context.Context, s *Session, table string) error {
	left, err := s.Number(ctx, "SELECT COUNT(*) FROM pragma_foreign_key_list(?)", table)
	if err == nil && left > 0 {
		err = fmt.Errorf("%w: cannot read its definition; drop the table when rows that it refers to have to be deleted", ErrUnsupported)
	}
	return err
}

// saysMore reports whether a literal or a comment contains what looks like a foreign key or
// a counter.
func (sqliteCatalog) saysMore(text string) bool {
	return slices.ContainsFunc(sqliteApart.FindAllString(text, -1), func(apart string) bool {
		upper := strings.ToUpper(apart)
		return strings.Contains(upper, "REFERENCES") || strings.Contains(upper, "AUTOINCREMENT")
	})
}

const sqliteName = `(?:"(?:[^"]|"")*"|` + "`[^`]*`" + `|\[[^\]]*\]|\w+)`

var (
	sqliteApart      = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'`)
	sqliteReferences = regexp.MustCompile(`(?is)(,\s*(?:CONSTRAINT\s+` + sqliteName + `\s+)?FOREIGN\s+KEY\s*\([^)]*\)\s*|\s(?:CONSTRAINT\s+` + sqliteName + `\s+)?)REFERENCES\s+` + sqliteName +
		`(?:\s*\([^)]*\))?(?:\s+ON\s+(?:DELETE|UPDATE)\s+(?:SET\s+NULL|SET\s+DEFAULT|CASCADE|RESTRICT|NO\s+ACTION)|\s+MATCH\s+\w+|\s+(?:NOT\s+)?DEFERRABLE(?:\s+INITIALLY\s+\w+)?)*`)
	sqliteAutoincrement = regexp.MustCompile(`(?i)\sAUTOINCREMENT\b`)
	sqliteIndex         = regexp.MustCompile(`(?is)^CREATE\s+(UNIQUE\s+)?INDEX\s+` + sqliteName + `\s+ON\s+` + sqliteName + `\s*(\(.*)$`)
)

// TargetDefinition is the table's text under another name, without AUTOINCREMENT and
// without foreign keys, as the parents may be on other shards.
func (m sqliteCatalog) TargetDefinition(ctx context.Context, s *Session, of Table, name string) ([]string, error) {
	texts, err := s.List(ctx, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name = ? COLLATE NOCASE AND type IN ('table', 'index') ORDER BY type DESC, name", of.Name)
	if err != nil {
		return nil, err
	}
	if m.saysMore(texts[0]) {
		return nil, fmt.Errorf("%w: table %s: a literal or comment of its definition contains SQL keywords; create the tables of the shards by hand", ErrUnsupported, of.Name)
	}
	_, body, _ := strings.Cut(texts[0], "(")
	body = sqliteAutoincrement.ReplaceAllString(sqliteReferences.ReplaceAllString(body, ""), "")
	list := []string{"CREATE TABLE " + m.Quote(name) + " (" + body}
	for i, text := range texts[1:] {
		part := sqliteIndex.FindStringSubmatch(text)
		if part == nil {
			return nil, fmt.Errorf("%w: table %s: cannot read the definition of an index; create the tables of the shards by hand", ErrUnsupported, of.Name)
		}
		list = append(list, fmt.Sprintf("CREATE %sINDEX %s ON %s %s", part[1], m.Quote(fmt.Sprintf("%s_i%d", name, i)), m.Quote(name), part[2]))
	}
	return list, nil
}

// Capture also notes, before each insert and update, the rows that have the new row's
// unique values: OR REPLACE deletes them without running their triggers.
func (m sqliteCapture) Capture(c Capture) []Trigger {
	insert := func(row string) string {
		return fmt.Sprintf("INSERT INTO %s (tbl, id) VALUES (%d, %s.%s)", m.Quote(c.Log), c.Number, row, m.Quote(c.Key))
	}
	list := []Trigger{
		m.trigger(c, "ins", "AFTER INSERT", "", insert("NEW")),
		m.trigger(c, "upd", "AFTER UPDATE", "", insert("NEW")),
		m.trigger(c, "mov", "AFTER UPDATE", fmt.Sprintf("WHEN OLD.%s IS NOT NEW.%[1]s", m.Quote(c.Key)), insert("OLD")),
		m.trigger(c, "del", "AFTER DELETE", "", insert("OLD")),
	}
	for i, d := range c.Below {
		if d.Routed { // foreign keys run the triggers of the rows that they change
			list = append(list, m.captureRouted(c, d, strconv.Itoa(i))...)
		}
	}
	if len(c.Uniques) == 0 {
		return list
	}
	body := strings.Join(m.replaced(c), "; ")
	return append(list, m.trigger(c, "repins", "BEFORE INSERT", "", body), m.trigger(c, "repupd", "BEFORE UPDATE", "", body))
}

// captureRouted notes the rows that lie in the same shard as the row that changes. It runs
// for an INSERT, too, which may be an OR REPLACE.
func (m sqliteCapture) captureRouted(c Capture, d Dependent, number string) []Trigger {
	below := func(row string) func(string) string {
		return func(refers string) string { return fmt.Sprintf(row, m.Quote(refers)) }
	}
	changed := make([]string, len(d.Watch))
	for i, column := range d.Watch {
		changed[i] = fmt.Sprintf("OLD.%s IS NOT NEW.%[1]s", m.Quote(column))
	}
	return []Trigger{
		m.trigger(c, "vins"+number, "AFTER INSERT", "", notedBelow(m, c.Log, d, below("= NEW.%s"))),
		m.trigger(c, "vupd"+number, "AFTER UPDATE", "WHEN "+strings.Join(changed, " OR "), notedBelow(m, c.Log, d, below("IN (OLD.%s, NEW.%[1]s)"))),
		m.trigger(c, "vdel"+number, "AFTER DELETE", "", notedBelow(m, c.Log, d, below("= OLD.%s"))),
	}
}

// replaced returns statements that note the rows with the new row's unique values, and the
// rows that depend on those.
func (m sqliteCapture) replaced(c Capture) []string {
	var all []string
	for _, u := range c.Uniques {
		equal := make([]string, len(u))
		for j, name := range u {
			equal[j] = fmt.Sprintf("%s = NEW.%[1]s", m.Quote(name))
		}
		rows := fmt.Sprintf("%s FROM %s WHERE %s", m.Quote(c.Key), m.Quote(c.Table), strings.Join(equal, " AND "))
		all = append(all, fmt.Sprintf("INSERT INTO %s (tbl, id) SELECT %d, %s", m.Quote(c.Log), c.Number, rows))
		for _, d := range c.Below {
			if d.Routed {
				all = append(all, notedBelow(m, c.Log, d, func(string) string { return "IN (SELECT " + rows + ")" }))
			}
		}
	}
	return all
}

func (m sqliteCapture) trigger(c Capture, event, when, condition, body string) Trigger {
	name := c.TriggerName(event)
	text := "CREATE TRIGGER " + m.Quote(name) + " " + when + " ON " + m.Quote(c.Table) + " FOR EACH ROW " + condition + " BEGIN " + body + "; END"
	return Trigger{name: name, table: c.Table, body: body, Create: text}
}

func (m sqliteCapture) Barrier(c Capture) []Trigger {
	const closed = "WHEN (SELECT MAX(pass) FROM " + FenceTable + ") IS NOT 1"
	const refuse = "SELECT RAISE(ABORT, 'shardid: this table moved to shards')"
	return []Trigger{
		m.trigger(c, "noins", "BEFORE INSERT", closed, refuse),
		m.trigger(c, "noupd", "BEFORE UPDATE", closed, refuse),
		m.trigger(c, "nodel", "BEFORE DELETE", closed, refuse),
	}
}

// Unclosable returns nothing: names of constraints do not change with the table's.
func (sqliteCatalog) Unclosable(context.Context, *Session, string) ([]string, error) { return nil, nil }

// KeyWatch is not used: a foreign key runs the triggers of the rows that it changes.
func (sqliteCapture) KeyWatch(KeyWatch) Trigger { panic("bug: no table of SQLite is watched") }

func (sqliteRecognition) mayShow(context.Context, *Session, string) error { return nil }

// hasTrigger compares the text, which a rename of the table changes.
func (sqliteCapture) hasTrigger(ctx context.Context, s *Session, t Trigger) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND name = ? AND sql = ?", t.name, t.Create)
	return n == 1, err
}

// limitingWaits needs no limit: SQLite has no queue of waiting sessions.
func (sqliteCapture) limitingWaits(_ context.Context, _ *Session, f func() error) error { return f() }

// withoutWriters needs no lock: SQLite prepares a statement again when the file's schema has
// changed.
func (sqliteCapture) withoutWriters(_ context.Context, _ *Session, _ string, f func() error) error {
	return f()
}
