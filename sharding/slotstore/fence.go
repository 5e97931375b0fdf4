// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// fence guards one table of a shard.
type fence struct {
	name   string // the name of the map
	shard  int
	table  string // the physical table
	key    string
	rule   sharding.Rule
	server dialect.Server
}

// lookup returns the statement that reads whether the shard accepts writes of the row's slot; row
// is NEW or OLD. The writer holds the lock until its transaction ends, so fencing waits for it.
func (f fence) lookup(row, into, lock string) string {
	cast := ""
	if f.server.Name() == "postgres" {
		cast = "::bigint"
	}
	d := sharding.Describe(f.rule)
	slot, _ := d.SQL(row+`."`+f.key+`"`+cast, d.Slots) // New refuses rules that SQL cannot express
	return fmt.Sprintf(`SELECT "fenced"%s FROM "shard_fence" WHERE "name" = '%s' AND "shard" = %d AND "slot" = %s%s`, into, f.name, f.shard, slot, lock)
}

// events are the events that change rows, with the rows that they concern.
var events = []struct {
	name string
	rows []string
}{
	{"INSERT", []string{"NEW"}},
	{"UPDATE", []string{"OLD", "NEW"}},
	{"DELETE", []string{"OLD"}},
}

// maxTrigger is the length of a trigger's name that all databases accept.
const maxTrigger = 63

// trigger returns the trigger's name. It contains the table's name, because some databases have one
// namespace for all tables.
func (f fence) trigger(event string) string {
	return "shardid_fence_" + strings.ToLower(event[:3]) + "_" + f.table
}

// sql returns the statements that create the trigger of an event. It fires after the row was
// written, when the number that the database has assigned is known. A slot without a row in
// shard_fence is refused.
func (f fence) sql(event string, rows []string) []string {
	switch f.server.Name() {
	case "mysql":
		return []string{f.mysql(event, rows)}
	case "postgres":
		return f.postgres(event, rows)
	}
	var conditions []string
	for _, row := range rows {
		conditions = append(conditions, "COALESCE(("+f.lookup(row, "", "")+"), 1) <> 0")
	}
	return []string{fmt.Sprintf(`CREATE TRIGGER IF NOT EXISTS "%s" AFTER %s ON "%s" WHEN %s BEGIN SELECT RAISE(ABORT, '%s'); END`,
		f.trigger(event), event, f.table, strings.Join(conditions, " OR "), sharding.FenceMessage)}
}

func (f fence) mysql(event string, rows []string) string {
	var body strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&body, "SET refused = 1; %s; IF refused <> 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '%s'; END IF; ",
			f.lookup(row, " INTO refused", " LOCK IN SHARE MODE"), sharding.FenceMessage)
	}
	return fmt.Sprintf(`CREATE TRIGGER "%s" AFTER %s ON "%s" FOR EACH ROW BEGIN DECLARE refused INT DEFAULT 1; %sEND`,
		f.trigger(event), event, f.table, body.String())
}

// postgres makes triggers that fire in every session, also if session_replication_role is replica there: a [Passage] opens the
// fence, and so nobody needs to pass it by that setting. The function has the rights of its owner, as triggers of MySQL and
// MariaDB have them: writers need none on shard_fence. In the function's search_path temporary tables come last, so that no writer puts one in the place of shard_fence.
func (f fence) postgres(event string, rows []string) []string {
	var body strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&body, "%s; IF refused IS DISTINCT FROM 0 THEN RAISE EXCEPTION '%s'; END IF; ",
			f.lookup(row, " INTO refused", " FOR SHARE"), sharding.FenceMessage)
	}
	return []string{fmt.Sprintf(`SELECT set_config('lock_timeout', '%[5]s', true); SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true); `+
		`CREATE OR REPLACE FUNCTION "%[1]s"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $shardid$ DECLARE refused integer; BEGIN %[2]sRETURN NULL; END $shardid$; `+
		`CREATE TRIGGER "%[1]s" AFTER %[3]s ON "%[4]s" FOR EACH ROW EXECUTE PROCEDURE "%[1]s"(); ALTER TABLE "%[4]s" ENABLE ALWAYS TRIGGER "%[1]s"`, f.trigger(event), body.String(), event, f.table, lockWait)}
}

// there reports whether the trigger of an event exists.
func (f fence) there(ctx context.Context, b base, event string) (bool, error) {
	query := `SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name = ? AND event_object_table = ?`
	switch f.server.Name() {
	case "sqlite":
		query = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger' AND name = ? AND tbl_name = ?`
	case "postgres":
		query = `SELECT COUNT(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname = CAST(? AS text) AND c.oid = to_regclass(quote_ident(CAST(? AS text)))`
	}
	var n int
	err := b.row(ctx, query, f.trigger(event), f.table).Scan(&n)
	return n > 0, err
}

// install creates the missing triggers of the table. The database waits for the transactions that
// have already written to the table.
func (f fence) install(ctx context.Context, b base) error {
	var statements []string
	for _, event := range events {
		if name := f.trigger(event.name); len(name) > maxTrigger {
			return fmt.Errorf("the trigger %s needs a shorter name: rename the table to at most %d characters", name, maxTrigger-len(name)+len(f.table))
		}
		exists, err := f.there(ctx, b, event.name)
		if err != nil {
			return err
		}
		if !exists {
			statements = append(statements, f.sql(event.name, event.rows)...)
		}
	}
	if len(statements) == 0 {
		return nil
	}
	if err := f.create(ctx, b, statements); err != nil {
		return fmt.Errorf("guard table %s: %w", f.table, err)
	}
	return nil
}

// Statements of others on a table wait behind a session that waits for its lock. So creating triggers waits for a short time, and then
// lets them go on before it tries again.
const (
	lockWait     = time.Second
	lockPatience = time.Minute // after it the error is returned
)

// create creates the triggers when no transaction uses the table.
func (f fence) create(ctx context.Context, b base, statements []string) error {
	if b.server.Name() == "sqlite" {
		return b.execAll(ctx, b.db, statements)
	}
	for giveUp := time.Now().Add(lockPatience); ; {
		err := f.tryCreate(ctx, b, statements)
		if !dialect.Contended(err) && !dialect.LockTimedOut(err) {
			return err
		}
		if time.Now().After(giveUp) {
			return fmt.Errorf("%w; transactions that use the table have been open for %v: end long ones, and try again", err, lockPatience)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(lockWait):
		}
	}
}

// tryCreate creates the triggers, on MySQL and MariaDB under a lock of the table. Without the lock, statements that were
// prepared before fail once on MariaDB, because it does not find shard_fence (1146).
func (f fence) tryCreate(ctx context.Context, b base, statements []string) error {
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it: the pool gets neither the lock nor the setting
		_ = conn.Close()
	}()
	if b.server.Name() == "mysql" {
		statements = append([]string{fmt.Sprintf("SET SESSION lock_wait_timeout = %.0f", lockWait.Seconds()), `LOCK TABLES "` + f.table + `" WRITE`}, statements...)
	}
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, dialect.Text(b.server, statement)); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns "1, 2, 3".
func numbers(slots []Slot) string {
	var b strings.Builder
	for i, slot := range slots {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(int(slot.Slot)))
	}
	return b.String()
}
