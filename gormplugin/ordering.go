package gormplugin

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/sqltext"
)

// sortKey is one term of an ORDER BY.
type sortKey struct {
	column string // the output column with its values
	at     int    // the place of that column, once it is known
	desc   bool
}

// ordered reads the ORDER BY, whose terms must be columns. What the answer does
// not hold is asked for in addition, in columns that are cut off again.
func (m *merge) ordered() error {
	c, ok := m.stmt.Clauses["ORDER BY"]
	if !ok || c.Expression == nil || m.isSingleRow() {
		return nil
	}
	if by, plain := c.Expression.(clause.OrderBy); plain && by.Expression == nil && len(by.Columns) == 0 {
		return nil
	}
	text, vars, err := m.text("ORDER BY")
	if err != nil {
		return err
	}
	tokens, readable := m.routing.tokensOf(text)
	if !readable || len(vars) > 0 || len(tokens) < 3 || !tokens[1].Is(text, "BY") {
		return m.unmergeable("ORDER BY must name columns")
	}
	for _, term := range split(text, tokens[2:]) {
		if err := m.term(text, term); err != nil {
			return err
		}
	}
	return nil
}

// isSingleRow reports whether the answer is one row of aggregates.
func (m *merge) isSingleRow() bool {
	_, grouped := m.stmt.Clauses["GROUP BY"]
	return m.groups != nil && !grouped
}

func (m *merge) term(text string, tokens []sqltext.Token) error {
	written := textOf(text, tokens)
	desc := false
	if n := len(tokens) - 1; n > 0 && (tokens[n].Is(text, "DESC") || tokens[n].Is(text, "ASC")) {
		desc = tokens[n].Is(text, "DESC")
		tokens = tokens[:n]
	}
	name, ok := m.ownColumn(text, tokens)
	if !ok {
		return m.unmergeable("ORDER BY " + written + m.noColumn(text, tokens))
	}
	output, err := m.output(name, textOf(text, tokens), len(tokens) > 1)
	if err != nil {
		return err
	}
	m.keys = append(m.keys, sortKey{column: output, desc: desc})
	return nil
}

// noColumn says why tokens are no column of the statement's table.
func (m *merge) noColumn(text string, tokens []sqltext.Token) string {
	if len(tokens) == 3 && isName(tokens[0]) && tokens[1].Is(text, ".") && isName(tokens[2]) {
		return " is a column of another table than " + m.alias
	}
	return " is no column"
}

// output returns the output column that a term of the ORDER BY sorts by.
func (m *merge) output(name, written string, qualified bool) (string, error) {
	f := m.field(name)
	for _, it := range m.selection.items {
		same := it.kind == columnItem && strings.EqualFold(it.column, name)
		if it.kind == starItem || !strings.EqualFold(it.name, name) || qualified && !same {
			continue
		}
		if m.stars() > 0 {
			return "", m.unmergeable(name + " may be two columns")
		}
		if same || it.isExtreme() && it.column != "" {
			return it.name, m.sortable(m.field(it.column), it.column)
		}
		return it.name, m.bytewiseText(it.text)
	}
	if err := m.sortable(f, name); err != nil {
		return "", err
	}
	if m.stars() > 0 && f != nil && !m.isStored(f) {
		return f.DBName, nil
	}
	if m.distinct || m.selection.distinct || m.groups != nil {
		return "", m.unmergeable("ORDER BY " + name + " is not among the columns that are selected")
	}
	if m.isStored(f) {
		written = "+" + written
	}
	return m.hide(written), nil
}

func (m *merge) stars() int {
	n := 0
	for _, it := range m.selection.items {
		if it.kind == starItem {
			n++
		}
	}
	return n
}

// isStored reports whether the driver makes something else of the stored value,
// by which the database sorts: SQLite's driver makes times of texts. It does so
// for columns only, so +column gives the text.
func (m *merge) isStored(f *schema.Field) bool {
	return !m.routing.mysql && (f == nil || f.GORMDataType == schema.Time || isTyped(f, "date", "time"))
}

// isTyped reports whether the column's type has one of the words in it.
func isTyped(f *schema.Field, words ...string) bool {
	kind := strings.ToLower(string(f.DataType))
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(kind, w) })
}

// field returns the model's field of a column, nil if there is none.
func (m *merge) field(column string) *schema.Field { return columnField(m.stmt.Schema, column) }

// sortable says why values of a column cannot be compared here. MySQL compares
// texts by a collation that a client does not know; SQLite by their bytes, unless
// the column says something else.
func (m *merge) sortable(f *schema.Field, column string) error {
	if err := m.bytewise(f, column); err != nil {
		return err
	}
	if f == nil {
		return nil // what comes back tells
	}
	if _, collated := f.TagSettings["COLLATE"]; collated || strings.Contains(strings.ToUpper(f.TagSettings["TYPE"]), "COLLATE") {
		return m.unmergeable(column + " is compared by its collation, which is not known here")
	}
	if m.routing.mysql && isTyped(f, "string", "char", "text", "enum", "set", "json") {
		return m.unmergeable(column + " is a text, which its collation compares; bytes do not follow it")
	}
	return nil
}

// bytewise says why texts of a SQLite column are not compared by their bytes.
func (m *merge) bytewise(f *schema.Field, column string) error {
	if m.routing.mysql || f != nil && slices.Contains(unlikeText, f.GORMDataType) {
		return nil
	}
	d, err := m.definition()
	if err != nil {
		return err
	}
	column = strings.ToLower(column)
	if d.collated[column] || m.joined && !d.columns[column] {
		return m.unmergeable(column + " is compared by its collation, which is not known here")
	}
	return nil
}

// unlikeText are the types of columns that hold no texts to compare.
var unlikeText = []schema.DataType{schema.Bool, schema.Int, schema.Uint, schema.Float, schema.Time, schema.Bytes}

// bytewiseText is bytewise for an expression, which takes the collation of a
// column in it.
func (m *merge) bytewiseText(text string) error {
	if m.routing.mysql {
		return nil
	}
	tokens, _ := m.routing.tokensOf(text)
	for _, t := range tokens {
		if t.Is(text, "COLLATE") {
			return m.unmergeable(text + " has a collation, which is not known here")
		}
		if !isName(t) {
			continue
		}
		if err := m.bytewise(nil, sqltext.Ident(text, t)); err != nil && !m.joined {
			return err
		}
	}
	return nil
}

// definition returns that of the first target's table, which is read once.
func (m *merge) definition() (definition, error) {
	if known, ok := m.routing.defined.Load(m.at.target); ok {
		return known.(definition), nil
	}
	ctx := m.stmt.Context
	c, err := m.beside(ctx, m.routing.router.DB(m.at.target.DB))
	if err != nil {
		return definition{}, err
	}
	d, err := readDefinition(ctx, c, m.at.target.Table)
	if err == nil && len(d.columns) > 0 {
		m.routing.defined.Store(m.at.target, d)
	}
	return d, m.inShard(m.at.target, err)
}

// locate finds the places of the sort keys among the columns.
func (m *merge) locate(columns []string) error {
	for i := range m.keys {
		k := &m.keys[i]
		k.at = slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, k.column) })
		if k.at < 0 {
			return m.unmergeable("the column " + k.column + " is missing in what came back")
		}
	}
	return nil
}

// sort puts rows of all shards into order.
func (m *merge) sort(set *resultSet) (err error) {
	if len(m.keys) == 0 {
		return nil
	}
	if err := m.locate(set.columns); err != nil {
		return err
	}
	slices.SortStableFunc(set.rows, func(a, b []any) int {
		for _, k := range m.keys {
			c, failure := m.compare(set, k.at, a[k.at], b[k.at])
			if failure != nil && err == nil {
				err = failure
			}
			if k.desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return err
}

// compare compares two values of column i as the databases do: NULL is first.
func (m *merge) compare(set *resultSet, i int, a, b any) (int, error) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), nil
		}
	}
	if a == nil || b == nil {
		return cmp.Compare(rank(a), rank(b)), nil
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return x.Cmp(y), nil
		}
	}
	if x, y := infinity(a), infinity(b); (x != 0 || y != 0) && rank(a) == rank(b) {
		return cmp.Compare(x, y), nil
	}
	if x, ok := a.(time.Time); ok {
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	}
	if rank(a) != rank(b) {
		return cmp.Compare(rank(a), rank(b)), nil
	}
	x, y := bytesOf(a), bytesOf(b)
	switch m.likeness(set, i) {
	case decimals:
		p, okP := new(big.Rat).SetString(string(x))
		q, okQ := new(big.Rat).SetString(string(y))
		if okP && okQ {
			return p.Cmp(q), nil
		}
	case collated:
		return 0, m.unmergeable(m.written(set.columns[i]) + " is a text, which its collation compares; bytes do not follow it")
	}
	return bytes.Compare(x, y), nil
}

// likeness is how texts of a column are compared.
type likeness uint8

const (
	binary   likeness = iota // by their bytes
	decimals                 // as numbers
	collated                 // in a way that is not known here
)

func (m *merge) likeness(set *resultSet, i int) likeness {
	if !m.routing.mysql {
		return binary
	}
	name := ""
	if i < len(set.types) && set.types[i] != nil {
		name = strings.TrimPrefix(strings.ToUpper(set.types[i].DatabaseTypeName()), "UNSIGNED ")
	}
	switch name {
	case "DECIMAL", "INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "FLOAT", "DOUBLE", "YEAR":
		return decimals
	case "BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "BIT", "DATE", "DATETIME", "TIMESTAMP":
		return binary
	}
	return collated
}

// rank orders values of different kinds, as SQLite has them in one column.
func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case string, time.Time:
		return 2
	case []byte:
		return 3
	}
	return 1
}

func bytesOf(v any) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return fmt.Append(nil, v)
}

// infinity is 1 or -1 for an infinite float, and otherwise 0.
func infinity(v any) int {
	switch f, _ := v.(float64); {
	case math.IsInf(f, 1):
		return 1
	case math.IsInf(f, -1):
		return -1
	}
	return 0
}

// number returns an exact value of a number, false for an infinite one.
func number(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case uint64:
		return new(big.Rat).SetUint64(v), true
	case bool:
		if v {
			return big.NewRat(1, 1), true
		}
		return new(big.Rat), true
	case float64:
		r := new(big.Rat).SetFloat64(v)
		return r, r != nil
	case float32:
		return number(float64(v))
	}
	return nil, false
}
