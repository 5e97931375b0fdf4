package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// An upsert names a row that may exist by its primary key, and the database looks
// for that row in one table only. Where the primary key does not lead to the shard
// it may lie in another one, under another sharding key, and would come to exist
// twice: so it is looked for there first. Rows whose key was generated just now
// are new.

// proveUpsert refuses an upsert of rows that lie in other shards.
func (s *step) proveUpsert(ctx context.Context) error {
	columns, leads := s.upserted()
	if columns == nil {
		return nil
	}
	known, err := s.knownRows(columns, leads)
	if err != nil || len(known) == 0 {
		return err
	}
	for _, target := range s.table.Map.Targets() {
		own := slices.DeleteFunc(slices.Clone(known), func(r *knownRow) bool { return r.target != target })
		if len(own) == 0 {
			continue
		}
		if err := s.seek(ctx, target, columns, own); err != nil {
			return err
		}
	}
	known = slices.DeleteFunc(known, func(r *knownRow) bool { return r.found })
	if len(known) == 0 {
		return nil
	}
	return s.proveAbsent(ctx, columns, known)
}

// upserted returns the primary key of an upsert that may meet a row of another
// shard, nil for any other statement, and the columns that keep a row from it by
// leading to its shard.
func (s *step) upserted() (primary, leads []string) {
	named, ok := s.onConflict()
	if !ok {
		return nil, nil
	}
	if s.stmt.Schema != nil {
		primary = s.stmt.Schema.PrimaryFieldDBNames
	}
	if len(primary) == 0 {
		primary = named
	}
	leads = slices.DeleteFunc(slices.Concat(named, primary), func(name string) bool { return !s.table.Leads(name) })
	switch {
	case slices.ContainsFunc(leads, func(name string) bool { return strings.EqualFold(name, s.table.Key) }):
		return nil, nil // a row that it meets lies where the new one does
	case !s.routing.mysql && len(named) > 0 && !slices.Equal(named, primary):
		return nil, nil // another unique key, which holds within a table
	}
	return primary, leads
}

// onConflict returns the columns whose conflicts an INSERT settles, none when it
// names none; false when it settles no conflicts.
func (s *step) onConflict() (named []string, ok bool) {
	if s.op != "create" {
		return nil, false
	}
	if !s.bare && (ignores(s.stmt) || replaces(s.stmt)) {
		return nil, true // of every unique key, whatever ON CONFLICT names
	}
	c, ok := s.stmt.Clauses["ON CONFLICT"]
	if !ok {
		return nil, false
	}
	on, ok := c.Expression.(clause.OnConflict)
	if hidden, skips := c.Expression.(skipping); skips {
		on, ok = hidden.on, true
	}
	for _, column := range on.Columns {
		named = append(named, column.Name)
	}
	return named, ok
}

// knownRow is a row of an upsert that may exist.
type knownRow struct {
	number int
	key    []any // its primary key
	text   string
	slot   sharding.Slot
	target sharding.Target
	found  bool // it is in its target
}

// knownRows returns the rows whose primary key was not generated just now, and
// that none of the columns leads to their shard.
func (s *step) knownRows(columns, leads []string) ([]*knownRow, error) {
	values, key, err := s.values()
	if err != nil {
		return nil, err
	}
	at := positions(values, columns)
	if slices.Contains(at, -1) {
		return nil, nil // the database numbers all of them
	}
	fresh, leading := freshRows(s.stmt, columns), positions(values, leads)
	var known []*knownRow
	for i, row := range values.Values {
		if fresh[i] || s.isLed(row, leads, leading) {
			continue
		}
		r := &knownRow{number: i}
		if r.target, err = s.rowTarget(i, row[key]); err != nil {
			return nil, err
		}
		if r.slot, err = s.table.Slot(row[key]); err != nil {
			return nil, s.refuse(err, "")
		}
		if r.read(row, at) {
			known = append(known, r)
		}
	}
	return known, nil
}

// positions returns where an INSERT has columns, -1 for those that it has not.
func positions(values clause.Values, columns []string) []int {
	at := make([]int, len(columns))
	for i, name := range columns {
		at[i] = slices.IndexFunc(values.Columns, func(c clause.Column) bool { return strings.EqualFold(c.Name, name) })
	}
	return at
}

// isLed reports whether one of the columns leads to the row's shard, so that it
// meets no row of another one. An id from before ids carried slots does not.
func (s *step) isLed(row []any, leads []string, at []int) bool {
	for i, name := range leads {
		if at[i] < 0 || !bound(row[at[i]]) {
			continue
		}
		if _, err := s.table.SlotBy(name, row[at[i]]); err == nil {
			return true
		}
	}
	return false
}

// read takes the primary key out of a row; false when the database makes it.
func (r *knownRow) read(row []any, at []int) bool {
	for _, i := range at {
		if row[i] == nil || !bound(row[i]) {
			return false
		}
		r.key = append(r.key, row[i])
	}
	var err error
	r.text, err = tupleText(r.key)
	return err == nil
}

// tupleText is a text that is equal for equal keys.
func tupleText(key []any) (string, error) {
	texts := make([]string, len(key))
	for i, v := range key {
		var err error
		if texts[i], err = keyText(v); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%q", texts), nil
}

// freshRows returns the numbers of the rows of which a generator made a part of
// the primary key.
func freshRows(stmt *gorm.Statement, columns []string) map[int]bool {
	fl := stateOf(stmt)
	if fl == nil {
		return nil
	}
	fresh := map[int]bool{}
	for i := range fl.parts {
		if p := &fl.parts[i]; slices.Contains(columns, p.field.DBName) {
			for _, number := range p.given {
				fresh[number] = true
			}
		}
	}
	return fresh
}

// proveAbsent refuses rows that lie in another shard than their own.
func (s *step) proveAbsent(ctx context.Context, columns []string, rows []*knownRow) error {
	targets, err := s.snapshot.Everywhere(s.table.Name)
	if err != nil {
		return err
	}
	if err := s.limit(len(targets)); err != nil {
		return err
	}
	for _, target := range targets {
		others := slices.DeleteFunc(slices.Clone(rows), func(r *knownRow) bool { return r.target == target })
		if len(others) == 0 {
			continue
		}
		if err := s.seek(ctx, target, columns, others); err != nil {
			return err
		}
	}
	return nil
}

// seek notes which rows are in a target, and refuses those that are there under a
// key of another slot. (One of its own slot in another target is what the move of
// a slot has left behind.)
func (s *step) seek(ctx context.Context, target sharding.Target, columns []string, rows []*knownRow) error {
	set, err := s.look(ctx, target, columns, rows)
	if err != nil {
		return s.inShard(target, err)
	}
	there := map[string]any{}
	for _, row := range set.rows {
		text, err := tupleText(row[:len(columns)])
		if err != nil {
			return err
		}
		there[text] = row[len(columns)]
	}
	for _, r := range rows {
		key, found := there[r.text]
		if !found {
			continue
		}
		r.found = true
		if slot, err := s.table.Slot(key); err != nil || slot != r.slot {
			return s.refuse(sharding.ErrKeyChange, fmt.Sprintf(
				"row %d: the row with this primary key lies in %s, under another %s; delete it there, and create it with the new one", r.number, target, s.table.Key))
		}
	}
	return nil
}

// look reads which of the primary keys are in a target, each with its sharding key.
func (s *step) look(ctx context.Context, target sharding.Target, columns []string, rows []*knownRow) (*resultSet, error) {
	c, err := s.beside(ctx, s.routing.router.DB(target.DB))
	if err != nil {
		return nil, err
	}
	stmt := s.lookup(target, columns, rows)
	begin := time.Now()
	found, err := c.QueryContext(ctx, stmt.SQL.String(), stmt.Vars...)
	var set *resultSet
	if err == nil {
		set, err = readAll(found)
	}
	s.stmt.DB.Logger.Trace(ctx, begin, func() (string, int64) {
		n := int64(-1)
		if set != nil {
			n = int64(len(set.rows))
		}
		return s.stmt.DB.Dialector.Explain(stmt.SQL.String(), stmt.Vars...), n
	}, err)
	return set, err
}

// lookup builds SELECT key, sharding key FROM orders_3 WHERE key IN (…).
func (s *step) lookup(target sharding.Target, columns []string, rows []*knownRow) *gorm.Statement {
	stmt := s.copied(map[string]clause.Clause{})
	stmt.Table, stmt.TableExpr = target.Table, nil
	in := clause.IN{}
	keys := make([]clause.Column, len(columns))
	for i, name := range columns {
		keys[i] = clause.Column{Name: name}
	}
	if in.Column = keys; len(keys) == 1 {
		in.Column = keys[0]
	}
	for _, r := range rows {
		if len(r.key) == 1 {
			in.Values = append(in.Values, r.key[0])
			continue
		}
		in.Values = append(in.Values, r.key)
	}
	_, _ = stmt.WriteString("SELECT ")
	for _, column := range keys {
		stmt.WriteQuoted(column)
		_ = stmt.WriteByte(',')
	}
	stmt.WriteQuoted(clause.Column{Name: s.table.Key})
	_, _ = stmt.WriteString(" FROM ")
	stmt.WriteQuoted(target.Table)
	_, _ = stmt.WriteString(" WHERE ")
	in.Build(stmt)
	return stmt
}

// beside returns what to ask a database a question on before a statement is sent:
// the statement's transaction if that is under way there already, else the
// database itself, so that no transaction begins with a read that may have to be
// repeated once it writes.
func (s *step) beside(ctx context.Context, db *sql.DB) (gorm.ConnPool, error) {
	tx := txOf(s.next)
	if tx == nil {
		return db, nil
	}
	running, err := tx.running(ctx, db)
	if err != nil || running == nil {
		return db, err
	}
	return running, nil
}

// inShard gives a shard's error the name of that shard. gorm translates errors only as drivers return them, so this is done here.
func (s *step) inShard(target sharding.Target, err error) error {
	var refused *sharding.RouteError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	if t, ok := s.stmt.DB.Dialector.(gorm.ErrorTranslator); ok && s.stmt.DB.TranslateError {
		err = t.Translate(err)
	}
	return &sharding.ShardError{Target: target, Err: err}
}
