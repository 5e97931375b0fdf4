// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"
	"strconv"
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

func TestRowsWithTheNextNumbersShareTheirExpressions(t *testing.T) {
	for text, shares := range map[string][]bool{
		"($1, $2), ($3, $4),\n( $5 ,$6 )":           {false, true, true},
		"($3), ($4), ($6), ($7)":                    {false, true, false, true},
		"($5, $6), ($1, $2), ($3, $4)":              {false, false, true},
		"($9,$10),($11,$12),($13,$140)":             {false, true, false},
		"($1, $2), ($3, $4::int), ($5, $6)":         {false, false, false},
		"($1, 'a'), ($2, 'a')":                      {false, false},
		"($2, $1), ($4, $3)":                        {false, false},
		"($1, $2), ($3, $4) RETURNING id":           {false, true},
		"($1, $2), /* two */ ($3, $4)":              {false, false},
		"($1, $2), ($3, $4) ON CONFLICT DO NOTHING": {false, true},
	} {
		s := Parse("INSERT INTO t (a, b) VALUES "+text, Dialect{Family: PostgreSQL})
		if s.Insert == nil || len(s.Insert.Rows) != len(shares) {
			t.Errorf("%s is read as %+v", text, s)
			continue
		}
		numbers := []int{}
		for i, row := range s.Insert.Rows {
			if row.Shares() != shares[i] {
				t.Errorf("%s: row %d shares the expressions of another one: %v", text, i, row.Shares())
			}
			for _, p := range s.Params {
				if p.From >= row.From && p.To <= row.To {
					numbers = append(numbers, p.Index)
				}
			}
			if row.Shares() {
				for _, v := range row.Values {
					numbers = append(numbers, v.(*Param).Index+row.FirstParam)
				}
			}
		}
		if want := numbersIn(text); !slices.Equal(numbers, want) || s.Args != slices.Max(want)+1 {
			t.Errorf("%s takes the arguments %v, want %v; %d in all", text, numbers, want, s.Args)
		}
	}
}

// numbersIn returns the parameters of a text, counted from 0.
func numbersIn(text string) (all []int) {
	for part := range strings.SplitSeq(text, "$") {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		if n, err := strconv.Atoi(part[:end]); err == nil {
			all = append(all, n-1)
		}
	}
	return all
}

func TestAllocationsStayFew(t *testing.T) {
	for text, limit := range map[string]float64{gormSelect: 30, manyRows(): 30} {
		if got := testing.AllocsPerRun(100, func() { Parse(text, Dialect{Family: MySQL}) }); got > limit {
			t.Errorf("%.60s: %v allocations, want at most %v", text, got, limit)
		}
	}
}
