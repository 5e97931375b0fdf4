// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// block is the lines between two blank lines.
type block struct {
	line   int // the number of the first line, from 1
	fields []field
	sql    string // with its semicolon; "" for a block of comments
}

// field is a comment, usually of the form "-- word: text".
type field struct{ word, text string }

// is reports whether the block begins with the field.
func (b block) is(word string) bool { return len(b.fields) > 0 && b.fields[0].word == word }

func blocksOf(text string) []block {
	var blocks []block
	var lines []string
	first := 1
	flush := func(next int) {
		if len(lines) > 0 {
			blocks = append(blocks, blockOf(first, lines))
		}
		lines, first = nil, next
	}
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			flush(i + 2)
			continue
		}
		lines = append(lines, line)
	}
	flush(0)
	return blocks
}

func blockOf(first int, lines []string) block {
	b := block{line: first}
	var sql []string
	for _, line := range lines {
		comment, ok := strings.CutPrefix(line, "--")
		if !ok {
			sql = append(sql, line)
			continue
		}
		word, text, _ := strings.Cut(comment, ":")
		b.fields = append(b.fields, field{strings.TrimSpace(word), strings.TrimSpace(text)})
	}
	b.sql = strings.Join(sql, "\n")
	return b
}

// tableOf reads a CREATE TABLE and its placement.
func tableOf(b block) (Table, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(b.sql, "CREATE TABLE "), " ")
	t := Table{Name: name, Create: strings.TrimSuffix(b.sql, ";")}
	if len(b.fields) != 1 {
		return t, fmt.Errorf("table %q has %d comments, want one that says where its rows lie", name, len(b.fields))
	}
	t.Placement = Placement(b.fields[0].word)
	text := b.fields[0].text
	switch t.Placement {
	case Broadcast, Home:
	case Sharded:
		text = t.readKey(text)
	default:
		return t, fmt.Errorf("table %q is %q, want sharded, broadcast or home", name, t.Placement)
	}
	if text != name {
		return t, fmt.Errorf("the placement of table %q is one of %q", name, text)
	}
	if t.Placement == Sharded {
		return t, t.checkColumns()
	}
	return t, nil
}

func (t *Table) checkColumns() error {
	for _, column := range slices.Concat([]string{t.Key}, t.Also, slices.Sorted(maps.Keys(t.Parents))) {
		if !strings.Contains(t.Create, " "+column+" BIGINT") && !strings.Contains(t.Create, "("+column+" BIGINT") {
			return fmt.Errorf("table %q has no column %s BIGINT", t.Name, column)
		}
	}
	return nil
}

// readKey reads "items by user_id in group shop, also id, order_id; order_id refers to orders" and returns the table's name.
func (t *Table) readKey(text string) string {
	text, parents, _ := strings.Cut(text, "; ")
	for parents != "" {
		var parent string
		parent, parents, _ = strings.Cut(parents, "; ")
		if t.Parents == nil {
			t.Parents = map[string]string{}
		}
		column, of, _ := strings.Cut(parent, " refers to ")
		t.Parents[column] = of
	}
	text, also, carries := strings.Cut(text, ", also ")
	if carries {
		t.Also = strings.Split(also, ", ")
	}
	text, t.Group, _ = strings.Cut(text, " in group ")
	text, t.Key, _ = strings.Cut(text, " by ")
	return text
}

// statementOf reads a statement and its fields.
func statementOf(b block) (Statement, error) {
	s := Statement{Line: b.line}
	var args string
	into := map[string]*string{
		"name": &s.Name, "from": &s.From, "args": &args, "dialect": (*string)(&s.Dialect),
		"with": (*string)(&s.With), "without": (*string)(&s.Without), "because": &s.Because,
	}
	for _, f := range b.fields {
		value, known := into[f.word]
		if !known {
			return s, fmt.Errorf("%q is no field, or occurs twice", f.word)
		}
		if f.text == "" {
			return s, fmt.Errorf("%q is empty", f.word)
		}
		*value = f.text
		delete(into, f.word)
	}
	for word := range into {
		if !slices.Contains([]string{"args", "dialect", "because"}, word) {
			return s, fmt.Errorf("statement %q lacks %q", s.Name, word)
		}
	}
	return s, s.read(args, b.sql)
}

// read parses the fields that are not plain texts.
func (s *Statement) read(args, text string) (err error) {
	if s.Dialect == "" {
		s.Dialect = Any
	} else if err := oneOf(s.Dialect, MySQL, SQLite); err != nil {
		return fmt.Errorf("dialect: %w", err)
	}
	if err := knownOutcome(s.With); err != nil {
		return fmt.Errorf("with: %w", err)
	}
	if err := knownOutcome(s.Without); err != nil {
		return fmt.Errorf("without: %w", err)
	}
	var ended bool
	if s.Text, ended = strings.CutSuffix(text, ";"); !ended {
		return fmt.Errorf("statement %q does not end with a semicolon", s.Name)
	}
	if s.Args, err = argsOf(args); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	return nil
}

func knownOutcome(o Outcome) error { return oneOf(o, One, Scatter, AtHome, Everywhere, Refused) }

func oneOf[T ~string](got T, known ...T) error {
	if !slices.Contains(known, got) {
		return fmt.Errorf("%q is none of %v", got, known)
	}
	return nil
}

// argsOf reads literals that are separated by commas.
func argsOf(text string) ([]any, error) {
	var args []any
	sign := ""
	scanner := sqltext.NewScanner(text, sqltext.SQLite)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		switch literal := t.Text(text); {
		case literal == "-":
			sign = "-"
		case literal == ",":
		case strings.EqualFold(literal, "NULL"):
			args = append(args, nil)
		case t.Kind == sqltext.String:
			args = append(args, strings.ReplaceAll(literal[1:len(literal)-1], "''", "'"))
		case t.Kind == sqltext.Number:
			n, err := numberOf(sign + literal)
			if err != nil {
				return nil, err
			}
			args, sign = append(args, n), ""
		default:
			return nil, fmt.Errorf("%q is no number, text or NULL", literal)
		}
	}
	return args, nil
}

func numberOf(literal string) (any, error) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return n, nil
	}
	return strconv.ParseFloat(literal, 64)
}
