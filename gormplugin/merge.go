package gormplugin

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// merge is how the answers of several shards become that of one table. What
// cannot be proven to be the same is refused before anything is sent.
type merge struct {
	*step

	selection selection
	changed   bool     // the list of the SELECT is not the statement's own
	hidden    []string // expressions that are selected in addition, at the end
	keys      []sortKey
	groups    []int // the output columns that rows are grouped by again; nil: rows are as they come
	distinct  bool  // equal rows of different shards are one
	offset    int
	most      int // the LIMIT, -1 for none
}

// merging reads how the statement's answers are to be merged. Statements that
// return none, and INSERTs, need nothing.
func (s *step) merging() (*merge, error) {
	m := &merge{step: s, most: -1}
	if s.isWrite() {
		return m, nil
	}
	for _, name := range [...]string{"SELECT", "GROUP BY", "ORDER BY", "LIMIT"} {
		c := s.stmt.Clauses[name]
		if c.Builder != nil || !isRemark(s.stmt, c.BeforeExpression) || !isRemark(s.stmt, c.AfterNameExpression) || !isRemark(s.stmt, c.AfterExpression) {
			return nil, m.unmergeable("the clause " + name + " has additions")
		}
	}
	var ok bool
	if m.selection, ok = s.selected(); !ok {
		return nil, m.unmergeable("the list of columns cannot be read")
	}
	for _, read := range [...]func() error{m.limited, m.grouped, m.ordered} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *merge) unmergeable(why string) error {
	return m.refuse(sharding.ErrUnmergeable, why+"; narrow the statement to one shard, or do this part in the application")
}

// limited reads LIMIT and OFFSET.
func (m *merge) limited() error {
	c, ok := m.stmt.Clauses["LIMIT"]
	if !ok || c.Expression == nil {
		return nil
	}
	limit, ok := c.Expression.(clause.Limit)
	if !ok {
		return m.unmergeable("the LIMIT cannot be read")
	}
	if limit.Limit != nil && *limit.Limit >= 0 {
		m.most = *limit.Limit
	}
	m.offset = max(limit.Offset, 0)
	return nil
}

// grouped decides how rows of different shards belong together.
func (m *merge) grouped() error {
	folds := slices.ContainsFunc(m.selection.items, func(it item) bool { return it.kind == foldItem })
	for _, it := range m.selection.items {
		if it.kind == otherItem {
			return m.unmergeable("what " + it.text + " means over several shards is not known")
		}
	}
	by, err := m.groupColumns()
	switch {
	case err != nil:
		return err
	case (folds || by != nil) && !slices.ContainsFunc(by, m.isKeyColumn):
		return m.regroup(by)
	// Without groups, or when each lies in one shard with all that is said about
	// it, rows stay as they are.
	case m.selection.distinct && !slices.ContainsFunc(m.selection.items, m.coversKey):
		m.distinct = true
		return m.comparable(m.selection.items)
	}
	return nil
}

func (m *merge) coversKey(it item) bool { return it.kind == starItem || m.isKey(it) }

func (m *merge) isKeyColumn(name string) bool { return strings.EqualFold(name, m.table.Key) }

// groupColumns returns the columns of the GROUP BY, nil without one.
func (m *merge) groupColumns() ([]string, error) {
	c, ok := m.stmt.Clauses["GROUP BY"]
	if !ok || c.Expression == nil {
		return nil, nil
	}
	by, ok := c.Expression.(clause.GroupBy)
	if !ok {
		return nil, m.unmergeable("the GROUP BY cannot be read")
	}
	names := []string{}
	for _, column := range by.Columns {
		name, err := m.groupColumn(column)
		if err != nil {
			return nil, err
		}
		names = append(names, name...)
	}
	if len(by.Having) > 0 && !slices.ContainsFunc(names, m.isKeyColumn) {
		return nil, m.unmergeable("HAVING is about groups that lie in several shards")
	}
	return names, nil
}

// groupColumn reads one element of the GROUP BY, which may hold a list.
func (m *merge) groupColumn(column clause.Column) (names []string, err error) {
	text := m.stmt.Quote(column)
	tokens, ok := m.routing.tokensOf(text)
	if !ok {
		return nil, m.unmergeable("GROUP BY " + text + " cannot be read")
	}
	for _, part := range split(text, tokens) {
		name, ok := m.ownColumn(text, part)
		if !ok {
			return nil, m.unmergeable("GROUP BY " + text + m.noColumn(text, part))
		}
		if slices.ContainsFunc(m.selection.items, func(it item) bool { return it.kind != columnItem && strings.EqualFold(it.name, name) }) {
			return nil, m.unmergeable("GROUP BY " + text + " is no column")
		}
		names = append(names, name)
	}
	return names, nil
}

// regroup prepares for groups whose rows lie in several shards: the columns they
// are grouped by must be there, and everything else must be made up of parts.
func (m *merge) regroup(by []string) error {
	if m.selection.distinct && len(by) > 0 {
		return m.unmergeable("DISTINCT is about groups that lie in several shards")
	}
	if len(by) > 0 && m.most >= 0 || m.offset > 0 || m.most == 0 {
		return m.unmergeable("LIMIT and OFFSET would cut off parts of groups")
	}
	m.groups = []int{}
	for i, it := range m.selection.items {
		switch {
		case it.kind == foldItem:
			if err := m.foldable(it); err != nil {
				return err
			}
		case it.kind == columnItem && slices.ContainsFunc(by, func(c string) bool { return strings.EqualFold(c, it.column) }):
			m.groups = append(m.groups, i)
		default:
			return m.unmergeable(it.text + " is neither grouped by nor COUNT, SUM, MIN, MAX or AVG")
		}
	}
	if err := m.comparable(m.selection.items); err != nil {
		return err
	}
	for _, column := range by {
		if slices.ContainsFunc(m.selection.items, func(it item) bool { return it.kind == columnItem && strings.EqualFold(it.column, column) }) {
			continue
		}
		if err := m.sortable(m.field(column), column); err != nil {
			return err
		}
		m.groups = append(m.groups, len(m.selection.items)+len(m.hidden))
		m.hide(m.stmt.Quote(clause.Column{Name: column}))
	}
	m.most = -1
	return m.average()
}

// comparable checks that equal values of columns are equal here, too.
func (m *merge) comparable(items []item) error {
	for _, it := range items {
		if it.kind == scalarItem {
			if err := m.bytewiseText(it.text); err != nil {
				return err
			}
		}
		if it.kind != columnItem {
			continue
		}
		if err := m.sortable(m.field(it.column), it.column); err != nil {
			return err
		}
	}
	return nil
}

// foldable says why an aggregate cannot be made up of those of the shards.
func (m *merge) foldable(it item) error {
	if it.distinct && !it.isExtreme() && !strings.EqualFold(it.column, m.table.Key) {
		return m.unmergeable(it.text + " counts a value once that several shards have")
	}
	switch {
	case !it.isExtreme():
		return nil
	case it.column == "":
		return m.bytewiseText(it.argument)
	}
	return m.sortable(m.field(it.column), it.column)
}

// average has the shards give sums and counts in place of averages.
func (m *merge) average() error {
	for i := range m.selection.items {
		it := &m.selection.items[i]
		if it.function != "AVG" {
			continue
		}
		if len(m.selection.vars) > 0 {
			return m.unmergeable(it.text + " in a list with parameters")
		}
		m.changed = true
		distinct := ""
		if it.distinct {
			distinct = "DISTINCT "
		}
		it.text = "SUM(" + distinct + it.argument + ")"
		m.hide("COUNT(" + distinct + it.argument + ")")
	}
	return nil
}

// hide has every shard return one more column, and gives it a name.
func (m *merge) hide(expression string) (name string) {
	m.changed = true
	m.hidden = append(m.hidden, expression)
	return hiddenName(len(m.hidden) - 1)
}

func hiddenName(i int) string { return fmt.Sprint("shardid_", i+1) }

// written returns what the user wrote for an output column.
func (m *merge) written(column string) string {
	for i, expression := range m.hidden {
		if column == hiddenName(i) {
			return strings.TrimPrefix(expression, "+")
		}
	}
	return column
}

// change makes the clauses of one shard's statement from those of the whole.
func (m *merge) change(clauses map[string]clause.Clause) {
	if m.isWrite() {
		return
	}
	if m.changed {
		clauses["SELECT"] = clause.Clause{Expression: m.list()}
	}
	if m.groups != nil {
		delete(clauses, "ORDER BY")
	}
	switch {
	case m.most < 0:
		delete(clauses, "LIMIT")
	default:
		most := m.most + m.offset
		c := clauses["LIMIT"]
		c.Expression = clause.Limit{Limit: &most}
		clauses["LIMIT"] = c
	}
}

// verbatim is a text with its values in place.
type verbatim struct {
	text string
	vars []any
}

func (v verbatim) Build(b clause.Builder) {
	_, _ = b.WriteString(v.text)
	stmt := b.(*gorm.Statement)
	stmt.Vars = append(stmt.Vars, v.vars...)
}

// list returns the SELECT with the columns that are cut off again.
func (m *merge) list() clause.Expression {
	var text strings.Builder
	if !slices.ContainsFunc(m.selection.items, func(it item) bool { return it.function == "AVG" }) {
		text.WriteString(m.selection.text)
	} else {
		m.named(&text)
	}
	for i, expression := range m.hidden {
		text.WriteString("," + expression + " AS " + m.stmt.Quote(clause.Column{Name: hiddenName(i)}))
	}
	return verbatim{text.String(), m.selection.vars}
}

// named writes the list anew, with the names that the elements have in it.
func (m *merge) named(text *strings.Builder) {
	text.WriteString("SELECT ")
	if m.selection.distinct {
		text.WriteString("DISTINCT ")
	}
	for i, it := range m.selection.items {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(it.text + " AS " + dialect.MySQL{}.Quote(it.name)) // gorm would cut a name like SUM(orders.id) at its dot; SQLite knows these quotes, too
	}
}

// merge makes one answer of all.
func (m *merge) merge(sets []*resultSet) (*resultSet, error) {
	all := concat(sets)
	var err error
	switch {
	case m.groups != nil:
		err = m.foldGroups(all)
	case m.distinct:
		err = m.dropEqual(all)
	}
	if err == nil {
		err = m.sort(all)
	}
	if err != nil {
		return nil, err
	}
	m.cut(all)
	return all, nil
}

// concat puts the rows of all sets together.
func concat(sets []*resultSet) *resultSet {
	all := &resultSet{columns: sets[0].columns}
	for _, set := range sets {
		if all.types == nil {
			all.types = slices.Clone(set.types)
		}
		all.rows = append(all.rows, set.rows...)
	}
	return all
}

// cut applies OFFSET and LIMIT, and takes the hidden columns away.
func (m *merge) cut(set *resultSet) {
	set.rows = set.rows[min(m.offset, len(set.rows)):]
	if m.most >= 0 {
		set.rows = set.rows[:min(m.most, len(set.rows))]
	}
	n := len(set.columns) - len(m.hidden)
	set.columns = set.columns[:n]
	if len(set.types) > n {
		set.types = set.types[:n]
	}
	for i := range set.rows {
		set.rows[i] = set.rows[i][:n]
	}
}
