// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Capture is what triggers on one table need to know.
type Capture struct {
	Table       string
	Log         string
	Number      int
	Key         string
	Uniques     [][]string
	TriggerName func(event string) string
	Below       []Dependent // rows that have to be looked at along with the table's
}

// Dependent is a table whose rows foreign keys change, or move, when a column of
// Watch does: Path leads from it up to the table with the trigger.
type Dependent struct {
	Number int
	Key    string
	Path   []Link
	Watch  []string
	Routed bool // the rows move by themselves
}

// KeyWatch is a trigger on a table that is not in the job, which refuses changes of the
// columns that a foreign key of a table of the job refers to and would carry on by
// itself.
type KeyWatch struct {
	Name, Job string
	Table     string
	Columns   []string
	Of        []string // the tables with the foreign keys
}

// Link is what refers to the next table up.
type Link struct {
	Child           string
	Columns, Refers []string // each to one
}

// Trigger is one as it is to be.
type Trigger struct {
	name, table, body string
	Create            string // the statement that makes it
	mode              string // the sql_mode that it is made under; "": the session's
}

// joined are the tables of a path, from the row that changes by itself up to the
// one just below the table with the trigger.
func joined(d dialect.Dialect, path []Link) string {
	tables := []string{d.Quote(path[0].Child)}
	for i, l := range path[:len(path)-1] {
		above := path[i+1].Child
		tables = append(tables, d.Quote(above)+" ON "+l.where(d, func(refers string) string { return "= " + ColumnOf(d, above, refers) }))
	}
	return strings.Join(tables, " JOIN ")
}

// where says of each of the link's columns what it is compared with, which may be
// made of the one that it refers to.
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

// notedBelow is the statement that notes rows of a dependent table for which the columns
// that refer to the table with the trigger fulfil a condition.
func notedBelow(d dialect.Dialect, log string, of Dependent, compared func(refers string) string) string {
	return fmt.Sprintf("INSERT INTO %s (tbl, id) SELECT %d, %s FROM %s WHERE %s", d.Quote(log), of.Number,
		ColumnOf(d, of.Path[0].Child, of.Key), joined(d, of.Path), of.Top().where(d, compared))
}

// Below stands in a log for the number of a table when the rows that lie where one of its
// rows does have to be looked at. On PostgreSQL a trigger cannot list them: others may add
// to them until its transaction is committed, and in REPEATABLE READ it sees none of that.
func Below(table int) int { return -1 - table }

// NoteBelow is the statement that notes the rows of a dependent table that lie where rows
// with these keys do.
func NoteBelow(d dialect.Dialect, log string, of Dependent, keys []int64) string {
	return notedBelow(d, log, of, func(string) string { return "IN (" + IDList(keys) + ")" })
}

// StillBelow selects those of the keys of a dependent table whose rows have to be looked at
// because of what a log has of the table above, which has this number.
func StillBelow(d dialect.Dialect, log string, of Dependent, above int, keys []int64) string {
	key := ColumnOf(d, of.Path[0].Child, of.Key)
	marked := fmt.Sprintf("IN (SELECT id FROM %s WHERE tbl = %d)", d.Quote(log), Below(above))
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %[1]s IN (%[4]s)", key, joined(d, of.Path), of.Top().where(d, func(string) string { return marked }), IDList(keys))
}
