// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strings"
	"testing"
)

const gormSelect = "SELECT * FROM `orders` WHERE `orders`.`id` = ? AND `orders`.`user_id` = ? ORDER BY `orders`.`id` LIMIT 1"

// manyRows is an INSERT of 1,000 rows.
func manyRows() string {
	return "INSERT INTO `orders` (`id`,`user_id`,`amount`,`state`,`created_at`) VALUES " + strings.Repeat("(?,?,?,?,?),", 999) + "(?,?,?,?,?)"
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"GORMSelect": gormSelect,
		"Insert1000": manyRows(),
		"Join": "SELECT o.id, SUM(i.price * i.quantity) AS total FROM orders o JOIN items i ON i.order_id = o.id AND i.user_id = o.user_id " +
			"WHERE o.user_id = ? AND o.state IN ('paid', 'sent') GROUP BY o.id HAVING total > ? ORDER BY total DESC LIMIT 20",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if Parse(text, Dialect{Family: MySQL}).Verb == Unknown {
					b.Fatal("not read")
				}
			}
		})
	}
}

func TestRowsWithTheSameBytesShareTheirExpressions(t *testing.T) {
	const text = "INSERT INTO t (a, b, c) VALUES (?, 1, ?), (?, 1, ?),\n\t(?, 1, ?), (?, 2, ?), (?, 2, ?), (?,2,?), (?, 1, ?)"
	in := Parse(text, Dialect{Family: MySQL})
	own := 0
	for i, row := range in.Insert.Rows {
		if !row.Shares() {
			own++
		}
		for n, place := range []int{0, 2} {
			if p := row.Values[place].(*Param); p.Index+row.FirstParam != 2*i+n {
				t.Errorf("row %d takes the argument %d, want %d", i, p.Index+row.FirstParam, 2*i+n)
			}
		}
		if got := row.Of(text); got[0] != '(' || got[len(got)-1] != ')' {
			t.Errorf("row %d is %q", i, got)
		}
	}
	if len(in.Insert.Rows) != 7 || own != 4 || in.Args != 14 {
		t.Errorf("%d rows, %d with expressions of their own, %d arguments", len(in.Insert.Rows), own, in.Args)
	}
	numbered := Parse("INSERT INTO t VALUES ($1, $2), ($1, $2)", Dialect{Family: PostgreSQL})
	if rows := numbered.Insert.Rows; rows[1].Shares() || rows[1].FirstParam != 0 || numbered.Args != 2 || len(numbered.Params) != 4 { // each has a place in the text
		t.Errorf("%+v, %d arguments", rows, numbered.Args)
	}
}

func TestAllocationsStayFew(t *testing.T) {
	for text, limit := range map[string]float64{gormSelect: 8, manyRows(): 13} {
		if got := testing.AllocsPerRun(100, func() { Parse(text, Dialect{Family: MySQL}) }); got > limit {
			t.Errorf("%.60s: %v allocations, want at most %v", text, got, limit)
		}
	}
}
