package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
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
	*sharded // the statement's table

	stmt *gorm.Statement
	op   string
	next conn
	hint *sharding.Hint // nil when nothing is said

	at      *spot             // where gorm's text is for
	targets []sharding.Target // all of them, when there are several
	writing *spot             // whose text is being built

	hinted     bool // the hint chose the target, whatever the conditions prove
	joined     bool // it reads other tables of the shard, too
	everywhere bool // the targets are all there are, whatever the conditions prove
	enclosed   bool // whereBuilder wrote the WHERE clause
	bare       bool // an INSERT without IGNORE or another such word
	asked      bool // a row's key is one that gives its value when asked

	conditions []clause.Expression     // as they were read
	proven     keyset[sharding.Target] // what they prove
	room       [1]sharding.Target      // of proven
}

var _ gorm.ConnPool = (*step)(nil)

// ready returns what to run the statement on.
func (s *step) ready(ctx context.Context, query string) (gorm.ConnPool, error) {
	if err := s.prove(); err != nil {
		return nil, err
	}
	if err := s.routing.guard.routed(s.op, query, s.table, s.joined); err != nil {
		return nil, err
	}
	if err := s.proveUpsert(ctx); err != nil {
		return nil, err
	}
	c, err := s.next.on(ctx, s.database(s.at))
	if err != nil {
		return nil, s.named(err)
	}
	return c, nil
}

// named gives a connection's refusal the statement it is about, and any other
// error the shard.
func (s *step) named(err error) error {
	var refused *sharding.RouteError
	if errors.As(err, &refused) {
		return s.refuse(refused.Err, "shard "+s.at.target.String()+": "+refused.Hint)
	}
	return s.inShard(s.at.target, err)
}

func (s *step) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if s.isMany() {
		return nil, s.refuse(sharding.ErrCrossShard, "a statement for several shards is not prepared")
	}
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.PrepareContext(ctx, query)
}

func (s *step) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s.isMany() {
		return s.execMany(ctx)
	}
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := c.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, s.inShard(s.at.target, err)
	}
	return result, nil
}

func (s *step) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s.isMany() {
		set, err := s.queryMany(ctx)
		if err != nil {
			return nil, err
		}
		return set.open(ctx)
	}
	c, err := s.ready(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.inShard(s.at.target, err)
	}
	return rows, nil
}

func (s *step) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s.isMany() {
		set, err := s.queryMany(ctx)
		if err != nil {
			return errorRow(err)
		}
		return set.openRow(ctx)
	}
	c, err := s.ready(ctx, query)
	if err != nil {
		return errorRow(err)
	}
	return queryRow(ctx, c, query, args)
}

// prove checks the finished statement against the target.
func (s *step) prove() error {
	switch {
	case s.at == nil:
		return s.refuse(sharding.ErrMissingKey, "the rows cannot be seen") // somebody else's builder wrote the INSERT
	case s.op == "create":
		if err := s.proveRows(); err != nil {
			return err
		}
		return s.proveConflict()
	}
	_, restricted := s.stmt.Clauses["WHERE"]
	switch {
	case restricted && !s.enclosed:
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	case s.hinted, s.everywhere:
	case !restricted || !s.where().only(s.at.target):
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	}
	if s.op != "update" && s.op != "delete" {
		return nil
	}
	return s.proveSet()
}

// where returns what the conditions prove as they are now. As a rule gorm has
// added none since they were first read; a list of keys is then not read twice.
func (s *step) where() *keyset[sharding.Target] {
	now := conditions(s.stmt)
	if len(now) == 0 || len(now) != len(s.conditions) || &now[0] != &s.conditions[0] {
		r := s.read(s.stmt)
		r.room = s.room[:0]
		s.conditions, s.proven = now, r.where(now)
	}
	return &s.proven
}

// proveRows checks that keys which are asked for their values still give those
// that the shard was chosen by.
func (s *step) proveRows() error {
	if !s.asked {
		return nil
	}
	values, key, err := s.values()
	if err != nil {
		return err
	}
	for i, row := range values.Values {
		target, err := s.rowTarget(i, row[key])
		if err != nil {
			return err
		}
		if target != s.at.target {
			return s.refuse(sharding.ErrKeyChange, fmt.Sprintf("row %d: the key was changed after the shard had been chosen", i))
		}
	}
	return nil
}

// isSameNumber reports whether two values are equal numbers, without looking
// further at others.
func isSameNumber(a, b any) bool {
	x, ok := a.(int64)
	y, same := b.(int64)
	return ok && same && x == y
}

// values returns the values that the INSERT sends, and which column is the key.
func (s *step) values() (values clause.Values, key int, err error) {
	values, ok := s.stmt.Clauses["VALUES"].Expression.(clause.Values)
	if !ok {
		return values, 0, s.refuse(sharding.ErrMissingKey, "the rows cannot be seen")
	}
	key = slices.IndexFunc(values.Columns, func(c clause.Column) bool { return isSameName(c.Name, s.table.Key) })
	if key < 0 {
		return values, 0, s.keyless()
	}
	return values, key, nil
}

// keyless is the refusal of an INSERT without the column of the key: a row has
// none, or the caller leaves the column out.
func (s *step) keyless() error {
	field := s.keyField()
	r, err := rowsOf(s.stmt)
	for i := 0; err == nil && i < r.len(); i++ {
		if _, ok := r.shardingKey(s.stmt.Context, i, s.table, field); !ok {
			return missingKey(s.op, s.table, i, field)
		}
	}
	return s.refuse(sharding.ErrMissingKey, "the column is left out of the INSERT; do not omit it")
}

// rowTarget returns where row i belongs.
func (s *step) rowTarget(i int, key any) (sharding.Target, error) {
	if isZero(key) {
		return sharding.Target{}, missingKey(s.op, s.table, i, s.keyField())
	}
	switch key.(type) {
	case int64, int, string, uint64, uint:
	default:
		s.asked = true
	}
	if !bound(key) {
		return sharding.Target{}, s.refuse(sharding.ErrMissingKey, fmt.Sprintf("row %d: the key must be a plain value", i))
	}
	target, err := s.place(key)
	if err != nil {
		return target, s.refuse(err, fmt.Sprintf("row %d", i))
	}
	return target, nil
}

// isZero reports whether a value is its type's zero, which gorm takes for none.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case int64:
		return v == 0
	case string:
		return v == ""
	}
	return reflect.ValueOf(v).IsZero()
}

// proveConflict checks that an upsert gives an existing row no other key than
// that of the new one, which lies here, and not even that unless it sets all
// columns, or gorm wrote it for an association.
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
		if isKept(set) || !s.mayBeKey(set.Column) && !s.mayBeGene(set.Column) {
			continue
		}
		if own := conflict.UpdateAll || isAssociation(s.stmt); !own || !isExcluded(set) {
			return s.refuse(sharding.ErrKeyChange, "leave "+assigned(set.Column)+" out of the ON CONFLICT update")
		}
	}
	return nil
}

// isKept reports whether an upsert sets a column to what the row has in it that is
// there: gorm's MySQL dialect writes DO NOTHING so.
func isKept(set clause.Assignment) bool {
	if _, kept := set.Value.(keptKey); kept {
		return true
	}
	c, ok := set.Value.(clause.Column)
	return ok && !c.Raw && !set.Column.Raw && c.Table == "" && strings.EqualFold(c.Name, assigned(set.Column))
}

// isExcluded reports whether an upsert sets a column to what the new row has in it.
func isExcluded(set clause.Assignment) bool {
	c, ok := set.Value.(clause.Column)
	return ok && !c.Raw && c.Table == "excluded" && strings.EqualFold(c.Name, assigned(set.Column))
}

// proveSet checks that an UPDATE leaves rows in their slot: gorm's Save sets all
// columns, so setting the key to the value in the condition is fine.
func (s *step) proveSet() error {
	set, ok := s.stmt.Clauses["SET"].Expression.(clause.Set)
	if !ok {
		return nil
	}
	for _, a := range set {
		gene := s.mayBeGene(a.Column)
		if !gene && !s.mayBeKey(a.Column) || s.keepsSlot(a.Column, a.Value) {
			continue
		}
		if gene {
			return s.refuseGene(assigned(a.Column), sharding.ErrKeyChange, "the new value must lead to the slot of the condition's key; leave the column out, or add a condition on "+s.table.Key)
		}
		if a.Value == nil {
			return s.refuse(sharding.ErrKeyChange, "a row without its key lies in no shard; delete the row instead, an association's with Association(…).Unscoped()")
		}
		return s.refuse(sharding.ErrKeyChange, "delete the row and create it with the new key")
	}
	return nil
}

// mayBeKey reports whether an assignment may be one to the sharding key.
func (s *step) mayBeKey(c clause.Column) bool {
	if c.Raw {
		return true
	}
	name := assigned(c)
	return strings.EqualFold(name, s.table.Key) || name == clause.PrimaryKey
}

// mayBeGene reports whether an assignment may be one to another column that leads
// to the shard.
func (s *step) mayBeGene(c clause.Column) bool {
	if len(s.table.Also) == 0 || c.Raw {
		return false
	}
	name := assigned(c)
	return s.table.Leads(name) && !strings.EqualFold(name, s.table.Key)
}

// assigned returns the name of the column that an assignment sets.
func assigned(c clause.Column) string {
	return strings.Trim(c.Name[strings.LastIndexByte(c.Name, '.')+1:], "`\"")
}

// refuse returns the RouteError of this statement.
func (s *step) refuse(why error, hint string) error {
	if errors.Is(why, sharding.ErrRouteUnread) {
		hint = "call Router.Load when the program starts; a transaction that is under way cannot do it"
	}
	return &sharding.RouteError{Op: s.op, Table: s.table.Name, Column: s.table.Key, Err: why, Hint: hint}
}

func (s *step) conditionHint() string {
	hint := conditionHint(s.table)
	if _, restricted := s.stmt.Clauses["WHERE"]; s.op == "row" && !restricted { // as gorm's migrator reads columns
		hint += "; in place of AutoMigrate call gormplugin.Migrate, or loop over Router.DB of its targets"
	}
	return hint
}

func conditionHint(t *sharding.Table) string {
	given := []string{"it"}
	for _, alt := range t.Also {
		given = append(given, alt.Column)
	}
	return "add a condition that gives " + strings.Join(given, " or ") + ", like Where(\"" + t.Key + " = ?\", value) (the zero fields of a struct make no condition), joined to the others by AND; " +
		"or name the shard with sharding.OnKey, or all of them with sharding.AllShards (see also Table.OnMissing and Table.Also)"
}
