package gormplugin

import (
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

const joinHint = "a join needs tables of one Group and an ON that compares their sharding keys, or a broadcast table; otherwise use Preload, or join in the application"

// proveJoins refuses joins where gorm cannot be shown to write them, and leaves
// the others to fromBuilder, which sees what is written.
func (s *step) proveJoins() error {
	if !isJoined(s.stmt) {
		return nil
	}
	from, plain := s.stmt.Clauses["FROM"].Expression.(clause.From)
	if s.isWrite() || s.stmt.Clauses["FROM"].Expression != nil && !plain || len(from.Tables) > 0 {
		return s.refuse(sharding.ErrCrossShard, joinHint)
	}
	s.joined = true
	return nil
}

// fromBuilder writes the FROM clause of routed statements with the physical
// tables of the joined ones.
func fromBuilder(next clause.ClauseBuilder) clause.ClauseBuilder {
	return func(c clause.Clause, b clause.Builder) {
		stmt, s := stepOf(b)
		from, plain := c.Expression.(clause.From)
		switch {
		case s == nil:
		case s.joined:
			c.Expression = s.from(stmt, from)
		case plain && len(from.Tables)+len(from.Joins) == 0 && isBare(&c) && s.isWriting(stmt):
			_, _ = stmt.WriteString(s.writing.from)
			return
		}
		build(next, c, b)
	}
}

func (s *step) from(stmt *gorm.Statement, from clause.From) clause.From {
	joins := make([]clause.Join, len(from.Joins))
	for i, j := range from.Joins {
		var ok bool
		if j.Expression != nil {
			joins[i], ok = s.rawJoin(stmt, j)
		} else {
			joins[i], ok = s.join(j)
		}
		if !ok {
			_ = stmt.AddError(s.refuse(sharding.ErrCrossShard, joinHint))
			return from
		}
	}
	from.Joins = joins
	return from
}

// join points a join of gorm's own at the shard.
func (s *step) join(j clause.Join) (clause.Join, bool) {
	if s.snapshot.IsBroadcast(j.Table.Name) {
		return j, j.Type != clause.RightJoin
	}
	other, physical, ok := s.sibling(j.Table.Name)
	if !ok || j.Type != clause.LeftJoin && j.Type != clause.InnerJoin && j.Type != "" {
		return j, false
	}
	alias := j.Table.Alias
	if alias == "" {
		alias = j.Table.Name
	}
	if slices.ContainsFunc(j.ON.Exprs, isOr) || !slices.ContainsFunc(j.ON.Exprs, func(e clause.Expression) bool { return s.comparesKeys(e, other, alias) }) {
		return j, false
	}
	j.ON.Exprs = s.enclosedJoin(j.ON.Exprs)
	quote := s.stmt.Quote
	j.Table = clause.Table{Name: quote(clause.Table{Name: physical}) + " AS " + quote(clause.Table{Name: alias}), Raw: true}
	return j, true
}

// enclosedJoin returns the conditions of an ON as enclose does those of a WHERE: an
// OR in one of them must not undo the comparison of the keys.
func (s *step) enclosedJoin(exprs []clause.Expression) []clause.Expression {
	list := s.enclose(exprs, false)
	for i, e := range exprs {
		if _, _, columns := compared(e); columns {
			list[i] = e
		}
	}
	return list
}

// sibling returns a table of the group and what it is called on the shard.
func (s *step) sibling(name string) (other *sharding.Table, physical string, ok bool) {
	other, known := s.snapshot.Lookup(name)
	if !known || !s.snapshot.SameGroup(s.table.Name, name) {
		return nil, "", false
	}
	target, placed, err := s.snapshot.Hinted(name, sharding.Hint{On: s.writing.target})
	return other, target.Table, placed && err == nil
}

// comparesKeys reports whether e says that the keys of both tables are equal.
func (s *step) comparesKeys(e clause.Expression, other *sharding.Table, alias string) bool {
	left, right, ok := compared(e)
	if !ok {
		return false
	}
	own := func(c clause.Column) bool {
		return (c.Table == clause.CurrentTable || strings.EqualFold(c.Table, s.alias)) && strings.EqualFold(c.Name, s.table.Key)
	}
	others := func(c clause.Column) bool { return c.Table == alias && strings.EqualFold(c.Name, other.Key) }
	return own(left) && others(right) || own(right) && others(left)
}

// compared returns the columns that e says are equal, as gorm says it in relations,
// and as the code does that gorm.io/gen has generated.
func compared(e clause.Expression) (left, right clause.Column, ok bool) {
	var a, b any
	switch e := e.(type) {
	case clause.Eq:
		a, b = e.Column, e.Value
	case clause.Expr:
		if e.SQL != "? = ?" || len(e.Vars) != 2 {
			return left, right, false
		}
		a, b = e.Vars[0], e.Vars[1]
	}
	left, okLeft := a.(clause.Column)
	right, okRight := b.(clause.Column)
	return left, right, okLeft && okRight
}

// rawJoin points a join that was written by hand at the shard: [INNER|LEFT] JOIN
// table [[AS] alias] ON conditions, of which one that AND joins to the others
// compares the keys.
func (s *step) rawJoin(stmt *gorm.Statement, j clause.Join) (clause.Join, bool) {
	text, vars, ok := s.written(j.Expression)
	if !ok {
		return j, false
	}
	tokens, readable := s.routing.tokensOf(text)
	at := 0
	for at < len(tokens) && (tokens[at].Is(text, "LEFT") || tokens[at].Is(text, "INNER") || tokens[at].Is(text, "OUTER")) {
		at++
	}
	if !readable || len(tokens) < at+3 || !tokens[at].Is(text, "JOIN") || !isName(tokens[at+1]) {
		return j, false
	}
	name := tokens[at+1]
	alias, rest := joinAlias(text, tokens[at+2:])
	table := sqltext.Ident(text, name)
	isCopy := s.snapshot.IsBroadcast(table)
	if len(rest) < 2 || !rest[0].Is(text, "ON") || slices.ContainsFunc(rest, func(t sqltext.Token) bool { return endsJoin(text, t) }) {
		return j, false
	}
	if isCopy {
		return j, true
	}
	other, physical, ok := s.sibling(table)
	if alias == "" {
		alias = table
	}
	if !ok || !s.textComparesKeys(text, rest[1:], other, alias) {
		return j, false
	}
	as := ""
	if len(rest) == len(tokens)-at-2 {
		as = " AS " + name.Text(text)
	}
	j.Expression = verbatim{text[:name.Start] + stmt.Quote(clause.Table{Name: physical}) + as + text[name.End:], vars}
	return j, true
}

// written returns an expression as gorm writes it.
func (s *step) written(e clause.Expression) (text string, vars []any, ok bool) {
	stmt := s.copied(map[string]clause.Clause{})
	stmt.TableExpr = nil
	e.Build(stmt)
	return stmt.SQL.String(), stmt.Vars, stmt.DB.Error == nil
}

// joinAlias cuts [AS] alias off the front.
func joinAlias(text string, tokens []sqltext.Token) (alias string, rest []sqltext.Token) {
	if len(tokens) > 1 && tokens[0].Is(text, "AS") {
		tokens = tokens[1:]
	} else if len(tokens) > 0 && tokens[0].Is(text, "ON") {
		return "", tokens
	}
	if len(tokens) == 0 || !isName(tokens[0]) {
		return "", nil
	}
	return sqltext.Ident(text, tokens[0]), tokens[1:]
}

// endsJoin reports whether a token begins another table, or makes the meaning of
// ANDs uncertain.
func endsJoin(text string, t sqltext.Token) bool {
	if t.Kind == sqltext.Op {
		c := text[t.Start]
		return c == '|' || c == '&' || c == ';'
	}
	for _, word := range [...]string{"JOIN", "STRAIGHT_JOIN", "OR", "XOR", "CASE", "BETWEEN", "NOT", "SELECT", "WHERE"} {
		if t.Is(text, word) {
			return true
		}
	}
	return false
}

// textComparesKeys looks for a.key = b.key between the ANDs.
func (s *step) textComparesKeys(text string, tokens []sqltext.Token, other *sharding.Table, alias string) bool {
	var part []sqltext.Token
	is := func(t []sqltext.Token, table, column string) bool {
		return isName(t[0]) && t[1].Is(text, ".") && isName(t[2]) &&
			strings.EqualFold(sqltext.Ident(text, t[0]), table) && strings.EqualFold(sqltext.Ident(text, t[2]), column)
	}
	compares := func() bool {
		if len(part) != 7 || !part[3].Is(text, "=") {
			return false
		}
		l, r := part[:3], part[4:]
		return is(l, s.alias, s.table.Key) && is(r, alias, other.Key) || is(r, s.alias, s.table.Key) && is(l, alias, other.Key)
	}
	for _, t := range tokens {
		if !t.Is(text, "AND") {
			part = append(part, t)
			continue
		}
		if compares() {
			return true
		}
		part = nil
	}
	return compares()
}
