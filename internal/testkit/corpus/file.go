// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Placement says where the rows of a table lie.
type Placement string

// The placements.
const (
	Sharded   Placement = "sharded"   // on the shard of their key
	Broadcast Placement = "broadcast" // in every database
	Home      Placement = "home"      // in the home database alone
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
}

// Dialect names the servers that take a statement.
type Dialect string

// The dialects.
const (
	Any    Dialect = "any"    // MySQL, MariaDB and SQLite
	MySQL  Dialect = "mysql"  // MySQL and MariaDB
	SQLite Dialect = "sqlite" // SQLite
)

// Outcome is what becomes of a statement.
type Outcome string

// The outcomes.
const (
	// One: it goes whole to one shard.
	One Outcome = "one"
	// Scatter: several shards are asked, and their answers make one. It is also a
	// write with a unique column that is looked up in all shards before it goes to
	// one of them.
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
	From    string // who sends it
	Line    int    // in the file
	Text    string // without the semicolon
	Args    []any  // each an int64, float64, string or nil
	Dialect Dialect
	With    Outcome // when the ids carry the slot
	Without Outcome // when they do not
	Because string  // what the user of a refused statement should read
}

// For reports whether a server of the dialect takes the statement.
func (s Statement) For(d Dialect) bool { return s.Dialect == Any || s.Dialect == d }

// File is what applications of one sort send.
type File struct {
	Name       string // of the sort
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

// Read reads the text of a file. An error names the line that is wrong.
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

// add takes one block in.
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
