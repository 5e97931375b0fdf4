// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Capture is the input for the triggers on one table.
type Capture struct {
	Table       string
	Log         string
	Number      int
	Key         string
	Uniques     [][]string
	TriggerName func(event string) string
	Below       []Dependent // tables whose rows have to be checked along with this table's
}

// Dependent is a table whose rows are changed by foreign keys, or move to another shard,
// when a column of Watch changes. Path leads from it up to the table with the trigger.
type Dependent struct {
	Number int
	Key    string
	Path   []Link
	Watch  []string
	Routed bool // its rows move to another shard with the row above
}

// KeyWatch is a trigger on a table outside of the job. It refuses changes of the columns
// that a foreign key of a table of the job refers to and would cascade.
type KeyWatch struct {
	Name, Job string
	Table     string
	Columns   []string
	Of        []string // the tables with the foreign keys
}

// Link is a foreign key to the next table up.
type Link struct {
	Child           string
	Columns, Refers []string // each to one
}

// Trigger is a trigger and its expected definition.
type Trigger struct {
	name, table, body string
	Create            string // the statement that makes it
	mode              string // the sql_mode that it is made under; "": the session's
}

// joined joins the tables of a path, from the row that changes by itself up to the table
// just below the one with the trigger.
func joined(d dialect.Dialect, path []Link) string {
	tables := []string{d.Quote(path[0].Child)}
	for i, l := range path[:len(path)-1] {
		above := path[i+1].Child
		tables = append(tables, d.Quote(above)+" ON "+l.where(d, func(refers string) string { return "= " + ColumnOf(d, above, refers) }))
	}
	return strings.Join(tables, " JOIN ")
}

// where compares each of the link's columns with an expression, which compared makes from
// the referenced column.
func (l Link) where(d dialect.Dialect, compared func(refers string) string) string {
	all := make([]string, len(l.Columns))
	for i, column := range l.Columns {
		all[i] = ColumnOf(d, l.Child, column) + " " + compared(l.Refers[i])
	}
	return strings.Join(all, " AND ")
}

// Is reports whether two links are the same.
func (l Link) Is(other Link) bool {
	return l.Child == other.Child && slices.Equal(l.Columns, other.Columns) && slices.Equal(l.Refers, other.Refers)
}

// Top is what refers to the table with the trigger.
func (d Dependent) Top() Link { return d.Path[len(d.Path)-1] }

// notedBelow is the statement that notes the rows of a dependent table whose columns that
// refer to the table with the trigger satisfy a condition.
func notedBelow(d dialect.Dialect, log string, of Dependent, compared func(refers string) string) string {
	return fmt.Sprintf("INSERT INTO %s (tbl, id) SELECT %d, %s FROM %s WHERE %s", d.Quote(log), of.Number,
		ColumnOf(d, of.Path[0].Child, of.Key), joined(d, of.Path), of.Top().where(d, compared))
}

// Below is what a log has for a table number when the rows that depend on a row of this
// table have to be checked. A PostgreSQL trigger cannot list these rows: others may add
// rows until its transaction is committed, and in REPEATABLE READ the trigger does not see
// them.
func Below(table int) int { return -1 - table }

// NoteBelow is the statement that notes the rows of a dependent table whose parents have
// these keys.
func NoteBelow(d dialect.Dialect, log string, of Dependent, keys []int64) string {
	return notedBelow(d, log, of, func(string) string { return "IN (" + IDList(keys) + ")" })
}

// StillBelow selects those of the keys of a dependent table that still have to be checked
// because of log entries of the table above, which has this number.
func StillBelow(d dialect.Dialect, log string, of Dependent, above int, keys []int64) string {
	key := ColumnOf(d, of.Path[0].Child, of.Key)
	marked := fmt.Sprintf("IN (SELECT id FROM %s WHERE tbl = %d)", d.Quote(log), Below(above))
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %[1]s IN (%[4]s)", key, joined(d, of.Path), of.Top().where(d, func(string) string { return marked }), IDList(keys))
}
