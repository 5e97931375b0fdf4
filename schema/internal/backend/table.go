// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"strings"
)

// Kind is what a column holds, as hashes see it.
type Kind int

// The kinds of columns.
const (
	Number  Kind = iota
	Quoted       // text
	Binary       // bytes
	Literal      // the database writes a literal
)

// Column is a column that is copied.
type Column struct {
	Name, Type string
	charset    string // of texts on servers
	kind       Kind
	Nullable   bool
	cast       bool // read as text, as drivers read it as something else
}

// isFloat: the column holds binary floating-point numbers.
func (c Column) isFloat() bool { return c.Type == "float" || c.Type == "double" }

// ForeignKey is one of a table described, or one that points to it.
type ForeignKey struct {
	name    string   // in SQLite its number, which is its child's alone
	Table   string   // the other one, as it was called when the table was described
	Columns []string // of the child
	Refers  []string // of the parent, for each column; "" is its primary key
	Deletes bool     // changes rows of the child by itself when one of the parent is deleted
	Updates bool     // … when what it refers to is updated
	// Unseen says why no trigger on the parent sees all changes of what the key refers
	// to; "" when one does.
	Unseen string

	rules string // ON DELETE … ON UPDATE …

	drop, add string // on PostgreSQL, which writes definitions down
}

// Statements drop the key of a table of a server that refers to a parent, and make it again.
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

// Table is what a database says about a table.
type Table struct {
	Name     string
	Key      string   // the single integer primary key
	Columns  []Column // without generated ones
	Uniques  [][]string
	Parents  []ForeignKey
	Children []ForeignKey
	Triggers []string
	Own      []OwnTrigger // those of servers that are not a job's
	Widened  []string     // columns for which the shards have wide ones: the key and references; nil: the key
}

// HasKeys reports whether the table has foreign keys, or others refer to it.
func (s Table) HasKeys() bool { return len(s.Parents) > 0 || len(s.Children) > 0 }

// wide are the columns that hold ids.
func (s Table) wide() []string {
	if len(s.Widened) == 0 {
		return []string{s.Key}
	}
	return s.Widened
}

// Column finds a column by its name, whatever its case.
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

// addKey takes a column of a foreign key of the table or to it; those of one key
// come one after the other.
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

// CheckKinds refuses a way between PostgreSQL and another kind of database: what one writes
// down of a value, the other need not read.
func CheckKinds(source, side *Database) error {
	if is, of := side.Name(), source.Name(); is != of && (is == "postgres" || of == "postgres") {
		return fmt.Errorf("%w: database %s is a %s, the source a %s", ErrUnsupported, side.Label, is, of)
	}
	return nil
}

// MakeLike makes a table for rows of one of a source in the database of a session, with the
// definition that it has there.
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
