package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// step is the connection of one routed statement while gorm builds and runs it.
// Before anything is sent it proves, from the clauses and the text as they then
// are, that the statement concerns rows of the chosen target only.
type step struct {
	routing *routing
	stmt    *gorm.Statement
	op      string
	table   *sharding.Table
	target  sharding.Target
	next    conn

	read     []clause.Expression     // the conditions at first
	proven   keyset[sharding.Target] // what they prove
	enclosed bool                    // whereBuilder wrote the WHERE clause
}

var _ gorm.ConnPool = (*step)(nil)

// ready returns what to run the statement on.
func (s *step) ready(ctx context.Context, query string) (gorm.ConnPool, error) {
	if err := s.prove(); err != nil {
		return nil, err
	}
	if err := s.routing.guard.routed(s.op, query, s.table); err != nil {
		return nil, err
	}
	c, err := s.next.on(ctx, s.routing.router.DB(s.target.DB))
	var refused *sharding.RouteError
	if errors.As(err, &refused) {
		return nil, s.refuse(refused.Err, "shard "+s.target.String()+": "+refused.Hint)
	}
	return c, err
}

func (s *step) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.PrepareContext(ctx, query)
}

func (s *step) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.ExecContext(ctx, query, args...)
}

func (s *step) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.QueryContext(ctx, query, args...)
}

func (s *step) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c, err := s.ready(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return c.QueryRowContext(ctx, query, args...)
}

// prove checks the finished statement against the target.
func (s *step) prove() error {
	if s.op == "create" {
		if err := s.proveRows(); err != nil {
			return err
		}
		return s.proveConflict()
	}
	if !s.enclosed || !s.where().only(s.target) {
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	}
	return s.proveSet()
}

// where returns what the conditions prove as they are now. As a rule gorm has
// added none since they were first read; a list of keys is then not read twice.
func (s *step) where() keyset[sharding.Target] {
	now := conditions(s.stmt)
	if len(now) == 0 || len(now) != len(s.read) || &now[0] != &s.read[0] {
		s.read, s.proven = now, s.routing.read(s.stmt, s.table).where()
	}
	return s.proven
}

// proveRows checks the values that the INSERT sends.
func (s *step) proveRows() error {
	values, ok := s.stmt.Clauses["VALUES"].Expression.(clause.Values)
	if !ok {
		return s.refuse(sharding.ErrMissingKey, "the rows cannot be seen")
	}
	key := slices.IndexFunc(values.Columns, func(c clause.Column) bool { return strings.EqualFold(c.Name, s.table.Key) })
	if key < 0 {
		return s.refuse(sharding.ErrMissingKey, "the column is left out of the INSERT; do not omit it")
	}
	for _, row := range values.Values {
		if !bound(row[key]) {
			return s.refuse(sharding.ErrMissingKey, "the key must be a plain value")
		}
		if target, err := s.table.Target(row[key]); err != nil || target != s.target {
			return s.refuse(sharding.ErrKeyChange, "the key was changed after the shard had been chosen")
		}
	}
	return nil
}

// proveConflict checks that an upsert gives an existing row no other key than
// that of the new one, which lies here.
func (s *step) proveConflict() error {
	c, ok := s.stmt.Clauses["ON CONFLICT"]
	if !ok {
		return nil
	}
	if _, skips := c.Expression.(skipping); skips {
		return nil
	}
	conflict, ok := c.Expression.(clause.OnConflict)
	if !ok {
		return s.refuse(sharding.ErrKeyChange, "the ON CONFLICT clause cannot be read")
	}
	for _, set := range conflict.DoUpdates {
		if !s.mayBeKey(set.Column) {
			continue
		}
		if _, same := set.Value.(keptKey); same {
			continue
		}
		excluded, ok := set.Value.(clause.Column)
		own := ok && !excluded.Raw && (excluded.Table == "excluded" || excluded.Table == "") && strings.EqualFold(excluded.Name, s.table.Key)
		if !own {
			return s.refuse(sharding.ErrKeyChange, "leave the column out of the ON CONFLICT update")
		}
	}
	return nil
}

// proveSet checks that an UPDATE leaves the key as it is: gorm's Save sets all
// columns, so setting it to the value in the condition is fine.
func (s *step) proveSet() error {
	set, ok := s.stmt.Clauses["SET"].Expression.(clause.Set)
	if !ok {
		return nil
	}
	for _, a := range set {
		if s.mayBeKey(a.Column) && !s.sameKey(a.Value) {
			return s.refuse(sharding.ErrKeyChange, "delete the row and create it with the new key")
		}
	}
	return nil
}

// mayBeKey reports whether an assignment may be one to the sharding key.
func (s *step) mayBeKey(c clause.Column) bool {
	if c.Raw {
		return true
	}
	name := c.Name[strings.LastIndexByte(c.Name, '.')+1:]
	return strings.EqualFold(strings.Trim(name, "`\""), s.table.Key) || name == clause.PrimaryKey
}

// sameKey reports whether every row that the condition matches has this key.
func (s *step) sameKey(value any) bool {
	if !bound(value) {
		return false
	}
	want, err := keyText(value)
	if err != nil {
		return false
	}
	r := reader[string]{s.stmt, s.table, s.routing.guard.readings[0], keyText}
	return r.where().only(want)
}

// refuse returns the RouteError of this statement.
func (s *step) refuse(why error, hint string) error {
	return &sharding.RouteError{Op: s.op, Table: s.table.Name, Column: s.table.Key, Err: why, Hint: hint}
}

func (s *step) conditionHint() string { return conditionHint(s.table) }

func conditionHint(t *sharding.Table) string {
	return "add a condition that gives it, like Where(\"" + t.Key + " = ?\", value), joined to the others by AND"
}
