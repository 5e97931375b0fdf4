// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var statements = flag.Uint64("statements", 40, "how many random statements each dialect reads; 3,000 take minutes")

// generator writes random statements and, for each part of them, the expected tree: (and (= a.b 1)
// (in c 2 ?0)).
type generator struct {
	*rand.Rand

	d      Dialect
	params int
	depth  int
}

func (g *generator) mysql() bool { return g.d.Family == MySQL || g.d.Family == MariaDB }

// both is a text, with one space between tokens, and its tree.
type both struct{ text, tree string }

func (g *generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

// list writes up to n parts with a separator between them.
func (g *generator) list(n int, separator string, part func() both) both {
	var texts, trees []string
	for range 1 + g.IntN(n) {
		b := part()
		texts, trees = append(texts, b.text), append(trees, b.tree)
	}
	return both{strings.Join(texts, separator), strings.Join(trees, " ")}
}

// chain writes operands of one operator.
func (g *generator) chain(operator, name string, part func() both) both {
	n := 0
	b := g.list(2, " "+operator+" ", func() both { n++; return part() })
	if n == 1 {
		return b
	}
	return both{b.text, "(" + name + " " + b.tree + ")"}
}

func (g *generator) expr() both {
	g.depth++
	defer func() { g.depth-- }()
	return g.chain("OR", "OR", func() both { return g.chain("AND", "AND", g.not) })
}

func (g *generator) not() both {
	switch g.IntN(6) {
	case 0:
		x := g.predicate
		if g.mysql() {
			x = g.operand
		}
		b := x()
		return both{"NOT " + b.text, "(not " + b.tree + ")"}
	case 1:
		if g.depth < 2 {
			q := g.query()
			return both{"EXISTS ( " + q.text + " )", "(exists " + q.tree + ")"}
		}
	}
	return g.predicate()
}

func (g *generator) predicate() both {
	if g.IntN(8) == 0 {
		return g.opaque()
	}
	x := g.sum()
	not, negated := "", ""
	if g.IntN(2) == 0 {
		not, negated = "NOT ", "not-"
	}
	switch g.IntN(8) {
	case 0:
		l := g.list(3, " , ", g.expr)
		return both{x.text + " " + not + "IN ( " + l.text + " )", "(" + negated + "in " + x.tree + " " + l.tree + ")"}
	case 1:
		if g.depth < 2 {
			q := g.query()
			return both{x.text + " " + not + "IN ( " + q.text + " )", "(" + negated + "in " + x.tree + " " + q.tree + ")"}
		}
		return x
	case 2:
		low, high := g.sum(), g.sum()
		return both{x.text + " " + not + "BETWEEN " + low.text + " AND " + high.text, "(" + negated + "between " + x.tree + " " + low.tree + " " + high.tree + ")"}
	case 3:
		return both{x.text + " IS " + not + "NULL", "(" + negated + "null " + x.tree + ")"}
	case 4:
		y := g.sum()
		return both{x.text + " " + not + "LIKE " + y.text, "(" + negated + "like " + x.tree + " " + y.tree + ")"}
	}
	op := g.pick("=", "<>", "<", "<=", ">", ">=")
	y := g.sum()
	return both{x.text + " " + op + " " + y.text, "(" + op + " " + x.tree + " " + y.tree + ")"}
}

// opaque writes operands with operators between them that dialects order
// differently.
func (g *generator) opaque() both {
	n := 0
	b := g.list(3, "\x00", func() both { n++; return g.operand() })
	for strings.Contains(b.text, "\x00") {
		b.text = strings.Replace(b.text, "\x00", " "+g.pick("&", "|", "<<", "= 1 =", "COLLATE c <", "IS NULL =")+" ", 1)
	}
	if n == 1 {
		return b
	}
	return both{b.text, "(opaque)"}
}

func (g *generator) sum() both {
	x := g.chain("*", "*", g.operand)
	for range g.IntN(2) {
		op := g.pick("+", "-")
		y := g.chain("*", "*", g.operand)
		x = both{x.text + " " + op + " " + y.text, "(" + op + " " + x.tree + " " + y.tree + ")"}
	}
	return x
}

func (g *generator) operand() both {
	choices := 9
	if g.depth > 2 {
		choices = 5
	}
	switch g.IntN(choices) {
	case 0:
		c := g.pick("a", "b", "o.id", "o.user_id")
		return both{c, c}
	case 1:
		n := g.pick("0", "7", "1234567890123", "-5", "1.5")
		return both{n, n}
	case 2:
		s := g.pick("''", "'x'", "'it''s'", "'1'")
		return both{s, s}
	case 3:
		g.params++
		if g.d.Family == PostgreSQL {
			return both{fmt.Sprintf("$%d", g.params), fmt.Sprintf("?%d", g.params-1)}
		}
		return both{"?", fmt.Sprintf("?%d", g.params-1)}
	case 4:
		return both{g.quoted("key"), "key"}
	case 5:
		x := g.expr()
		return both{"( " + x.text + " )", "(parens " + x.tree + ")"}
	case 6:
		l := g.list(2, " , ", g.expr)
		return both{"f ( " + l.text + " )", "(f " + l.tree + ")"}
	case 7:
		when, then, otherwise := g.expr(), g.expr(), g.expr()
		return both{"CASE WHEN " + when.text + " THEN " + then.text + " ELSE " + otherwise.text + " END",
			"(case " + when.tree + " " + then.tree + " " + otherwise.tree + ")"}
	}
	q := g.query()
	return both{"( " + q.text + " )", "(subquery " + q.tree + ")"}
}

func (g *generator) quoted(name string) string {
	if g.mysql() {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

func (g *generator) source() both {
	if g.depth < 2 && g.IntN(5) == 0 {
		q := g.query()
		return both{"( " + q.text + " ) AS d", "(derived " + q.tree + ")"}
	}
	name := g.pick("orders", "items", "shop.users")
	if g.IntN(3) == 0 {
		return both{g.quoted("orders") + " x", "orders"}
	}
	return both{name, name}
}

func (g *generator) sources() both {
	return g.list(2, " , ", func() both {
		s := g.source()
		for range g.IntN(3) {
			kind := g.pick("JOIN", "LEFT JOIN", "INNER JOIN", "RIGHT OUTER JOIN")
			if g.d.Family == SQLite {
				kind = g.pick("JOIN", "LEFT JOIN")
			}
			right, on := g.source(), g.expr()
			s = both{s.text + " " + kind + " " + right.text + " ON " + on.text, "(join " + s.tree + " " + right.tree + " " + on.tree + ")"}
		}
		return s
	})
}

func (g *generator) query() both {
	g.depth++
	defer func() { g.depth-- }()
	q := g.list(2, "\x00", func() both {
		items := g.list(3, " , ", func() both {
			if g.IntN(4) == 0 {
				return both{"*", "*"}
			}
			x := g.expr()
			return both{x.text + g.pick("", " AS n", " n"), x.tree}
		})
		core := both{"SELECT " + items.text, "(select " + items.tree}
		if g.IntN(4) > 0 {
			s := g.sources()
			core = both{core.text + " FROM " + s.text, core.tree + " from " + s.tree}
		}
		if g.IntN(2) == 0 {
			x := g.expr()
			core = both{core.text + " WHERE " + x.text, core.tree + " where " + x.tree}
		}
		if g.IntN(3) == 0 {
			l, x := g.list(2, " , ", g.expr), g.expr()
			core = both{core.text + " GROUP BY " + l.text + " HAVING " + x.text, core.tree + " group " + l.tree + " having " + x.tree}
		}
		return both{core.text, core.tree + ")"}
	})
	q.text = strings.ReplaceAll(q.text, "\x00", " UNION ALL ")
	if g.IntN(2) == 0 {
		x := g.expr()
		q = both{q.text + " ORDER BY " + x.text + " DESC", q.tree + " order " + x.tree}
	}
	if g.IntN(2) == 0 {
		n, m := g.operand(), g.operand()
		q = both{q.text + " LIMIT " + n.text + " OFFSET " + m.text, q.tree + " limit " + n.tree + " " + m.tree}
	}
	return both{q.text, "(query " + q.tree + ")"}
}

func (g *generator) statement() both {
	switch g.IntN(4) {
	case 0:
		rows := g.list(4, " , ", func() both {
			l := g.list(3, " , ", g.expr)
			return both{"( " + l.text + " )", "(" + l.tree + ")"}
		})
		return both{"INSERT INTO orders ( a , b ) VALUES " + rows.text, "(insert orders " + rows.tree + ")"}
	case 1:
		value, where := g.expr(), g.expr()
		return both{"UPDATE orders SET a = " + value.text + " WHERE " + where.text, "(update orders " + value.tree + " " + where.tree + ")"}
	case 2:
		where := g.expr()
		return both{"DELETE FROM orders WHERE " + where.text, "(delete orders " + where.tree + ")"}
	}
	return g.query()
}

// written returns the text with other spaces, comments and cases of keywords.
func (g *generator) written(text string) string {
	var out strings.Builder
	for i, token := range strings.Split(text, " ") {
		if i > 0 {
			out.WriteString(g.pick(" ", " ", "\n", "\t ", " /* it's */ ", " -- no ?\n"))
		}
		if strings.ToUpper(token) == token && g.IntN(3) == 0 && !strings.Contains(token, "'") {
			token = strings.ToLower(token)
		}
		out.WriteString(token)
	}
	return out.String()
}

func TestRandomStatementsAreParsedAsTheyWereGenerated(t *testing.T) {
	for seed := range *statements {
		for _, family := range []Family{MySQL, MariaDB, SQLite, PostgreSQL} {
			g := generator{Rand: rand.New(rand.NewPCG(seed, uint64(family))), d: Dialect{Family: family}}
			b := g.statement()
			s := Parse(g.written(b.text), g.d)
			if got := meaning(s); got != b.tree || s.Args != g.params {
				t.Fatalf("seed %d, family %d\n%s\nread as %s\n%s\nwant\n%s", seed, family, s.Text, s.Why, got, b.tree)
			}
			if list := faults(s, g.d); len(list) > 0 {
				t.Fatalf("seed %d, family %d\n%s\n%s", seed, family, s.Text, strings.Join(list, "\n"))
			}
		}
	}
}
