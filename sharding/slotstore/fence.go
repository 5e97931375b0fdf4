package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// slotSQL is the slot of a column's value as an expression, right for negative
// numbers too. It reports false for rules that SQL cannot say.
func slotSQL(rule sharding.Rule, column, cast string) (string, bool) {
	d := sharding.Describe(rule)
	value := column + cast
	switch d.Kind {
	case sharding.KindLow:
		return fmt.Sprintf("(%s & %d)", value, d.Slots-1), true
	case sharding.KindBits:
		return fmt.Sprintf("((%s >> %d) & %d)", value, d.Shift, d.Slots-1), true
	case sharding.KindMod:
		return fmt.Sprintf("((%s %% %d + %[2]d) %% %[2]d)", value, d.Slots), true
	case sharding.KindOffsetStep:
		return fmt.Sprintf("((%s %% %d + %d) %% %[2]d)", value, d.Step, 2*d.Step-d.Offset), true
	}
	return "", false
}

// fence is what guards one table of a shard.
type fence struct {
	name   string // of the map
	shard  int
	table  string // physical
	key    string
	rule   sharding.Rule
	server dialect.Server
}

// lookup reads whether the shard takes writes of the row's slot; row is NEW or
// OLD. The lock, which is the writer's until its transaction ends, makes the
// fencing wait.
func (f fence) lookup(row, into, lock string) string {
	cast := ""
	if f.server.Name() == "postgres" {
		cast = "::bigint"
	}
	slot, _ := slotSQL(f.rule, row+`."`+f.key+`"`, cast)
	return fmt.Sprintf(`SELECT "fenced"%s FROM "shard_fence" WHERE "name" = '%s' AND "shard" = %d AND "slot" = %s%s`, into, f.name, f.shard, slot, lock)
}

// events are those that change rows, with the rows that they concern.
var events = []struct {
	name string
	rows []string
}{
	{"INSERT", []string{"NEW"}},
	{"UPDATE", []string{"OLD", "NEW"}},
	{"DELETE", []string{"OLD"}},
}

// maxTrigger is the longest name of a trigger that all databases take.
const maxTrigger = 63

// trigger is its name: some databases have one namespace for all tables.
func (f fence) trigger(event string) string {
	return "shardid_fence_" + strings.ToLower(event[:3]) + "_" + f.table
}

// sql is what creates the trigger of an event. It fires after the row was
// written, when a number that the database gives the row is known. A slot
// without a row in shard_fence is refused.
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

func (f fence) postgres(event string, rows []string) []string {
	var body strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&body, "%s; IF refused IS DISTINCT FROM 0 THEN RAISE EXCEPTION '%s'; END IF; ",
			f.lookup(row, " INTO refused", " FOR SHARE"), sharding.FenceMessage)
	}
	return []string{
		fmt.Sprintf(`CREATE OR REPLACE FUNCTION "%s"() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $shardid$ DECLARE refused integer; BEGIN %sRETURN NULL; END $shardid$`, f.trigger(event), body.String()),
		fmt.Sprintf(`CREATE TRIGGER "%s" AFTER %s ON "%s" FOR EACH ROW EXECUTE PROCEDURE "%[1]s"()`, f.trigger(event), event, f.table),
	}
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

// install puts the triggers on the table that are missing. The database waits
// for the transactions that have written to the table already.
func (f fence) install(ctx context.Context, b base) error {
	for _, event := range events {
		if name := f.trigger(event.name); len(name) > maxTrigger {
			return fmt.Errorf("the trigger %s needs a shorter name: rename the table to at most %d characters", name, maxTrigger-len(name)+len(f.table))
		}
		exists, err := f.there(ctx, b, event.name)
		if err != nil {
			return err
		}
		if exists {
			continue
		}
		for _, statement := range f.sql(event.name, event.rows) {
			if err := b.exec(ctx, statement); err != nil {
				return fmt.Errorf("guard table %s: %w", f.table, err)
			}
		}
	}
	return nil
}

// shard returns the database of a shard.
func (s *Store) shard(ctx context.Context, n int) (base, error) {
	name := s.cfg.Shards[s.firstTable()][n].DB
	b, err := open(ctx, s.cfg.Router.DB(name))
	if err != nil {
		return base{}, fmt.Errorf("database %q of shard %d: %w", name, n, err)
	}
	return b, nil
}

// guard makes a shard refuse the slots that are not its own. Rows come before
// the triggers that read them; rows that are there know better than v, which may
// be old.
func (s *Store) guard(ctx context.Context, n int, v View) error {
	b, err := s.shard(ctx, n)
	if err != nil {
		return err
	}
	if err := b.exec(ctx, fmt.Sprintf(fenceDDL, ending(b.server))); err != nil {
		return err
	}
	err = b.do(ctx, func(t tx) error {
		for _, slot := range v.Slots {
			if err := t.exec(ctx, `INSERT INTO "shard_fence" ("name", "shard", "slot", "fenced", "version") VALUES (?, ?, ?, ?, ?)`+upsert(t.server, `"name", "shard", "slot"`),
				s.cfg.Name, n, slot.Slot, fencedOn(slot, n), slot.Version); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range s.tables {
		f := fence{s.cfg.Name, n, s.targets(t)[n].Table, t.Key, t.Rule, b.server}
		if err := f.install(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// fencedOn is 0 on the shard that takes writes of the slot, and 1 on all others.
func fencedOn(slot Slot, shard int) int {
	if slot.Shard == shard && slot.State != Fenced {
		return 0
	}
	return 1
}

// align makes both shards of the slots do as the map says. A fence remembers the
// version that set it, so that a latecomer with an older view changes nothing.
// What closes comes before what opens.
func (s *Store) align(ctx context.Context, slots []Slot) error {
	for _, fenced := range []int{1, 0} {
		for _, slot := range slots {
			for _, shard := range []int{slot.Shard, slot.Other} {
				if shard == nowhere || fencedOn(slot, shard) != fenced {
					continue
				}
				if err := s.setFence(ctx, shard, slot, fenced); err != nil {
					return fmt.Errorf("slot %d on shard %d: %w", slot.Slot, shard, err)
				}
			}
		}
	}
	return nil
}

const setFence = `UPDATE "shard_fence" SET "fenced" = ?, "version" = ? WHERE "name" = ? AND "shard" = ? AND "slot" = ? AND "version" <= ?`

func (s *Store) setFence(ctx context.Context, shard int, slot Slot, fenced int) error {
	b, err := s.shard(ctx, shard)
	if err != nil {
		return err
	}
	return b.do(ctx, func(t tx) error {
		if err := t.exec(ctx, setFence, fenced, slot.Version, s.cfg.Name, shard, slot.Slot, slot.Version); err != nil {
			return err
		}
		got, version, err := s.fence(ctx, t, shard, slot.Slot)
		if err == nil && (version != slot.Version || got != fenced) {
			err = fmt.Errorf("%w: the slot has changed since; load the map", sharding.ErrStaleMap)
		}
		return err
	})
}

func (s *Store) fence(ctx context.Context, t tx, shard int, slot sharding.Slot) (fenced int, version int64, err error) {
	err = t.row(ctx, `SELECT "fenced", "version" FROM "shard_fence" WHERE "name" = ? AND "shard" = ? AND "slot" = ?`, s.cfg.Name, shard, slot).Scan(&fenced, &version)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("shard %d has no row in shard_fence for slot %d; call Copy first", shard, slot)
	}
	return fenced, version, err
}

// Bypass runs f in a transaction on the database of the slot's other shard, in
// which that shard takes writes of the slot: copies while it moves there, and
// deletions after it has moved away. Nobody else's writes pass. The transaction
// is committed when f returns nil, and rolled back otherwise; f is called again
// when another transaction was in the way.
func (s *Store) Bypass(ctx context.Context, slot sharding.Slot, f func(*sql.Tx) error) error {
	err := s.bypass(ctx, slot, f)
	if err != nil {
		return fmt.Errorf("slotstore: Bypass: %w", err)
	}
	return nil
}

func (s *Store) bypass(ctx context.Context, number sharding.Slot, f func(*sql.Tx) error) error {
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	if number < 0 || int(number) >= len(v.Slots) {
		return fmt.Errorf("slot %d: %w", number, sharding.ErrNoSlot)
	}
	slot := v.Slots[number]
	if slot.Other == nowhere {
		return fmt.Errorf("%w: slot %d is %s and on no other shard", ErrState, number, slot.State)
	}
	b, err := s.shard(ctx, slot.Other)
	if err != nil {
		return err
	}
	return b.do(ctx, func(t tx) error {
		if err := s.pass(ctx, t, slot, 1, 0); err != nil {
			return err
		}
		if err := f(t.Tx); err != nil {
			return err
		}
		return s.pass(ctx, t, slot, 0, 1)
	})
}

// pass turns the other shard's fence, as long as it is of this version.
func (s *Store) pass(ctx context.Context, t tx, slot Slot, from, to int) error {
	if err := t.exec(ctx, `UPDATE "shard_fence" SET "fenced" = ? WHERE "name" = ? AND "shard" = ? AND "slot" = ? AND "version" = ? AND "fenced" = ?`,
		to, s.cfg.Name, slot.Other, slot.Slot, slot.Version, from); err != nil {
		return err
	}
	got, version, err := s.fence(ctx, t, slot.Other, slot.Slot)
	if err == nil && (version != slot.Version || got != to) {
		err = fmt.Errorf("%w: slot %d has changed since", sharding.ErrStaleMap, slot.Slot)
	}
	return err
}
