// SPDX-License-Identifier: Apache-2.0

package sqltext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

// code returns the text of the tokens that are neither white space nor comment,
// each with its kind: "Word:SELECT".
func code(sql string, f sqltext.Flavor) []string {
	var out []string
	s := sqltext.NewScanner(sql, f)
	for t, ok := s.NextCode(); ok; t, ok = s.NextCode() {
		out = append(out, t.Kind.String()+":"+t.Text(sql))
	}
	return out
}

// of returns the texts of the tokens of one kind.
func of(kind sqltext.Kind, sql string, f sqltext.Flavor) []string {
	var out []string
	s := sqltext.NewScanner(sql, f)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		if t.Kind == kind {
			out = append(out, t.Text(sql))
		}
	}
	return out
}

const (
	my   = sqltext.MySQL
	lite = sqltext.SQLite
	pg   = sqltext.PostgreSQL
)

func TestNamedParametersAreFoundInCodeOnly(t *testing.T) {
	for _, c := range []struct {
		sql  string
		f    sqltext.Flavor
		want string
	}{
		{"VALUES (:id, :user.name, '12:30:00', :b)", my, ":id :user.name :b"},
		{"SELECT :id::bigint, a[1:2], x := :v", pg, ":id :v"},
		{"SELECT :id -- :no\n, :a", my, ":id :a"},
		{"SELECT :id # :no\n, :a", my, ":id :a"},
		{"SELECT :id # :yes", pg, ":id :yes"},
		{"SELECT /* :no */ :a /*! , :b */ /*M!100100 , :c */", my, ":a :b :c"},
		{"SELECT /*! :no */ :a", lite, ":a"},
		{`SELECT ":no", :a`, my, ":a"},
		{`SELECT ":no", :a`, lite, ":a"},
		{"SELECT `:no`, :a", my, ":a"},
		{"SELECT [:no], :a", lite, ":a"},
		{`SELECT 'it''s :no', :a`, lite, ":a"},
		{`SELECT 'it\' :no', :a`, my, ":a"},
		{`SELECT 'c:\', :a`, lite, ":a"},
		{`SELECT 'c:\', :a`, my &^ sqltext.BackslashEscapes, ":a"},
		{`SELECT E'it\' :no', :a`, pg, ":a"},
		{`SELECT $$ :no $$, $q$ :no $$ $q$, :a`, pg, ":a"},
		{"SELECT /* /* :no */ :no */ :a", pg, ":a"},
		{"SELECT /* /* :no */ :a", my, ":a"},
		{":größe, :id.", lite, ":größe :id"},
		{"-- x\r:a", pg, ":a"},
		{"-- x\r:no", my, ""},
		{":", my, ""},
	} {
		if got := strings.Join(of(sqltext.Named, c.sql, c.f), " "); got != c.want {
			t.Errorf("%s\ngot  %q\nwant %q", c.sql, got, c.want)
		}
	}
}

func TestTokensOfAStatement(t *testing.T) {
	for _, c := range []struct {
		sql  string
		f    sqltext.Flavor
		want []string
	}{
		{"a.`b``c`=1.5e-3+?", my, []string{"Word:a", "Op:.", "QuotedIdent:`b``c`", "Op:=", "Number:1.5e-3", "Op:+", "Param:?"}},
		{"@x:=@@global.y", my, []string{"Word:@x", "Op::=", "Word:@@global", "Op:.", "Word:y"}},
		{"'u'@'h'", my, []string{"String:'u'", "Op:@", "String:'h'"}},
		{"x::int8", pg, []string{"Word:x", "Op:::", "Word:int8"}},
		{"$1 a$b $", pg, []string{"Param:$1", "Word:a$b", "Op:$"}},
		{"@x", pg, []string{"Op:@", "Word:x"}},
		{"5--1", my, []string{"Number:5", "Op:-", "Op:-", "Number:1"}},
		{"5--1", lite, []string{"Number:5"}},
		{"--", my, nil},
		{"0x1F 0xg 0b01 0o17 2024_orders 1e5 1e 7.", my, []string{
			"Number:0x1F", "Word:0xg", "Number:0b01", "Number:0o17", "Word:2024_orders", "Number:1e5", "Word:1e", "Number:7", "Op:."}},
		{"_utf8'a' N'b'", my, []string{"Word:_utf8", "String:'a'", "Word:N", "String:'b'"}},
		{"/*!50701 x*/*/", my, []string{"Word:x", "Op:*", "Op:/"}},
		{"/*!1 x*/", my, []string{"Number:1", "Word:x"}},
	} {
		if got := code(c.sql, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.sql, got, c.want)
		}
	}
}

func TestUnclosedReportsALiteralOrCommentThatIsNotClosed(t *testing.T) {
	for sql, want := range map[string]bool{
		"'a'": false, "'a": true, "'a''": true, `'a\'`: true, "`a": true, "/* a": true, "/*! a": true,
		"/*! a */": false, "-- a": false, `"a`: true, "": false,
	} {
		s := sqltext.NewScanner(sql, my)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
		if s.Unclosed() != want {
			t.Errorf("%q: Unclosed is %v", sql, !want)
		}
	}
}

func TestIdentUndoesQuotes(t *testing.T) {
	for _, c := range []struct {
		sql, want string
		f         sqltext.Flavor
	}{
		{"orders", "orders", my}, {"`or``ders`", "or`ders", my}, {`"or""ders"`, `or"ders`, lite},
		{"[or ders]", "or ders", lite}, {"`orders", "orders", my}, {"[", "", lite}, {"`", "", my}, {`"a"`, `"a"`, my},
	} {
		s := sqltext.NewScanner(c.sql, c.f)
		tok, _ := s.Next()
		if got := sqltext.Ident(c.sql, tok); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestIsComparesKeywordsWithoutCaseAndNeverQuotedNames(t *testing.T) {
	sql := "select `select`"
	s := sqltext.NewScanner(sql, my)
	first, _ := s.NextCode()
	second, _ := s.NextCode()
	if !first.Is(sql, "SELECT") || second.Is(sql, "SELECT") || second.Is(sql, "`select`") {
		t.Error("Is does not tell a keyword from a quoted name")
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	sql := "INSERT INTO `orders` (id, note) VALUES (:id, 'a)b') /* c */ ON DUPLICATE KEY UPDATE note = :note"
	n := testing.AllocsPerRun(100, func() {
		s := sqltext.NewScanner(sql, my)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTokensTileTheText(f *testing.F) {
	for _, seed := range []string{
		"SELECT :a, 'b''c', `d`, [e], $q$ f $q$, E'g\\'', 0x1F /*! h */ -- i", "'\\", "/*/", "/*!", "/*M!12345", "$$", "$a", "@@", "1e+", ":a.", "\xff\x00", "[",
	} {
		f.Add(seed)
	}
	flavors := []sqltext.Flavor{
		0, my, lite, pg, my &^ sqltext.BackslashEscapes, my &^ sqltext.DoubleQuoteStrings, my | lite | pg,
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, flavor := range flavors {
			end := 0
			s := sqltext.NewScanner(sql, flavor)
			for tok, ok := s.Next(); ok; tok, ok = s.Next() {
				if tok.Start != end || tok.End <= tok.Start || tok.End > len(sql) || tok.Kind < sqltext.Space || tok.Kind > sqltext.Op {
					t.Fatalf("flavor %d: token %+v after %d in %q", flavor, tok, end, sql)
				}
				sqltext.Ident(sql, tok)
				end = tok.End
			}
			if end != len(sql) {
				t.Fatalf("flavor %d: stopped at %d of %d in %q", flavor, end, len(sql), sql)
			}
		}
	})
}

func BenchmarkScan(b *testing.B) {
	sql := "SELECT o.id, `o`.`note` FROM orders AS o WHERE o.user_id = ? AND o.note = 'a)b' LIMIT 10 -- end\n"
	b.SetBytes(int64(len(sql)))
	b.ReportAllocs()
	for b.Loop() {
		s := sqltext.NewScanner(sql, my)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	}
}

func TestAKeywordIsNotFoundInLiteralsCommentsAndQuotes(t *testing.T) {
	for text, want := range map[string]bool{
		"CREATE TABLE t (id INTEGER PRIMARY KEY autoincrement)":                         true,
		"CREATE TABLE t (id INTEGER PRIMARY KEY/* */AUTOINCREMENT)":                     true,
		"CREATE TABLE t (id INTEGER PRIMARY KEY -- no AUTOINCREMENT\n)":                 false,
		"CREATE TABLE t (id INTEGER PRIMARY KEY, /* AUTOINCREMENT":                      false,
		"CREATE TABLE t (s TEXT DEFAULT 'it''s AUTOINCREMENT', \"AUTOINCREMENT\" TEXT)": false,
		"CREATE TABLE t (`AUTOINCREMENT` TEXT, [AUTOINCREMENT] TEXT, autoincrements)":   false,
	} {
		if got := sqltext.HasWord(text, sqltext.SQLite, "AUTOINCREMENT"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAWordIsSearchedOutsideOfLiteralsAndComments(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT @a":              true,
		"SELECT a INTO @@b":      true,
		"SELECT Sql_Found_Rows":  true,
		"SELECT 'a@b'":           false,
		"SELECT `@b` -- @b":      false,
		"SELECT a # found_rows":  false,
		"SELECT 'it''s @', a, b": false,
	} {
		if got := sqltext.WordsMention(text, sqltext.MySQL, "@", "found_rows"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if sqltext.WordsMention("SELECT a @> b", sqltext.PostgreSQL, "@") {
		t.Error("@> is an operator of PostgreSQL")
	}
}
