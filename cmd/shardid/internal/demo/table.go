// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// table is a table that is sharded.
type table struct {
	name    string
	key     string // its primary key, which numbers the rows
	by      string // its sharding key: the primary key, or the parent's
	next    int64  // the lowest id the source has not given
	rows    int64
	unique  []string // a message about each unique key; none is kept
	strict  bool     // whether SQLite checks the types of values
	columns []column
	keyAt   int // the position of key among the columns
	byAt    int // the position of by
}

// column is one column as the source declares it.
type column struct {
	name      string
	typ       string
	collation string // "" for SQLite's own
	notNull   bool
	fallback  string // the DEFAULT, "" for none
}

// index returns the position of a column, -1 if there is none.
func (t *table) index(name string) int {
	for i, c := range t.columns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// keyOf returns the key of a row.
func (t *table) keyOf(row []any) int64 { return integer(row[t.keyAt]) }

// integer returns v, which is known to be an integer.
func integer(v any) int64 {
	n, ok := v.(int64)
	if !ok {
		panic(fmt.Sprintf("bug: a key of type %T", v))
	}
	return n
}

func quote(name string) string { return dialect.SQLite{}.Quote(name) }

// selectColumns lists the columns as expressions, so that the driver returns them as they
// are stored. It would turn the text in a DATETIME column into a time, which could not be
// stored again byte by byte, but does not know the type of an expression.
func (t *table) selectColumns() string {
	var list []string
	for _, c := range t.columns {
		list = append(list, "+"+quote(c.name))
	}
	return strings.Join(list, ", ")
}

// selectAll reads the rows of a physical table in the order of their keys.
func (t *table) selectAll(physical string) string {
	return "SELECT " + t.selectColumns() + " FROM " + quote(physical) + " ORDER BY " + quote(t.key)
}

// selectBy reads the rows with one value of a column, as an application would.
func (t *table) selectBy(column string) string {
	return "SELECT " + t.columnList() + " FROM " + quote(t.name) + " WHERE " + quote(column) + " = ?"
}

func (t *table) columnList() string {
	var list []string
	for _, c := range t.columns {
		list = append(list, quote(c.name))
	}
	return strings.Join(list, ", ")
}

// insertRows inserts n rows.
func (t *table) insertRows(n int) string {
	group := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	return "INSERT INTO " + quote(t.name) + " (" + t.columnList() + ") VALUES " + group + strings.Repeat(", "+group, n-1)
}

// updateBy sets columns of the row with a key and a sharding key.
func (t *table) updateBy(columns []string) string {
	var set []string
	for _, c := range columns {
		set = append(set, quote(c)+" = ?")
	}
	return "UPDATE " + quote(t.name) + " SET " + strings.Join(set, ", ") + " WHERE " + quote(t.key) + " = ? AND " + quote(t.by) + " = ?"
}

// deleteBy deletes the rows with one sharding key.
func (t *table) deleteBy() string {
	return "DELETE FROM " + quote(t.name) + " WHERE " + quote(t.by) + " = ?"
}

// createTable declares the columns as in the source, without foreign keys, CHECK and
// UNIQUE: new rows have copied values, and a shard has only some of the rows to which the
// keys refer.
func (t *table) createTable() string {
	var defs []string
	for _, c := range t.columns {
		defs = append(defs, t.define(c))
	}
	options := ""
	if t.strict {
		options = " STRICT"
	}
	return "CREATE TABLE " + quote(t.name) + " (" + strings.Join(defs, ", ") + ")" + options
}

func (t *table) define(c column) string {
	if c.name == t.key {
		return quote(c.name) + " INTEGER PRIMARY KEY AUTOINCREMENT"
	}
	def := quote(c.name)
	if c.typ != "" {
		def += " " + c.typ
	}
	if c.notNull {
		def += " NOT NULL"
	}
	switch {
	case c.fallback == "":
	case strings.HasPrefix(c.fallback, `"`): // a string, except between parentheses
		def += " DEFAULT " + c.fallback
	default:
		def += " DEFAULT (" + c.fallback + ")"
	}
	if c.collation != "" {
		def += " COLLATE " + quote(c.collation)
	}
	return def
}

// createIndex creates an index on the sharding key.
func (t *table) createIndex() string {
	return "CREATE INDEX " + quote(t.name+"_by_parent") + " ON " + quote(t.name) + " (" + quote(t.by) + ")"
}

// plainType matches types that can be declared in the same words.
var plainType = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_]*(?: [A-Za-z_][A-Za-z0-9_]*)*(?: ?\( ?[+-]?[0-9.]+ ?(?:, ?[+-]?[0-9.]+ ?)?\))?)?$`)
