// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/internal/testkit/tablewalk"
)

// eachText calls do with every text in testdata, in every dialect.
func eachText(t testing.TB, do func(text string, d Dialect)) {
	t.Helper()
	for _, file := range testdata(t) {
		for _, s := range readSections(t, file) {
			for _, d := range dialects {
				do(s.text, d)
			}
		}
	}
}

// walk visits every node of a tree with the span of its parent. It visits a row that shares the
// expressions of another row without them.
func walk(v reflect.Value, around Span, visit func(node reflect.Value, span, around Span)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), around, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), around, visit)
		}
	case reflect.Struct:
		if v.Type() == spanType || v.Type() == reflect.TypeFor[Statement]() { // see walkStatement
			return
		}
		if f := v.FieldByName("Span"); f.IsValid() && !v.IsZero() {
			span := f.Interface().(Span)
			visit(v, span, around)
			around = span
		}
		if row, ok := v.Interface().(Row); ok && row.Shares() {
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), around, visit)
		}
	}
}

// walkStatement visits the nodes of the tree of a statement.
func walkStatement(s *Statement, visit func(node reflect.Value, span, around Span)) {
	whole := Span{0, len(s.Text)}
	walk(reflect.ValueOf(s.Query), whole, visit)
	walk(reflect.ValueOf(s.Insert), whole, visit)
	walk(reflect.ValueOf(s.Change), whole, visit)
	for _, w := range s.Writes { // without the CTEs that they see, which are before them
		if in := w.Insert; in != nil {
			own := *in
			own.With = nil
			walk(reflect.ValueOf(&own), whole, visit)
		} else {
			own := *w.Change
			own.With = nil
			walk(reflect.ValueOf(&own), whole, visit)
		}
	}
}

// faults returns the errors of a tree that are errors for any text.
func faults(s *Statement, d Dialect) []string {
	var list []string
	complain := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if (s.Verb == Unknown) != (s.Why != "") || (s.Verb == Unknown) != (s.Query == nil && s.Insert == nil && s.Change == nil) {
		complain("verb %d, why %q", s.Verb, s.Why)
	}
	inTree := map[*Param]bool{}
	walkStatement(s, func(node reflect.Value, span, around Span) {
		if span.From < around.From || span.To > around.To || span.From > span.To {
			complain("%s has the span %v inside %v", node.Type().Name(), span, around)
		}
		switch n := node.Addr().Interface().(type) {
		case *Param:
			inTree[n] = true
		case *Table:
			if name := strings.ToLower(n.Name.Last().Name); name != "" && !slices.Contains(s.Names, name) {
				complain("the table %s is not among the names %v", name, s.Names)
			}
		}
	})
	list = append(list, paramFaults(s, d, inTree)...)
	return append(list, nameFaults(s, d)...)
}

// paramFaults returns the parameters of the text that are not in the tree.
func paramFaults(s *Statement, d Dialect, inTree map[*Param]bool) []string {
	if s.Verb == Unknown {
		return nil
	}
	var list []string
	for i, p := range s.Params {
		if i > 0 && p.From < s.Params[i-1].To {
			list = append(list, fmt.Sprintf("parameter %d stands before the one before it", i))
		}
		if !inTree[p] {
			list = append(list, fmt.Sprintf("parameter %d is not in the tree", i))
		}
	}
	shared := 0
	if s.Insert != nil {
		for _, r := range s.Insert.Rows {
			if r.Shares() {
				shared += scannedParams(r.Of(s.Text), d)
			}
		}
	}
	if got := scannedParams(s.Text, d); got != len(s.Params)+shared {
		list = append(list, fmt.Sprintf("%d and %d parameters are read, %d are in the text", len(s.Params), shared, got))
	}
	return list
}

func scannedParams(text string, d Dialect) int {
	n := 0
	scanner := sqltext.NewScanner(text, d.Rules())
	for t, ok := scanner.Next(); ok; t, ok = scanner.Next() {
		switch {
		case t.Kind == sqltext.Param && (d.Family != PostgreSQL || text[t.Start] == '$'),
			t.Kind == sqltext.Named && d.Family != PostgreSQL,
			t.Kind == sqltext.Word && d.Family == SQLite && (text[t.Start] == '@' || text[t.Start] == '$'):
			n++
		}
	}
	return n
}

// nameFaults returns the names after FROM, JOIN, INTO and UPDATE that are missing in Names.
func nameFaults(s *Statement, d Dialect) []string {
	var list []string
	tables := tablewalk.New(s.Text, d.Rules())
	for t, table, ok := tables.Next(); ok; t, table, ok = tables.Next() {
		before := strings.ToUpper(tables.Previous().Text(s.Text))
		if !table || !slices.Contains([]string{"FROM", "JOIN", "INTO", "UPDATE"}, before) || tables.Previous().Kind != sqltext.Word {
			continue
		}
		rest := tables.Rest()
		if next, _ := rest.NextCode(); next.Is(s.Text, ".") {
			continue // a schema
		}
		name := strings.ToLower(sqltext.Ident(s.Text, t))
		if t.Kind == sqltext.String {
			if d.Family != SQLite {
				continue
			}
			name = strings.ToLower(unquoted(name))
		}
		number := t.Kind == sqltext.Word && name[0] >= '0' && name[0] <= '9' && (d.Family == SQLite || d.Family == PostgreSQL)
		none := t.Kind == sqltext.Word && name == "dual" && (d.Family == MySQL || d.Family == MariaDB)
		if name == "" || number || none || isSyntax(name) || slices.Contains(s.Names, name) {
			continue
		}
		list = append(list, fmt.Sprintf("%q is not among the names %v", name, s.Names))
	}
	return list
}

// isSyntax reports a word between FROM and a name.
func isSyntax(word string) bool {
	return sqltext.Reserved(word) || slices.Contains([]string{
		"only", "lateral", "of", "low_priority", "ignore", "quick", "nowait", "skip", "true", "false", "null", "case",
		"with", "wait", "natural", "cross", "inner", "left", "right", "full", "values", "limit", "for", "offset", "fetch", "returning",
	}, word)
}

func TestSpansNestAndParametersAndTablesAreComplete(t *testing.T) {
	eachText(t, func(text string, d Dialect) {
		for _, fault := range faults(Parse(text, d), d) {
			t.Errorf("%+v\n%s\n%s", d, text, fault)
		}
	})
}

func TestATextIsParsedToTheSameTreeEachTime(t *testing.T) {
	eachText(t, func(text string, d Dialect) {
		if a, b := dump(Parse(text, d)), dump(Parse(text, d)); a != b {
			t.Errorf("%s\nread as\n%s\nand as\n%s", text, a, b)
		}
	})
}

// renamed returns the text with other names of the same length for its tables.
func renamed(s *Statement) string {
	text := []byte(s.Text)
	walkStatement(s, func(node reflect.Value, _, _ Span) {
		table, ok := node.Addr().Interface().(*Table)
		if !ok || len(table.Name.Parts) == 0 {
			return
		}
		id := table.Name.Last()
		from, to := id.From, id.To
		if len(id.Name) < to-from {
			from, to = from+1, to-1
		}
		for i := from; i < to; i++ {
			text[i] = 'q'
		}
	})
	return string(text)
}

// shape prints a tree without its texts and names.
func shape(s *Statement) string {
	var out strings.Builder
	fmt.Fprintln(&out, s.Verb, s.Executable, s.Limiting, len(s.Params))
	walkStatement(s, func(node reflect.Value, span, _ Span) {
		fmt.Fprintln(&out, node.Type().Name(), span)
		for i := range node.NumField() {
			if f := node.Field(i); f.CanInt() || f.CanUint() || f.Kind() == reflect.Bool {
				fmt.Fprintln(&out, " ", node.Type().Field(i).Name, f.Interface())
			}
		}
	})
	return out.String()
}

func TestOtherNamesOfTablesGiveTheSameTree(t *testing.T) {
	read := 0
	eachText(t, func(text string, d Dialect) {
		s := Parse(text, d)
		if s.Verb == Unknown {
			return
		}
		read++
		if other := Parse(renamed(s), d); shape(other) != shape(s) {
			t.Errorf("%s\nis another tree than\n%s\n%s\n%s", other.Text, text, shape(other), shape(s))
		}
	})
	if read < 100 {
		t.Errorf("only %d texts were read", read)
	}
}

func FuzzParse(f *testing.F) {
	names := []string{"mysql", "mysql ansi_quotes", "mysql no_backslash_escapes", "mysql pipes_as_concat", "mariadb", "sqlite", "postgresql"}
	for _, file := range testdata(f) {
		for _, s := range readSections(f, file) {
			f.Add(s.text, byte(slices.Index(names, s.dialect)))
		}
	}
	f.Fuzz(func(t *testing.T, text string, n byte) {
		d := dialects[names[int(n)%len(names)]]
		s := Parse(text, d)
		for _, fault := range faults(s, d) {
			t.Errorf("%+v\n%s\n%s\n%s", d, text, fault, dump(s))
		}
		if s.Verb != Unknown && shape(Parse(renamed(s), d)) != shape(s) {
			t.Errorf("%+v\n%s\nis read in another way with other names", d, text)
		}
	})
}
