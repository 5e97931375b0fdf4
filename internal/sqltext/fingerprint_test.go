// SPDX-License-Identifier: Apache-2.0

package sqltext_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

func TestStatementsThatDifferInValuesHaveOneFingerprint(t *testing.T) {
	for want, texts := range map[string][]string{
		"SELECT * FROM orders WHERE id = ? AND note = ?":                            {"SELECT * FROM orders WHERE id = 5 AND note = 'it''s'", "SELECT *\n\tFROM orders /* 7 */ WHERE id = ? AND note = \"b\" ", "SELECT * FROM orders -- 1\nWHERE id = 0x1F AND note = 'a\\'b'"},
		"SELECT id FROM orders WHERE id IN (?)":                                     {"SELECT id FROM orders WHERE id IN (1)"},
		"SELECT id FROM orders WHERE id IN (?, …)":                                  {"SELECT id FROM orders WHERE id IN (1, 2)", "SELECT id FROM orders WHERE id IN (?,?,'3', :four)"},
		"SELECT id FROM orders WHERE (a, b) IN ((?, …), …) LIMIT ?":                 {"SELECT id FROM orders WHERE (a, b) IN ((1, 2), (3, 4),(5,6)) LIMIT 1"},
		"INSERT INTO orders (id, note) VALUES (?, now()), … ON CONFLICT DO NOTHING": {"INSERT INTO orders (id, note) VALUES (1, now()), (2, now()) ON CONFLICT DO NOTHING", "INSERT INTO orders (id, note) VALUES (1, now()), (2, now()),(3, now()) ON CONFLICT DO NOTHING"},
		"SELECT f(?), h(?), g(x, ?) FROM t WHERE a = ? AND b = ?":                   {"SELECT f(1), h(2), g(x, 3) FROM t WHERE a = 4 AND b = 5"},
		"UPDATE t SET a = ?, b = ?, `c` = d + ?":                                    {"UPDATE t SET a = 1, b = 2, `c` = d + 3"},
		"SELECT ?":                                                                  {"SELECT 'it is not closed"},
		")":                                                                         {")"},
	} {
		for _, text := range texts {
			if got := sqltext.Fingerprint(text, sqltext.MySQL); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
			}
		}
	}
}

// A program's values may be secret, so a fingerprint must not contain them.
func FuzzFingerprint(f *testing.F) {
	f.Add("SELECT 'a', \"b\", 5, $$c$$ FROM t WHERE x IN (1, 2) -- d\n/* e */ AND y = :f")
	f.Add("INSERT INTO t VALUES ((1), (2)), ((1), (2))")
	f.Fuzz(func(t *testing.T, text string) {
		for _, flavor := range []sqltext.Flavor{sqltext.MySQL, sqltext.SQLite, sqltext.PostgreSQL} {
			shown := sqltext.Fingerprint(text, flavor)
			s := sqltext.NewScanner(text, flavor)
			for token, ok := s.Next(); ok; token, ok = s.Next() {
				if literal := token.Text(text); token.Kind == sqltext.String && len(literal) > 8 && strings.Count(text, literal) == 1 && strings.Contains(shown, literal) {
					t.Errorf("%q: %q shows %s", text, shown, literal)
				}
			}
			if len(shown) > 4*len(text) { // a ? and an ellipsis for a digit and a comma
				t.Errorf("%q: %q is longer", text, shown)
			}
		}
	})
}
