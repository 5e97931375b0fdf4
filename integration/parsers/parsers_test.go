// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/selects"
)

// dialect is a dialect with its other parser.
type dialect struct {
	name   string
	family sqlparse.Family
	other  func(text string) *view
}

var dialects = []dialect{
	{"mysql", sqlparse.MySQL, func(text string) *view { return marino(text, false) }},
	{"mariadb", sqlparse.MariaDB, func(text string) *view { return marino(text, true) }},
	{"sqlite", sqlparse.SQLite, meyer},
}

// differences returns what the other parser sees otherwise, and whether both have read
// the text.
func (d dialect) differences(text string) (list []string, both bool) {
	our := ours(text, d.family)
	if our == nil || !utf8.ValidString(text) { // marino has ? for bytes that are no text
		return nil, false
	}
	other := d.other(text)
	if other == nil {
		return nil, false
	}
	return slices.DeleteFunc(our.differences(other), isNone), true
}

// isNone reports whether a difference is expected, for one of these reasons:
//
//   - TRUE and FALSE are columns for SQLite's grammar, and constants for SQLite, unless
//     a table has columns that are called so;
//   - words of the grammar (ORDER BY DESC, SUM(FROM.total)) are names for the other
//     parsers where nothing else fits, and sqlparse passes them over where it looks for
//     operands among syntax that it does not know. No table hides behind them.
func isNone(difference string) bool {
	column, ok := strings.CutPrefix(difference, sees)
	if !ok {
		return false
	}
	return slices.ContainsFunc(strings.Split(column, "."), func(name string) bool {
		return sqltext.Reserved(name) || slices.Contains([]string{"true", "false", "asc", "desc", "by"}, name)
	})
}

// compare compares texts, and returns how many of them both parsers read.
func compare(t *testing.T, d dialect, texts []string) (read int) {
	t.Helper()
	shown := 0
	for _, text := range texts {
		list, both := d.differences(text)
		if both {
			read++
		}
		if len(list) > 0 {
			if shown++; shown <= 20 {
				t.Errorf("%s: %s\n\t%s", d.name, text, strings.Join(list, "\n\t"))
			}
		}
	}
	return read
}

// ordinary are the statements of the acceptance corpus and those that GORM writes.
func ordinary(t testing.TB) []string {
	t.Helper()
	files, err := corpus.ReadDir("../../sharding/internal/plan/testdata/acceptance")
	if err != nil {
		t.Fatal(err)
	}
	texts := written(t)
	for _, f := range files {
		for _, s := range f.Statements {
			texts = append(texts, s.Text)
		}
	}
	return texts
}

func TestOrdinaryStatementsAreReadAsOtherParsersReadThem(t *testing.T) {
	texts := ordinary(t)
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			read := compare(t, d, texts)
			t.Logf("%d of %d texts are read by both", read, len(texts))
			if read < len(texts)*8/10 {
				t.Errorf("only %d of %d are read by both", read, len(texts))
			}
		})
	}
}

// random are texts of the makers of queries and writes.
func random(r *rand.Rand, n int) (texts []string) {
	for range n {
		texts = append(texts, selects.Random(r).Text,
			(&changes.Maker{Rand: r}).Statement().Text, (&changes.Maker{Rand: r, SQLite: true}).Statement().Text)
	}
	return texts
}

func TestRandomStatementsAreReadAsOtherParsersReadThem(t *testing.T) {
	texts := random(rand.New(rand.NewPCG(1, 2)), 1500)
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			read := compare(t, d, texts)
			t.Logf("%d of %d texts are read by both", read, len(texts))
			if read < len(texts)/2 {
				t.Errorf("only %d of %d are read by both", read, len(texts))
			}
		})
	}
}

// mutated returns a text with tokens of others in it, left out, or in another order.
func mutated(r *rand.Rand, text string, tokens []string) string {
	list := split(text)
	for range 1 + r.IntN(3) {
		if len(list) < 2 {
			break
		}
		i, j := r.IntN(len(list)), r.IntN(len(list))
		switch r.IntN(4) {
		case 0:
			list = slices.Delete(list, i, i+1)
		case 1:
			list[i], list[j] = list[j], list[i]
		case 2:
			list[i] = list[j]
		case 3:
			list = slices.Insert(list, i, " "+tokens[r.IntN(len(tokens))]+" ")
		}
	}
	return strings.Join(list, "")
}

// split returns the tokens of a text, white space included.
func split(text string) (tokens []string) {
	s := sqltext.NewScanner(text, sqltext.MySQL)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		tokens = append(tokens, t.Text(text))
	}
	return tokens
}

// odd are tokens that the ordinary statements do not have.
var odd = strings.Fields("( ) , . ; ? * - + / % = <=> <> || && | & ^ ~ ! -- 'x' \"x\" `x` 1 1.5 0x10 x'00' NOT AND OR XOR IS NULL TRUE FALSE UNKNOWN IN BETWEEN LIKE ESCAPE " +
	"REGEXP COLLATE nocase binary DIV MOD INTERVAL DAY CASE WHEN THEN ELSE END EXISTS SELECT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET UNION ALL INTERSECT EXCEPT " +
	"JOIN LEFT RIGHT INNER CROSS NATURAL STRAIGHT_JOIN ON USING AS DISTINCT WITH VALUES ROW SET INTO INSERT REPLACE UPDATE DELETE IGNORE DUPLICATE KEY CONFLICT DO NOTHING " +
	"RETURNING FOR SHARE LOCK MODE OVER PARTITION WINDOW CAST CONVERT GLOB MATCH ISNULL NOTNULL INDEXED orders items user_id id count( sum( @x :a ?1 /* */ # DATE")

func TestMutatedStatementsAreReadAsOtherParsersReadThem(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	base, rounds := ordinary(t), 30
	if effort.Soak() {
		r, rounds = rand.New(rand.NewPCG(rand.Uint64(), 4)), 5_000
	}
	tokens := slices.Clone(odd)
	for _, text := range base {
		tokens = append(tokens, split(text)...)
	}
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			read := 0
			for range rounds {
				texts := make([]string, len(base))
				for i, text := range base {
					texts[i] = mutated(r, text, tokens)
				}
				read += compare(t, d, texts)
			}
			t.Logf("%d of %d texts are read by both", read, rounds*len(base))
			if read < rounds*len(base)/10 {
				t.Error("too few")
			}
		})
	}
}

// The comparison finds a difference that is there.
func TestDifferencesAreSeen(t *testing.T) {
	const text = "UPDATE orders SET a = ? WHERE user_id = ? AND id IN (?, 3)"
	for _, d := range dialects {
		our := ours(text, d.family)
		for _, other := range []string{
			"UPDATE others SET a = ? WHERE user_id = ? AND id IN (?, 3)",
			"UPDATE orders SET a = ? WHERE user_id = ? OR id IN (?, 3)",
			"UPDATE orders SET a = ? WHERE user_id = ? AND id IN (?, 4)",
			"UPDATE orders SET a = ? WHERE user_id = ? AND NOT id IN (?, 3)",
			"UPDATE orders SET a = b WHERE user_id = ? AND id IN (?, 3)",
			"UPDATE orders SET a = ? WHERE user_id = ? AND id IN (?, 3) AND c = ?",
			"INSERT INTO orders (a) VALUES (?), (?), (?)",
		} {
			if list := our.differences(d.other(other)); len(list) == 0 {
				t.Errorf("%s: no difference is seen to %s", d.name, other)
			}
		}
	}
}

func FuzzStatementsAreReadAsOtherParsersReadThem(f *testing.F) {
	texts := ordinary(f)
	for i, text := range texts {
		f.Add(text, byte(i))
	}
	f.Fuzz(func(t *testing.T, text string, n byte) {
		d := dialects[int(n)%len(dialects)]
		if list, _ := d.differences(text); len(list) > 0 {
			t.Errorf("%s: %s\n\t%s", d.name, text, strings.Join(list, "\n\t"))
		}
	})
}
