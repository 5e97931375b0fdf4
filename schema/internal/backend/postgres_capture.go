// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// A trigger and its function have the same name. The function runs with the rights of its
// owner, so that writers need no right on the log, and with the owner's search path. The
// triggers are ENABLE ALWAYS, so that they run for replication sessions, too.

func (m postgresCapture) Capture(c Capture) []Trigger {
	insert := func(row string) string {
		return fmt.Sprintf("INSERT INTO %s (tbl, id) VALUES (%d, %s.%s);", m.Quote(c.Log), c.Number, row, m.Quote(c.Key))
	}
	moved := fmt.Sprintf("IF OLD.%s <> NEW.%[1]s THEN %s END IF;", m.Quote(c.Key), insert("OLD"))
	rerouted, gone := m.captureBelow(c)
	return []Trigger{
		m.trigger(c.TriggerName("ins"), c.Table, "AFTER INSERT", "ROW", insert("NEW")+" RETURN NULL;"),
		m.trigger(c.TriggerName("upd"), c.Table, "AFTER UPDATE", "ROW", insert("NEW")+" "+moved+rerouted+" RETURN NULL;"),
		m.trigger(c.TriggerName("del"), c.Table, "AFTER DELETE", "ROW", insert("OLD")+gone+" RETURN NULL;"),
		m.trigger(c.TriggerName("trunc"), c.Table, "BEFORE TRUNCATE", "STATEMENT",
			"RAISE EXCEPTION 'shardid: this table is being migrated: use DELETE, or abort the migration before TRUNCATE';"),
	}
}

// captureBelow notes that the rows that depend on a row which moves or is deleted have to
// be checked: a deferred foreign key lets them stay while another row takes the place of
// their parent. Rows that foreign keys change run their own triggers.
func (m postgresCapture) captureBelow(c Capture) (rerouted, gone string) {
	var changed []string
	for _, d := range c.Below {
		if !d.Routed {
			continue
		}
		for _, column := range d.Watch {
			if one := fmt.Sprintf("OLD.%s IS DISTINCT FROM NEW.%[1]s", m.Quote(column)); !slices.Contains(changed, one) {
				changed = append(changed, one)
			}
		}
	}
	if len(changed) == 0 {
		return "", ""
	}
	gone = fmt.Sprintf(" INSERT INTO %s (tbl, id) VALUES (%d, OLD.%s);", m.Quote(c.Log), Below(c.Number), m.Quote(c.Key))
	return " IF " + strings.Join(changed, " OR ") + " THEN" + gone + " END IF;", gone
}

func (m postgresCapture) Barrier(c Capture) []Trigger {
	const refuse = "RAISE EXCEPTION 'shardid: this table moved to shards';"
	pass := func(row string) string {
		return "IF current_setting('shardid.pass', true) = '1' THEN RETURN " + row + "; END IF; " + refuse
	}
	return []Trigger{
		m.trigger(c.TriggerName("noins"), c.Table, "BEFORE INSERT", "ROW", pass("NEW")),
		m.trigger(c.TriggerName("noupd"), c.Table, "BEFORE UPDATE", "ROW", pass("NEW")),
		m.trigger(c.TriggerName("nodel"), c.Table, "BEFORE DELETE", "ROW", pass("OLD")),
		m.trigger(c.TriggerName("notrunc"), c.Table, "BEFORE TRUNCATE", "STATEMENT", refuse),
	}
}

func (m postgresCapture) trigger(name, table, when, each, body string) Trigger {
	body = "BEGIN " + body + " END"
	create := fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS '%s'; "+
		"CREATE TRIGGER %[1]s %[3]s ON %[4]s FOR EACH %[5]s EXECUTE FUNCTION %[1]s(); ALTER TABLE %[4]s ENABLE ALWAYS TRIGGER %[1]s",
		m.Quote(name), strings.ReplaceAll(body, "'", "''"), when, m.Quote(table), each)
	return Trigger{name: name, table: table, body: body, Create: create}
}

// KeyWatch is not used: a foreign key runs the triggers of the rows that it changes.
func (postgresCapture) KeyWatch(KeyWatch) Trigger { panic("bug: no table of PostgreSQL is watched") }

// dropTrigger drops the function and with it the trigger.
func (m postgresCapture) dropTrigger(name string) string {
	return "DROP FUNCTION IF EXISTS " + m.Quote(name) + "() CASCADE"
}

// postgresTriggers are the ENABLE ALWAYS triggers on tables of the schema.
const postgresTriggers = " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid" +
	" WHERE NOT t.tgisinternal AND n.nspname = current_schema() AND t.tgenabled = 'A'"

// triggers lists the triggers with the prefix; their functions have the same names.
func (postgresCapture) triggers(ctx context.Context, s *Session, prefix string) ([]string, error) {
	return s.List(ctx, "SELECT t.tgname"+postgresTriggers+" AND starts_with(t.tgname, ?)", prefix)
}

func (postgresRecognition) mayShow(context.Context, *Session, string) error { return nil }

func (postgresCapture) hasTrigger(ctx context.Context, s *Session, t Trigger) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*)"+postgresTriggers+" AND t.tgname = ? AND c.relname = ? AND p.prosrc = ?", t.name, t.table, t.body)
	return n == 1, err
}

// withoutWriters creates all triggers in one transaction, which waits for concurrent writers.
func (m postgresCapture) withoutWriters(ctx context.Context, s *Session, table string, f func() error) error {
	return m.limitingWaits(ctx, s, func() error {
		return s.Tx(ctx, func() error {
			if err := s.Exec(ctx, "LOCK TABLE "+m.Quote(table)+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
			return f()
		})
	})
}

// limitingWaits limits the wait for a lock: new users of a table wait behind a session that waits
// for its lock.
func (postgresCapture) limitingWaits(ctx context.Context, s *Session, f func() error) error {
	if err := s.Exec(ctx, "SET lock_timeout = '1s'"); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err // the connection is discarded, and the setting with it
	}
	return s.Exec(ctx, "SET lock_timeout = "+postgresSettings["lock_timeout"])
}

func (postgresCapture) PassBarrier(ctx context.Context, s *Session, pass bool) error {
	value := ""
	if pass {
		value = "1"
	}
	return s.Exec(ctx, "SELECT set_config('shardid.pass', '"+value+"', false)")
}

// IgnoreKeys sets session_replication_role to replica. PostgreSQL checks foreign keys by
// triggers, which do not run in such a session.
func (postgresCapture) IgnoreKeys(ctx context.Context, s *Session, ignore bool) error {
	role := postgresSettings["session_replication_role"]
	if ignore {
		role = "replica"
	}
	err := s.Exec(ctx, "SELECT set_config('session_replication_role', '"+role+"', false)")
	if dialect.FaultOf(err) == dialect.NoRight {
		return fmt.Errorf("%w: the user may not switch foreign keys off, which would change other rows when rows are written; GRANT SET ON PARAMETER session_replication_role TO this user", ErrNotReady)
	}
	return err
}
