// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"strings"
)

// Kind is the kind of a column's values, by which hashes distinguish them.
type Kind int

// The kinds of columns.
const (
	Number  Kind = iota
	Quoted       // text
	Binary       // bytes
	Literal      // the database returns a literal
)

// Column is a column that is copied.
type Column struct {
	Name, Type string
	Definition string // the type with its arguments, as the database writes it; "" in SQLite
	charset    string // of text columns on MySQL and MariaDB
	kind       Kind
	Nullable   bool
	cast       bool   // read as text, because drivers convert it to other types
	empty      uint64 // the bit of a SET's member that is the empty text
}

// isFloat: the column holds binary floating-point numbers.
func (c Column) isFloat() bool { return c.Type == "float" || c.Type == "double" }

// ForeignKey is a foreign key of a described table, or one that refers to it.
type ForeignKey struct {
	name    string   // in SQLite its number, which is unique within its child
	Table   string   // the other table, by its name when this one was described
	Columns []string // of the child
	Refers  []string // of the parent, for each column; "" is its primary key
	Deletes bool     // changes rows of the child when a row of the parent is deleted
	Updates bool     // changes rows of the child when the referenced columns are updated
	// Unseen says why no trigger on the parent sees all changes of the referenced columns; ""
	// when one does.
	Unseen string

	rules string // ON DELETE … ON UPDATE …

	drop, add string // on PostgreSQL, which writes definitions down
}

// Statements returns the statements that drop a foreign key to a parent, and that create it
// again.
func (fk ForeignKey) Statements(child, parent string) (drop, add string) {
	if fk.drop != "" {
		return fk.drop, fk.add
	}
	m := mysqlServer{}
	list := func(names []string) string {
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = m.Quote(name)
		}
		return "(" + strings.Join(quoted, ", ") + ")"
	}
	return fmt.Sprintf("ALTER TABLE %s DROP FOREIGN KEY %s", m.Quote(child), m.Quote(fk.name)),
		fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY %s REFERENCES %s %s %s", m.Quote(child), m.Quote(fk.name), list(fk.Columns), m.Quote(parent), list(fk.Refers), fk.rules)
}

// Cascades reports whether the key changes rows of the child by itself.
func (fk ForeignKey) Cascades() bool { return fk.Deletes || fk.Updates }

// Table is the definition of a table, as read from a database.
type Table struct {
	Name      string
	Key       string   // the single integer primary key
	Columns   []Column // without generated ones
	Generated []string // the names of these
	Uniques   [][]string
	Parents   []ForeignKey
	Children  []ForeignKey
	Triggers  []string
	Own       []OwnTrigger // those user triggers on MariaDB and MySQL
	Widened   []string     // columns that are BIGINT on the shards: the key and references; nil: the key
}

// HasKeys reports whether the table has foreign keys, or others refer to it.
func (s Table) HasKeys() bool { return len(s.Parents) > 0 || len(s.Children) > 0 }

// wide returns the columns that hold ids.
func (s Table) wide() []string {
	if len(s.Widened) == 0 {
		return []string{s.Key}
	}
	return s.Widened
}

// Column finds a column by its name, ignoring case.
func (s Table) Column(name string) (Column, bool) {
	for _, c := range s.Columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Column{}, false
}

// keyColumn is one column of a foreign key, as a database lists it.
type keyColumn struct{ child, parent, name, column, refers, onDelete, onUpdate, drop, add string }

// addKey adds one column of a foreign key of the table or to it. The columns of one key
// must be added one after the other.
func (s *Table) addKey(k keyColumn) {
	if strings.EqualFold(k.child, s.Name) {
		s.Parents = k.addTo(s.Parents, k.parent)
	}
	if strings.EqualFold(k.parent, s.Name) {
		s.Children = k.addTo(s.Children, k.child)
	}
}

func (k keyColumn) addTo(keys []ForeignKey, other string) []ForeignKey {
	last := len(keys) - 1
	if last < 0 || keys[last].name != k.name || keys[last].Table != other {
		keys = append(keys, ForeignKey{name: k.name, Table: other, Deletes: cascades(k.onDelete), Updates: cascades(k.onUpdate), rules: "ON DELETE " + k.onDelete + " ON UPDATE " + k.onUpdate, drop: k.drop, add: k.add})
		last++
	}
	keys[last].Columns = append(keys[last].Columns, k.column)
	keys[last].Refers = append(keys[last].Refers, k.refers)
	return keys
}

// CheckKinds refuses to copy between PostgreSQL and another kind of database: the text of a
// value may not be valid on the other.
func CheckKinds(source, side *Database) error {
	if is, of := side.Name(), source.Name(); is != of && (is == "postgres" || of == "postgres") {
		return fmt.Errorf("%w: database %s is a %s, the source a %s", ErrUnsupported, side.Label, is, of)
	}
	return nil
}

// MakeLike creates a table for the rows of a source table in the database of a session,
// with the definition of the source table.
func MakeLike(ctx context.Context, s *Session, source *Database, t Table, name string) error {
	if s.Database.Name() != source.Name() {
		return fmt.Errorf("%w: it is a %s, the source a %s; create the table by hand", ErrUnsupported, s.Database.Name(), source.Name())
	}
	var statements []string
	err := source.Do(ctx, func(from *Session) (err error) {
		statements, err = source.TargetDefinition(ctx, from, t, name)
		return err
	})
	if err != nil {
		return err
	}
	return s.ExecAll(ctx, statements)
}
