// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Databases refuse many of these statements, as they refuse those of a person who errs. The planner
// must have an answer to all of them.
func TestEveryRandomStatementIsRoutedOrRefused(t *testing.T) {
	w := newWorld(t)
	r := rand.New(rand.NewPCG(5, 7))
	answered := map[plan.Kind]int{}
	for range 10000 {
		statement := expand(r, "statement", 8)
		for dialect := range dialects {
			text := inDialect(statement, dialect)
			args := make([]any, strings.Count(statement, "?"))
			for i := range args {
				args[i] = int64(i)
			}
			hint := sharding.Hint{All: r.IntN(2) == 0}
			p, args := plan.Sampled(w.plan(dialect, text), args, hint)
			to, err := p.Bind(args, hint)
			if err != nil {
				if refusal := (*sharding.RouteError)(nil); !errors.As(err, &refusal) {
					t.Fatalf("%s, %s: the refusal %v has no hint", dialect, text, err)
				}
				answered[0]++
				continue
			}
			answered[to.Kind]++
			for _, sent := range textsOf(to) {
				checkSent(t, dialect, text, sent)
			}
		}
	}
	for _, kind := range []plan.Kind{0, plan.Home, plan.One, plan.Scatter, plan.Several, plan.Copies} {
		if answered[kind] < 100 { // 0 is a refusal
			t.Errorf("%d statements are %v, too few to mean anything", answered[kind], kind)
		}
	}
}

// No check may search a text for a word without regard to literals.
func TestTheWordsInALiteralDecideNothing(t *testing.T) {
	literals := []string{"@a", "a := 1", "into", "found_rows", "last_insert_id()", "nextval(1)", "setval", "call x", "stddev", "variance", "now()",
		"limit 1", "for update", "collate nocase", "select 1", "orders", "orders_0", "o.id", "?", "$1", ":a", "-- a", "/* a */", "a # b", "a;b", "(a", "a)", "reg", "interval 1 day", "over (", "max(a)"}
	w := newWorld(t)
	r := rand.New(rand.NewPCG(8, 3))
	tried := 0
	for tried < 2000 {
		statement := expand(r, "statement", 8)
		if !strings.Contains(statement, "'a'") {
			continue
		}
		tried++
		literal := literals[r.IntN(len(literals))]
		for dialect := range dialects {
			text := inDialect(statement, dialect)
			var args []any
			for range strings.Count(statement, "?") {
				args = append(args, int64(len(args)))
			}
			want := w.explain(dialect, strings.ReplaceAll(text, "'a'", "'plain'"), args)
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "plain", literal)
			}
			if sqlparse.Parse(text, dialects[dialect]).Verb == sqlparse.Unknown { // the words inside its strings may be names
				continue
			}
			got := w.explain(dialect, strings.ReplaceAll(text, "'a'", "'"+literal+"'"), args)
			flat := strings.NewReplacer("(", "", ")", "").Replace // an expression with a space is copied in parentheses
			if flat(strings.Join(got, "\n")) != flat(strings.Join(want, "\n")) {
				t.Fatalf("%s: with '%s' for 'a', %s\nis planned as\n%s\nand not as\n%s", dialect, literal, text, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// checkSent reports a text for a shard that is another kind of statement than the original, or that
// names a logical table.
func checkSent(t *testing.T, dialect, text, sent string) {
	t.Helper()
	was, is := sqlparse.Parse(text, dialects[dialect]), sqlparse.Parse(sent, dialects[dialect])
	if is.Verb != was.Verb {
		t.Errorf("%s: %s became %s", dialect, text, sent)
	}
	if slices.ContainsFunc(is.Names, func(name string) bool { return slices.Contains([]string{"orders", "items", "people"}, name) }) {
		t.Errorf("%s: %s became %s, which names a logical table", dialect, text, sent)
	}
}

func textsOf(to *plan.Route) (all []string) {
	switch to.Kind {
	case plan.One:
		all = append(all, to.Text)
	case plan.Scatter:
		for _, shard := range to.Shards.Targets {
			all = append(all, shard.Text)
		}
	case plan.Several:
		for _, part := range to.Writes.Parts {
			all = append(all, part.Text)
		}
	}
	return all
}

// inDialect returns a statement with the parameters of a dialect.
func inDialect(statement, dialect string) string {
	if dialect != "postgres" {
		return statement
	}
	parts := strings.Split(statement, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}

// grammar is the alternatives of each symbol. The first one ends.
var grammar = map[string][]string{
	"statement": {"<query>", "<query>", "<query>", "<update> <table> SET <set> <where>", "<update> <table> SET <set>, <set> <where>", "DELETE FROM <table> <where>", "<insert> <rows> <conflict>", "<insert> <query>"},

	"query":  {"SELECT user_id FROM orders", "<core> <order> <limit>", "<core> <order> <limit>", "<core> UNION <core> <order>", "<core> UNION ALL <core> <limit>"},
	"core":   {"SELECT id, user_id FROM orders", "SELECT <items> FROM <from> <where> <group>", "SELECT <items> FROM <from> <where> <group>", "SELECT DISTINCT <items> FROM <from> <where>"},
	"items":  {"*", "o.*", "<item>", "<item>, <item>", "<item>, <item>, <item>", "user_id, <item>"},
	"item":   {"id", "<expr>", "<expr> AS n", "<aggregate>", "<aggregate> AS n", "(<aggregate>) AS n", "<expr> AS note"},
	"from":   {"orders", "orders o", "items i", "people", "members", "countries", "coupons", "orders o JOIN items i ON i.user_id = o.user_id", "orders o LEFT JOIN items i ON i.order_id = o.id", "orders o JOIN countries c ON c.code = o.country", "(<query>) o"},
	"where":  {"WHERE id = 7", "", "WHERE user_id = 5", "WHERE user_id = ? AND id = ?", "WHERE (id, user_id) IN ((1, 1), (2, 2))", "WHERE <condition>"},
	"group":  {"", "", "GROUP BY user_id <having>", "GROUP BY note <having>", "GROUP BY <expr> <having>"},
	"having": {"", "", "HAVING COUNT(*) > ?", "HAVING n > 1", "HAVING <condition>"},
	"order":  {"", "ORDER BY id DESC", "ORDER BY n", "ORDER BY 1, note", "ORDER BY <expr>"},
	"limit":  {"", "", "LIMIT 3", "LIMIT ? OFFSET 1"},

	"leaf":      {"id", "user_id", "paid", "note", "state", "price", "created_at", "o.id", "i.sku", "n", "5", "?", "'a'", "'é'", "NULL", "1.5"},
	"expr":      {"id", "<leaf>", "<leaf>", "<leaf>", "(<expr>)", "-<expr>", "<expr> + <expr>", "<expr> * <expr>", "<expr> / <expr>", "<expr> || <expr>", "<expr> COLLATE NOCASE", "<call>", "<call>", "<aggregate>", "<aggregate> OVER (PARTITION BY user_id)", "<aggregate> OVER (ORDER BY <expr>)", "ROW_NUMBER() OVER ()", "CAST(<expr> AS integer)", "EXISTS (<query>)", "(<query>)"},
	"aggregate": {"COUNT(*)", "COUNT(<expr>)", "COUNT(DISTINCT <expr>)", "SUM(<expr>)", "AVG(<expr>)", "MIN(<expr>)", "MAX(<expr>)", "MAX(<expr>, <expr>)", "pg_catalog.max(<expr>)", "MIN()"},
	"call":      {"lower(note)", "lower(<expr>)", "year(<expr>)", "round(<expr>, 2)", "coalesce(<expr>, <expr>)", "concat(<expr>, <expr>)", "mystery(<expr>)", "now()", "abs(<expr>)", "nullif(<expr>, <expr>)", "extract(YEAR FROM <expr>)", "coalesce(<aggregate>, ARRAY[])", "coalesce()", "CASE END", "CASE WHEN <condition> THEN <expr> END", "CASE WHEN <condition> THEN <expr> ELSE <expr> END"},
	"condition": {"user_id IN (1, 2)", "id = 1007", "email = 'x'", "o.id = i.order_id", "paid > 3", "<expr> = <expr>", "<expr> < <expr>", "<expr> IS NULL", "<expr> BETWEEN 1 AND <expr>", "<expr> LIKE 'a%'", "NOT <condition>", "(<condition> AND <condition>)", "(<condition> OR <condition>)", "<leaf> IN (<query>)", "<leaf> NOT IN (<query>)"},

	"table":    {"orders", "items", "people", "members", "seats", "countries", "invoices", "coupons"},
	"update":   {"UPDATE", "UPDATE IGNORE"},
	"set":      {"paid = paid + 1", "<column> = 5", "<column> = ?", "<column> = NULL", "<column> = DEFAULT", "<column> = VALUES(email)", "<column> = excluded.email", "<column> = <expr>"},
	"column":   {"note", "paid", "user_id", "id", "email", "number"},
	"insert":   {"INSERT INTO <table> (id, email, user_id)", "REPLACE INTO <table> (id, note, user_id)", "INSERT IGNORE INTO <table> (number, city, user_id)", "INSERT OR IGNORE INTO <table> (id, email, user_id)"},
	"rows":     {"VALUES <row>", "VALUES <row>, <row>", "VALUES (?, ?, ?), (?, ?, ?), <row>"},
	"row":      {"(?, ?, ?)", "(<value>, <value>, ?)"},
	"value":    {"?", "5", "0", "NULL", "DEFAULT", "'a'", "1 + 1"},
	"conflict": {"", "", "ON CONFLICT DO NOTHING", "ON CONFLICT (id) DO UPDATE SET <set>", "ON DUPLICATE KEY UPDATE <set>", "RETURNING id"},
}

var symbol = regexp.MustCompile("<[a-z]+>")

// expand returns a random text of a symbol, and of the symbols in it down to a depth.
func expand(r *rand.Rand, name string, depth int) string {
	alternatives := grammar[name]
	if depth == 0 {
		alternatives = alternatives[:1]
	}
	return symbol.ReplaceAllStringFunc(alternatives[r.IntN(len(alternatives))], func(name string) string {
		return expand(r, strings.Trim(name, "<>"), max(depth-1, 0))
	})
}
