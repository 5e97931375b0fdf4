// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// OwnTrigger is a trigger on MariaDB or MySQL that is the user's, not a job's.
type OwnTrigger struct {
	Name, When, Body string   // When is like AFTER INSERT
	Routines         []string // all routines of its database
	Foreign          string   // says why its text cannot be read; "" when it can

	mode, definer string
}

// pinnedMark is set to the connection's id in all sessions of migrations. Triggers with the
// guard do nothing in them. See Barrier for why it is compared with the id.
const (
	pinnedMark = "@shardid_pinned"
	guard      = "shardid: BEGIN IF " + pinnedMark + " <=> CONNECTION_ID() THEN LEAVE shardid; END IF;"
)

// IsGuarded reports whether the trigger does nothing in sessions of a migration, because
// its first statement leaves it.
func (o OwnTrigger) IsGuarded() bool {
	is, want := sqltext.NewScanner(o.Body, sqltext.MySQL), sqltext.NewScanner(guard, sqltext.MySQL)
	for {
		w, more := want.NextCode()
		if !more {
			return true
		}
		if i, ok := is.NextCode(); !ok || !strings.EqualFold(i.Text(o.Body), w.Text(guard)) {
			return false
		}
	}
}

// Guarded returns the statements that add the guard to the trigger.
func (o OwnTrigger) Guarded(table string) string {
	user, host, _ := cutLast(o.definer, "@")
	m := mysqlServer{}
	of, name := m.Quote(table), m.Quote(o.Name)
	return fmt.Sprintf("SET sql_mode = '%s'; LOCK TABLES %s WRITE; DROP TRIGGER %s; ", o.mode, of, name) +
		fmt.Sprintf("CREATE DEFINER = %s@%s TRIGGER %s %s ON %s FOR EACH ROW %s %s;\nEND; UNLOCK TABLES", m.Quote(user), m.Quote(host), name, o.When, of, guard, o.Body)
}

func cutLast(text, by string) (before, after string, found bool) {
	i := strings.LastIndex(text, by)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(by):], true
}

// On is the trigger on another table, with another body. Its definer is the user who
// creates it.
func (o OwnTrigger) On(name, table, body string) Trigger {
	m := mysqlServer{}
	return Trigger{name: name, table: table, body: body, mode: o.mode, Create: "CREATE TRIGGER " + m.Quote(name) + " " + o.When + " ON " + m.Quote(table) + " FOR EACH ROW " + body}
}

// readTriggers reads the names of all triggers, and the bodies of the user's triggers, in
// the order in which they run.
func (m mysqlCatalog) readTriggers(ctx context.Context, s *Session, sh *Table) error {
	hidden := ""
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var o OwnTrigger
		var body, definer sql.NullString
		if err := rows.Scan(&o.Name, &o.When, &body, &o.mode, &definer); err != nil {
			return err
		}
		if !body.Valid {
			hidden = o.Name
		}
		o.Body, o.definer = body.String, definer.String
		sh.Triggers = append(sh.Triggers, o.Name)
		if strings.HasPrefix(o.Name, "shardid_") {
			return nil
		}
		for _, other := range []string{"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "MSSQL", "POSTGRESQL", "DB2", "MAXDB"} {
			if strings.Contains(o.mode, other) {
				o.Foreign = "it was made under the sql_mode " + other
			}
		}
		sh.Own = append(sh.Own, o)
		return nil
	}, "SELECT TRIGGER_NAME, CONCAT(ACTION_TIMING, ' ', EVENT_MANIPULATION), ACTION_STATEMENT, SQL_MODE, DEFINER FROM information_schema.TRIGGERS"+
		" WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = ? ORDER BY ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER", sh.Name)
	if err == nil && hidden != "" {
		err = s.Database.mayShow(ctx, s, hidden)
	}
	if err != nil || len(sh.Own) == 0 {
		return err
	}
	routines, err := s.List(ctx, "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()")
	for i := range sh.Own {
		sh.Own[i].Routines = routines
	}
	return err
}
