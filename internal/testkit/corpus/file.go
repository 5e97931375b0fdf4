// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Placement is the location of a table's rows.
type Placement string

// The placements.
const (
	Sharded   Placement = "sharded"   // on the shard of their key
	Broadcast Placement = "broadcast" // in every database
	Home      Placement = "home"      // only in the home database
)

// Table is a table of a [File].
type Table struct {
	Name      string
	Create    string // its CREATE TABLE
	Placement Placement
	// The following are empty unless it is sharded.
	Key   string
	Group string
	Also  []string // the columns that carry the slot of the key
	// Parents are tables by the columns that hold their ids: rows are in the slots of the rows to which they refer.
	Parents map[string]string
}

// Dialect names the servers that accept a statement.
type Dialect string

// The dialects.
const (
	Any    Dialect = "any"    // MySQL, MariaDB and SQLite
	MySQL  Dialect = "mysql"  // MySQL and MariaDB
	SQLite Dialect = "sqlite" // SQLite
)

// Outcome is the result of planning a statement.
type Outcome string

// The outcomes.
const (
	// One: the whole text goes to one shard.
	One Outcome = "one"
	// Scatter: several shards are queried, and their results are combined. A write is Scatter, too,
	// if a unique column is searched for in all shards before it goes to one of them.
	Scatter Outcome = "scatter"
	// AtHome: it goes to the home database.
	AtHome Outcome = "home"
	// Everywhere: it reads one copy of broadcast tables, or writes all of them.
	Everywhere Outcome = "broadcast"
	// Refused: it is not sent.
	Refused Outcome = "refused"
)

// Statement is a statement of a [File].
type Statement struct {
	Name    string
	From    string // the application that sends it
	Line    int    // line in the file
	Text    string // without the semicolon
	Args    []any  // each an int64, float64, string or nil
	Dialect Dialect
	With    Outcome // if the ids carry the slot
	Without Outcome // if they do not
	Because string  // what to do instead of a refused statement
}

// For reports whether a server of the dialect accepts the statement.
func (s Statement) For(d Dialect) bool { return s.Dialect == Any || s.Dialect == d }

// File has the statements of applications of one kind.
type File struct {
	Name       string // the name of the kind
	Tables     []Table
	Statements []Statement
}

// ReadDir reads the files *.sql of a directory in the order of their names.
func ReadDir(dir string) ([]File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no files *.sql", dir)
	}
	files := make([]File, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name) //nolint:gosec // the test's own directory
		if err != nil {
			return nil, err
		}
		f, err := Read(strings.TrimSuffix(filepath.Base(name), ".sql"), string(text))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Read reads the text of a file. Its error names the invalid line.
func Read(name, text string) (File, error) {
	f := File{Name: name}
	for _, b := range blocksOf(text) {
		if err := f.add(b); err != nil {
			return File{}, fmt.Errorf("%s.sql:%d: %w", name, b.line, err)
		}
	}
	for _, s := range f.Statements {
		if err := f.check(s); err != nil {
			return File{}, fmt.Errorf("%s.sql:%d: %w", name, s.Line, err)
		}
	}
	return f, nil
}

// add parses one block.
func (f *File) add(b block) error {
	switch {
	case b.sql == "" && !b.is("name"):
		return nil
	case strings.HasPrefix(b.sql, "CREATE TABLE "):
		t, err := tableOf(b)
		if err != nil {
			return err
		}
		if _, twice := f.table(t.Name); twice {
			return fmt.Errorf("table %q occurs twice", t.Name)
		}
		f.Tables = append(f.Tables, t)
		return nil
	default:
		s, err := statementOf(b)
		if err != nil {
			return err
		}
		for _, other := range f.Statements {
			if other.Name == s.Name {
				return fmt.Errorf("the name %q occurs twice", s.Name)
			}
		}
		f.Statements = append(f.Statements, s)
		return nil
	}
}

func (f *File) table(name string) (Table, bool) {
	for _, t := range f.Tables {
		if strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return Table{}, false
}
