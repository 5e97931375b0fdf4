package gormplugin

import (
	"errors"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// reader reads from a statement's conditions what they prove about the sharding
// key. It reads gorm's clauses, and of raw text only forms that have a single
// meaning; whatever it does not know proves nothing.
type reader[E comparable] struct {
	stmt      *gorm.Statement
	table     *sharding.Table
	alias     string // what qualifies the table's columns
	fragments fragments
	place     func(key any) (E, error) // what a key stands for
	// also returns the same for another column that tells the slot, nil for a
	// column that does not. It may be nil.
	also func(column string) func(value any) (E, error)
	// room is memory for the first set with an element: most statements have one.
	room []E
}

// errSilent: a value of another column than the key tells no slot.
var errSilent = errors.New("the value tells no slot")

// where reads a WHERE clause.
func (r *reader[E]) where(exprs []clause.Expression) keyset[E] {
	if len(exprs) == 0 {
		return keyset[E]{all: true}
	}
	return r.conjunction(asBuilt(exprs))
}

// conditions returns those of the statement's WHERE clause, nil if the clause
// holds something else as well, which is no comment.
func conditions(stmt *gorm.Statement) []clause.Expression {
	c, ok := stmt.Clauses["WHERE"]
	if !ok || c.Builder != nil || !isRemark(stmt, c.BeforeExpression) || !isRemark(stmt, c.AfterNameExpression) || !isRemark(stmt, c.AfterExpression) {
		return nil
	}
	where, _ := c.Expression.(clause.Where)
	return where.Exprs
}

// asBuilt returns the conditions in the order in which clause.Where writes
// them: it unwraps a single AND and never begins with an OR.
func asBuilt(exprs []clause.Expression) []clause.Expression {
	if len(exprs) == 1 {
		if and, ok := exprs[0].(clause.AndConditions); ok {
			exprs = and.Exprs
		}
	}
	for i, e := range exprs {
		if isOr(e) {
			continue
		}
		if i > 0 {
			exprs = append([]clause.Expression(nil), exprs...)
			exprs[0], exprs[i] = exprs[i], exprs[0]
		}
		break
	}
	return exprs
}

// isOr reports whether gorm joins e to its predecessor by OR.
func isOr(e clause.Expression) bool {
	or, ok := e.(clause.OrConditions)
	return ok && len(or.Exprs) == 1
}

// conjunction reads a list that is joined by AND, save for the elements that
// bring an OR along. AND binds more tightly, as in the text.
func (r *reader[E]) conjunction(list []clause.Expression) keyset[E] {
	if len(list) == 1 {
		return r.condition(list[0])
	}
	either, group := keyset[E]{}, keyset[E]{all: true}
	for i, e := range list {
		if i > 0 && isOr(e) {
			either = either.or(group)
			group = keyset[E]{all: true}
		}
		group = group.and(r.condition(e))
	}
	return either.or(group)
}

func (r *reader[E]) disjunction(list []clause.Expression) keyset[E] {
	var either keyset[E]
	for _, e := range list {
		either = either.or(r.condition(e))
	}
	return either
}

func (r *reader[E]) condition(e clause.Expression) keyset[E] {
	switch c := e.(type) {
	case clause.AndConditions:
		return r.conjunction(c.Exprs)
	case clause.OrConditions:
		return r.disjunction(c.Exprs)
	case clause.Where: // as associations write conditions
		return r.where(c.Exprs)
	case clause.Eq:
		return r.equal(c)
	case clause.IN:
		return r.in(c)
	case clause.Expr:
		return r.fragment(c)
	case clause.NamedExpr:
		return r.named(c)
	}
	return keyset[E]{all: true}
}

func (r *reader[E]) equal(c clause.Eq) keyset[E] {
	place := r.column(c.Column)
	if place == nil {
		return keyset[E]{all: true}
	}
	if list, ok := listed(c.Value); ok {
		return r.keys(place, list)
	}
	return r.key(place, c.Value)
}

func (r *reader[E]) in(c clause.IN) keyset[E] {
	if place := r.column(c.Column); place != nil {
		return r.keys(place, c.Values)
	}
	set := keyset[E]{all: true}
	columns, _ := c.Column.([]clause.Column)
	for i, column := range columns {
		if place := r.column(column); place != nil {
			set = set.and(r.keys(place, nth(c.Values, i)))
		}
	}
	return set
}

// nth returns the i-th value of each tuple.
func nth(tuples []any, i int) []any {
	list := make([]any, len(tuples))
	for n, tuple := range tuples {
		if values, ok := tuple.([]any); ok && i < len(values) {
			list[n] = values[i]
		} else {
			list[n] = tuple // not bound, so it proves nothing
		}
	}
	return list
}

// keys reads key IN (list). NULL in it matches no row.
func (r *reader[E]) keys(place func(any) (E, error), list []any) keyset[E] {
	var set keyset[E]
	for _, v := range list {
		if v == nil {
			continue
		}
		if !bound(v) {
			return keyset[E]{all: true}
		}
		e, err := place(v)
		if errors.Is(err, errSilent) {
			return keyset[E]{all: true}
		}
		if err != nil {
			return unknown[E](err)
		}
		if r.room != nil {
			set.of, r.room = r.room, nil
		}
		set.add(e)
	}
	return set
}

// key reads key = v.
func (r *reader[E]) key(place func(any) (E, error), v any) keyset[E] {
	if v == nil { // IS NULL, or = NULL
		return keyset[E]{all: true}
	}
	return r.keys(place, []any{v})
}

// column returns what the values of a clause's column stand for, nil unless it
// is a key of the statement's own table.
func (r *reader[E]) column(column any) func(any) (E, error) {
	switch c := column.(type) {
	case string:
		table, name, qualified := strings.Cut(c, ".")
		if !qualified {
			return r.places(c)
		}
		if r.isOwn(table) {
			return r.places(name)
		}
	case clause.Column:
		if c.Raw || c.Alias != "" || c.Table != "" && c.Table != clause.CurrentTable && !r.isOwn(c.Table) {
			return nil
		}
		return r.places(r.columnName(c.Name))
	}
	return nil
}

// places returns what the values of the column of this name stand for.
func (r *reader[E]) places(name string) func(any) (E, error) {
	if strings.EqualFold(name, r.table.Key) {
		return r.place
	}
	if r.also != nil {
		return r.also(name)
	}
	return nil
}

// isOwn reports whether a qualifier means the statement's own table.
func (r *reader[E]) isOwn(qualifier string) bool {
	return strings.EqualFold(qualifier, r.alias) || qualifier == r.stmt.Table
}

// columnName resolves gorm's placeholder for the primary key.
func (r *reader[E]) columnName(name string) string {
	s := r.stmt.Schema
	if name != clause.PrimaryKey || s == nil || s.PrioritizedPrimaryField == nil {
		return name
	}
	return s.PrioritizedPrimaryField.DBName
}
